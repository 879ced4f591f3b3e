#include "attribution/gpu/intensity/programs.h"

#include "core/macros.h"

/* Drivers, boards and programs change: what is old counts little, then nothing. */
static const uint64_t DAY_US = 86400 * USEC_PER_SEC;
static const uint64_t OLD_DAYS = 30, EXPIRED_DAYS = 180;
static const double OLD_SLOTS = 5;

static struct program *programs_find(struct programs *programs, uint64_t key)
{
    for (size_t i = 0; i < PROGRAMS_MAX && key != 0; i++)
        if (programs->all[i].key == key)
            return &programs->all[i];
    return NULL;
}

static struct program *programs_make_room(struct programs *programs)
{
    struct program *oldest = &programs->all[0];

    for (size_t i = 0; i < PROGRAMS_MAX; i++) {
        if (programs->all[i].key == 0)
            return &programs->all[i];
        if (programs->all[i].turn < oldest->turn)
            oldest = &programs->all[i];
    }
    return oldest;
}

void programs_measure(struct programs *programs, uint64_t key, const struct state *alone,
                      uint64_t now_us)
{
    struct program *program = programs_find(programs, key);

    if (key == 0)
        return;
    /* GPM may be missing for a moment, as at the start: only for long does it wear memory out. */
    if (program && program->is_measured && program->has_gpm && !alone->has_gpm) {
        program->slots -= alone->weight;
        if (program->slots > 0)
            return;
    }
    if (!program || !program->is_measured || program->has_gpm != alone->has_gpm) {
        if (!program)
            program = programs_make_room(programs);
        *program = (struct program){.key = key, .has_gpm = alone->has_gpm, .is_measured = true};
    }
    program->used_us = now_us;
    program->turn = ++programs->turn;
    program->slots = MIN(program->slots + alone->weight, PROGRAMS_SLOTS_MAX);
    activity_average(&program->mean, &alone->mean, alone->weight / program->slots);
}

void programs_learn(struct programs *programs, uint64_t key, const struct program *learned)
{
    struct program *program = programs_find(programs, key);

    if (key == 0 || (program && program->is_measured))
        return;
    if (!program)
        program = programs_make_room(programs);
    *program = *learned;
    program->key = key;
    program->turn = ++programs->turn;
    program->is_measured = false;
}

const struct program *programs_recall(struct programs *programs, uint64_t key, uint64_t now_us)
{
    struct program *program = programs_find(programs, key);
    uint64_t age_us;

    if (!program)
        return NULL;
    age_us = now_us - MIN(now_us, program->used_us);
    if (age_us > EXPIRED_DAYS * DAY_US) {
        *program = (struct program){0};
        return NULL;
    }
    if (age_us > OLD_DAYS * DAY_US)
        program->slots = MIN(program->slots, OLD_SLOTS);
    program->used_us = MAX(program->used_us, now_us);
    program->turn = ++programs->turn;
    return program;
}

/* The least recently used of those used after `turn`, or NULL. */
static const struct program *programs_next(const struct programs *programs, uint64_t turn)
{
    const struct program *next = NULL;

    for (size_t i = 0; i < PROGRAMS_MAX; i++) {
        const struct program *program = &programs->all[i];

        if (program->key != 0 && program->turn > turn && (!next || program->turn < next->turn))
            next = program;
    }
    return next;
}

void programs_adopt(struct programs *to, const struct programs *from, double slots_max)
{
    const struct program *news = slots_max > 0 ? programs_next(from, 0) : NULL;

    for (; news; news = programs_next(from, news->turn)) {
        struct program *known = programs_find(to, news->key);
        double slots = MIN(news->slots, slots_max);

        if (known && (known->is_measured > news->is_measured ||
                      (known->is_measured == news->is_measured && known->slots >= slots)))
            continue;
        if (!known)
            known = programs_make_room(to);
        *known = *news;
        known->slots = slots;
        known->turn = ++to->turn;
    }
}

void programs_cap(struct programs *programs, double slots_max)
{
    for (size_t i = 0; i < PROGRAMS_MAX; i++)
        programs->all[i].slots = MIN(programs->all[i].slots, slots_max);
}

static void program_code(struct program *program, struct coder *coder)
{
    struct activity *mean = &program->mean;

    program->key = code_u64(coder, program->key, UINT64_MAX);
    program->used_us = code_u64(coder, program->used_us, UINT64_MAX);
    program->turn = code_u64(coder, program->turn, UINT64_MAX);
    program->slots = code_double(coder, program->slots);
    for (size_t i = 0; i < UNIT_COUNT; i++)
        mean->units[i] = code_double(coder, mean->units[i]);
    mean->power_w = code_double(coder, mean->power_w);
    mean->idle_w = code_double(coder, mean->idle_w);
    mean->log_clock = code_double(coder, mean->log_clock);
    mean->log_clock_squared = code_double(coder, mean->log_clock_squared);
    program->has_gpm = code_u64(coder, program->has_gpm, 1);
    program->is_measured = code_u64(coder, program->is_measured, 1);
    if (program->key == 0 || program->slots < 0 || program->slots > PROGRAMS_SLOTS_MAX)
        coder_reject(coder);
}

void programs_code(struct programs *programs, struct coder *coder)
{
    size_t count = code_u64(coder, programs_count(programs), PROGRAMS_MAX), at = 0;

    programs->turn = code_u64(coder, programs->turn, UINT64_MAX);
    for (size_t i = 0; i < count && !coder->in.is_broken; i++) {
        while (!coder_is_unpacking(coder) && programs->all[at].key == 0)
            at++;
        program_code(&programs->all[at++], coder);
    }
}

size_t programs_count(const struct programs *programs)
{
    size_t count = 0;

    for (size_t i = 0; i < PROGRAMS_MAX; i++)
        count += programs->all[i].key != 0;
    return count;
}
