/*
 * Embodied carbon: whose a device's time was. Who pays for joules pays for the time in which they
 * were used.
 *
 * Windows of a meter are booked in the order of their time, so one mark tells how far its time has
 * been counted. None of it counts twice: if the clock is set back a little, time stands still until
 * the clock is there again.
 */
#include "attribution/ledger/ledger_private.h"

#include "core/macros.h"

/* What is longer, between two windows or in one, is nobody's: the clock was set, or the machine
 * slept. If the clock was set back by more, time begins anew. */
static const uint64_t STRETCH_MAX_US = 3600 * USEC_PER_SEC;

static uint64_t stretch(uint64_t from_us, uint64_t to_us)
{
    return to_us - from_us <= STRETCH_MAX_US ? to_us - from_us : 0;
}

/* Counts the time on to the end of a window, and returns what of it is the window's. What lies
 * before the window was watched by nobody. */
static uint64_t count_on(struct ledger_device *device, uint64_t start_us, uint64_t end_us)
{
    uint64_t until_us = device->until_us, hole_us;

    start_us = MIN(start_us, end_us); /* the clock was set back in it */
    if (until_us == 0 || until_us - MIN(until_us, end_us) > STRETCH_MAX_US)
        until_us = start_us;
    if (until_us >= end_us) {
        device->until_us = until_us;
        return 0;
    }
    hole_us = start_us > until_us ? stretch(until_us, start_us) : 0;
    device->total_us += hole_us;
    device->unowned_us[UNOWNED_GAP] += hole_us;
    device->until_us = end_us;
    return stretch(MAX(start_us, until_us), end_us);
}

static void pay(struct ledger *ledger, uint32_t meter, const struct booking *booking,
                uint64_t time_us)
{
    struct ledger_device *device = &ledger->meters[meter].device;
    uint32_t workload = booking->process != LEDGER_NONE
                            ? ledger->processes[booking->process].workload
                            : booking->workload;
    uint32_t account;

    if (time_us == 0)
        return;
    if (booking->process == LEDGER_NONE && !booking->to_workload)
        device->unowned_us[booking->unowned] += time_us;
    else if (ledger_open_account(ledger, workload, meter, &account) < 0)
        device->unowned_us[UNOWNED_UNATTRIBUTED] += time_us; /* as its joules are */
    else
        ledger->accounts[account].account.device_us += time_us;
}

/* Everybody has the time from where the joules before their own end to where their own do: rounded
 * as it may be, all of it is given, and it takes no memory that could be missing. */
static void divide(struct ledger *ledger, uint32_t meter, uint64_t time_us, uint64_t energy_uj,
                   const struct booking *bookings, size_t count)
{
    uint64_t passed_uj = 0, passed_us = 0;

    for (size_t i = 0; i < count; i++) {
        uint64_t until_us;

        passed_uj += bookings[i].energy_uj;
        until_us = (uint64_t)((unsigned __int128)time_us * passed_uj / energy_uj);
        pay(ledger, meter, &bookings[i], until_us - passed_us);
        passed_us = until_us;
    }
}

void ledger_book_time(struct ledger *ledger, uint32_t meter, uint64_t start_us, uint64_t end_us,
                      const struct booking *bookings, size_t count)
{
    struct ledger_device *device = &ledger->meters[meter].device;
    uint64_t energy_uj = 0, time_us;

    if (!ledger->options.embodied.of[ledger->meters[meter].kind].known)
        return;
    for (size_t i = 0; i < count; i++)
        energy_uj += bookings[i].energy_uj;
    if (energy_uj == 0 && device->until_us == 0)
        return; /* it begins with its first joule: nobody knows since when the device is there */
    time_us = device->undivided_us + count_on(device, start_us, end_us);
    if (energy_uj == 0 && time_us <= STRETCH_MAX_US) {
        device->undivided_us = time_us;
        return;
    }
    device->undivided_us = 0;
    device->total_us += time_us;
    if (energy_uj > 0)
        divide(ledger, meter, time_us, energy_uj, bookings, count);
    else /* for so long nobody used it; who comes next did not either */
        device->unowned_us[UNOWNED_IDLE] += time_us;
}

int64_t ledger_time_imbalance_us(const struct ledger *ledger, uint32_t meter)
{
    const struct ledger_device *device = &ledger->meters[meter].device;
    uint64_t rest_us = device->total_us - ledger_owned(ledger, meter).device_us;

    for (size_t i = 0; i < UNOWNED_COUNT; i++)
        rest_us -= device->unowned_us[i];
    return (int64_t)rest_us;
}
