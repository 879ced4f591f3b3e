#include "attribution/gpu/sightings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"

void sightings_done(struct sightings *sightings)
{
    free(sightings->items);
    *sightings = (struct sightings){0};
}

int sightings_reserve(struct sightings *sightings, const struct ledger *ledger)
{
    size_t needed = ledger_process_slots(ledger) + 1;
    size_t slots = MAX(needed, MAX(sightings->slots * 2, (size_t)16));
    struct sighting *items;

    if (needed <= sightings->slots)
        return 0;
    items = realloc(sightings->items, slots * sizeof(*items));
    if (!items)
        return -ENOMEM;
    memset(items + sightings->slots, 0, (slots - sightings->slots) * sizeof(*items));
    sightings->items = items;
    sightings->slots = slots;
    return 0;
}

void sightings_open(struct sightings *sightings, const struct ledger *ledger, uint32_t process)
{
    uint64_t serial = ledger_process(ledger, process)->serial;

    if (sightings->items[process].serial != serial)
        sightings->items[process] = (struct sighting){.serial = serial};
}

static struct sighting *find_of_meter(struct sightings *sightings, const struct ledger *ledger,
                                      uint32_t meter, uint32_t process)
{
    const struct ledger_process *account = ledger_process(ledger, process);

    return account && account->meter == meter ? &sightings->items[process] : NULL;
}

void sightings_restart(struct sightings *sightings, const struct ledger *ledger, uint32_t meter)
{
    for (uint32_t i = 0; i < ledger_process_slots(ledger); i++) {
        struct sighting *seen = find_of_meter(sightings, ledger, meter, i);

        if (!seen)
            continue;
        seen->window = 0;
        seen->tenant = 0;
        memset(seen->list_round, 0, sizeof(seen->list_round));
    }
}

void sightings_set_clock_back(struct sightings *sightings, const struct ledger *ledger,
                              uint32_t meter, uint64_t now_us)
{
    for (uint32_t i = 0; i < ledger_process_slots(ledger); i++) {
        struct sighting *seen = find_of_meter(sightings, ledger, meter, i);

        if (!seen)
            continue;
        seen->last_listed_us = MIN(seen->last_listed_us, now_us);
        seen->first_listed_us = MIN(seen->first_listed_us, now_us);
    }
}
