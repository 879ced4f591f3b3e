#include "attribution/resumed_meters.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "attribution/grow.h"

enum { TEXT_BYTES = 4096 };

static void code_level(struct idle_level *level, struct coder *coder)
{
    level->count = code_u64(coder, level->count, IDLE_MEMORY);
    level->next = code_u64(coder, level->next, IDLE_MEMORY - 1);
    level->level_mw = code_u64(coder, level->level_mw, UINT32_MAX);
    for (size_t i = 0; i < level->count; i++)
        level->seen_mw[i] = (uint32_t)code_u64(coder, level->seen_mw[i], UINT32_MAX);
}

void idle_levels_code(struct idle_levels *levels, struct coder *coder)
{
    code_level(&levels->without_context, coder);
    code_level(&levels->with_context, coder);
}

void resumed_meter_code(struct resumed_meter *meter, struct coder *coder)
{
    meter->kind = (enum meter_kind)code_u64(coder, meter->kind, METER_KINDS - 1);
    code_allocated_text(coder, &meter->source, TEXT_BYTES);
    code_allocated_text(coder, &meter->id, TEXT_BYTES);
    meter->has_counter = code_u64(coder, meter->has_counter, 1);
    meter->is_integral = code_u64(coder, meter->is_integral, 1);
    meter->counter_uj = code_u64(coder, meter->counter_uj, UINT64_MAX);
    meter->read_us = code_u64(coder, meter->read_us, UINT64_MAX);
    meter->has_hardware = code_u64(coder, meter->has_hardware, 1);
    meter->hardware = code_u64(coder, meter->hardware, UINT64_MAX);
    meter->is_booked = code_u64(coder, meter->is_booked, 1);
    meter->pending_uj = code_u64(coder, meter->pending_uj, UINT64_MAX);
    idle_levels_code(&meter->idle, coder);
    if (!meter->id)
        coder_reject(coder);
}

static const char *text_or_empty(const char *text)
{
    return text ? text : "";
}

bool resumed_meters_take(struct resumed_meters *meters, enum meter_kind kind, const char *source,
                         const char *id, struct resumed_meter *ret_meter)
{
    for (size_t i = 0; i < meters->count; i++) {
        struct resumed_meter *meter = &meters->items[i];

        if (meter->kind != kind || strcmp(text_or_empty(meter->source), source) != 0 ||
            strcmp(meter->id, id) != 0)
            continue;
        *ret_meter = *meter;
        *meter = meters->items[--meters->count];
        return true;
    }
    return false;
}

void resumed_meters_disown(struct resumed_meters *meters, enum meter_kind kind, const char *source)
{
    for (size_t i = 0; i < meters->count; i++) {
        struct resumed_meter *meter = &meters->items[i];

        if (meter->kind == kind && (!source || strcmp(text_or_empty(meter->source), source) != 0))
            meter->has_hardware = false;
    }
}

uint64_t resumed_meters_highest_uj(const struct resumed_meters *meters, enum meter_kind kind,
                                   const char *id)
{
    uint64_t highest_uj = 0;

    for (size_t i = 0; i < meters->count; i++) {
        const struct resumed_meter *meter = &meters->items[i];

        if (meter->has_counter && meter->kind == kind && strcmp(meter->id, id) == 0)
            highest_uj = MAX(highest_uj, meter->counter_uj);
    }
    return highest_uj;
}

int resumed_meters_keep(struct resumed_meters *meters, const struct resumed_meter *meter)
{
    struct resumed_meter copy = *meter;

    copy.source = meter->source ? strdup(meter->source) : NULL;
    copy.id = strdup(meter->id);
    if ((meter->source && !copy.source) || !copy.id || meters->count == RESUMED_METERS_MAX ||
        grow_zeroed(&meters->items, &meters->slots, meters->count + 1, sizeof(*meters->items)) <
            0) {
        resumed_meter_done(&copy);
        return -ENOMEM;
    }
    meters->items[meters->count++] = copy;
    return 0;
}

void resumed_meter_done(struct resumed_meter *meter)
{
    free(meter->source);
    free(meter->id);
    *meter = (struct resumed_meter){0};
}

void resumed_meters_done(struct resumed_meters *meters)
{
    while (meters->count > 0)
        resumed_meter_done(&meters->items[--meters->count]);
    free(meters->items);
    *meters = (struct resumed_meters){0};
}

bool resumed_meter_find_gap(const struct resumed_meter *meter, const struct counter *hardware,
                            uint64_t t_us, uint64_t *ret_gap_uj)
{
    return meter->has_hardware && hardware &&
           counter_find_gap(hardware, meter->hardware, meter->read_us, t_us, ret_gap_uj);
}
