#include "collector/source_set.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/log.h"
#include "core/macros.h"
#include "identity/cgroup_path.h"
#include "identity/owner.h"

/* A read that takes this many intervals, or this long, hangs. */
enum { DEADLINE_INTERVALS = 3 };
static const uint64_t DEADLINE_MIN_US = USEC_PER_SEC;

/* How long batches are taken in a row: a source that is faster than the books must not keep the
 * loop from its signals and scrapes. */
static const uint64_t READ_MAX_US = USEC_PER_SEC / 5;

/* The arguments of a process seldom take long to read. */
enum { PROGRAM_WAIT_MS = 5 };

enum cgroup_verdict source_set_classify_cgroup(void *context, const char *path,
                                               struct workload_owner *ret_owner)
{
    static const enum cgroup_verdict verdicts[WORKLOAD_KINDS] = {
        [WORKLOAD_CONTAINER] = CGROUP_IS_WORKLOAD, [WORKLOAD_SLURM] = CGROUP_IS_WORKLOAD,
        [WORKLOAD_LSF] = CGROUP_IS_WORKLOAD,       [WORKLOAD_PBS] = CGROUP_IS_WORKLOAD,
        [WORKLOAD_VM] = CGROUP_IS_WORKLOAD,        [WORKLOAD_LXC] = CGROUP_IS_WORKLOAD,
        [WORKLOAD_NSPAWN] = CGROUP_IS_WORKLOAD,    [WORKLOAD_UNIT] = CGROUP_IS_HOLDER,
        [WORKLOAD_USER] = CGROUP_IS_HOLDER, /* all others are CGROUP_IS_PASSAGE */
    };
    struct cgroup_place place;

    (void)context;
    cgroup_path_parse(span_of(path), &place);
    owner_find(&place, OWNER_UID_UNKNOWN, ret_owner);
    if (ret_owner->kind == WORKLOAD_POD && place.pod_container_id[0] != '\0')
        return CGROUP_IS_WORKLOAD;
    return verdicts[ret_owner->kind];
}

static void wake_loop(const struct source_set *set)
{
    static const uint64_t one = 1;

    (void)!write(set->wake_fd, &one, sizeof(one));
}

static int add_unit(const struct source_context *context, const struct source_unit *unit)
{
    struct source_set *set = context->owner;
    bool has_room;

    pthread_mutex_lock(&set->lock);
    has_room = set->found_count < SOURCE_SET_RUNNERS_MAX;
    if (has_room)
        set->found[set->found_count++] = *unit;
    pthread_mutex_unlock(&set->lock);
    wake_loop(set);
    return has_room ? 0 : -ENOSPC;
}

void source_set_init(struct source_set *set, const struct source_context *context, int wake_fd,
                     uint64_t retry_us)
{
    *set = (struct source_set){.context = *context, .wake_fd = wake_fd, .retry_us = retry_us};
    set->context.add_unit = add_unit;
    set->context.classify_cgroup = source_set_classify_cgroup;
    set->context.owner = set;
    set->context.package_is_metered = &set->package_is_metered;
    set->context.program_wait_ms = PROGRAM_WAIT_MS;
    for (size_t i = 0; i < SOURCE_SET_TABLE_MAX && source_table[i]; i++)
        if (source_is_off(context->switches, source_table[i]->name))
            set->table[i].due_us = UINT64_MAX;
    pthread_mutex_init(&set->lock, NULL);
}

static int start_runner(struct source_set *set, const struct source_unit *unit, size_t table_index)
{
    const struct clock *clock = set->context.clock;
    struct source_set_runner *added = &set->runners[set->runner_count];
    struct runner *runner;
    int r = set->runner_count < SOURCE_SET_RUNNERS_MAX ? 0 : -ENOSPC;

    if (r == 0)
        r = runner_start(unit, clock, MAX(DEADLINE_INTERVALS * unit->interval_us, DEADLINE_MIN_US),
                         set->wake_fd, &runner);
    if (r < 0) {
        unit->ops->close(unit->state);
        return r;
    }
    *added = (struct source_set_runner){
        .runner = runner,
        .was_up = true,
        .table_index = table_index,
        /* found while devices are released */
        .is_closing = unit->ops->holds_device && clock->monotonic_us(clock) < set->release_until_us,
    };
    if (added->is_closing)
        runner_request_stop(runner);
    set->runner_count++;
    set->has_changed = true;
    return 0;
}

/* Taken out under the lock, one by one: starting one takes a while. */
static bool take_found(struct source_set *set, struct source_unit *ret_unit)
{
    bool any;

    pthread_mutex_lock(&set->lock);
    any = set->found_count > 0;
    if (any)
        *ret_unit = set->found[--set->found_count];
    pthread_mutex_unlock(&set->lock);
    return any;
}

static void start_found(struct source_set *set)
{
    struct source_unit unit;

    while (take_found(set, &unit)) {
        int r = start_runner(set, &unit, SOURCE_SET_TABLE_MAX);

        if (r < 0)
            log_error("cannot start a thread for a source", "source", unit.name, "error",
                      strerror(-r));
    }
}

static int open_one(struct source_set *set, size_t index, struct error *err)
{
    const struct source_ops *ops = source_table[index];
    struct source_unit unit = {
        .ops = ops,
        .interval_us = MAX(ops->interval_us, set->context.interval_us),
    };
    int r = ops->open(&set->context, &unit.state, err);

    if (r < 0)
        return r;
    if (ops->interval_max_us > 0)
        unit.interval_us = MIN(unit.interval_us, ops->interval_max_us);
    snprintf(unit.name, sizeof(unit.name), "%s", ops->name);
    r = start_runner(set, &unit, index);
    if (r < 0)
        return error_set(err, r, "cannot start a thread for source '%s': %s", ops->name,
                         strerror(-r));
    set->table[index].due_us = UINT64_MAX;
    return 0;
}

int source_set_open_due(struct source_set *set, uint64_t now_us, struct error *err)
{
    int result = 0;

    for (size_t i = 0; i < SOURCE_SET_TABLE_MAX && source_table[i]; i++) {
        struct error why = {""};
        int r;

        if (now_us < set->table[i].due_us)
            continue;
        set->table[i].due_us = now_us + set->retry_us;
        r = open_one(set, i, &why);
        if (r == 0 || r == -ENODEV)
            continue;
        if (err && r != -ENOTSUP) {
            result = error_set(err, r, "%s", why.text);
            continue;
        }
        if (!set->table[i].is_logged)
            log_warn("source cannot be used", "source", source_table[i]->name, "error", why.text);
        set->table[i].is_logged = true;
    }
    start_found(set);
    return result;
}

bool source_set_has_meter(const struct source_set *set)
{
    for (size_t i = 0; i < set->runner_count; i++)
        if (!runner_unit(set->runners[i].runner)->ops->is_no_meter)
            return true;
    return false;
}

uint64_t source_set_next_due_us(const struct source_set *set)
{
    uint64_t due_us = UINT64_MAX;

    for (size_t i = 0; i < SOURCE_SET_TABLE_MAX && source_table[i]; i++)
        due_us = MIN(due_us, set->table[i].due_us);
    return due_us;
}

static const char *name_of(const struct source_set *set, size_t index)
{
    return runner_unit(set->runners[index].runner)->name;
}

/* Some know only after the first read whether they are on this machine. */
static bool may_be_absent(const struct source_set *set, size_t index,
                          const struct runner_status *status)
{
    return set->runners[index].table_index < SOURCE_SET_TABLE_MAX && !status->known;
}

static void log_change(struct source_set *set, size_t index, const struct runner_status *status)
{
    if (status->up == set->runners[index].was_up || may_be_absent(set, index, status))
        return;
    set->runners[index].was_up = status->up;
    set->has_changed = true;
    if (status->up)
        log_info("source is back", "source", name_of(set, index));
    else
        log_warn("source is down; its series go stale", "source", name_of(set, index), "error",
                 status->error);
}

void source_set_note(struct source_set *set)
{
    for (size_t i = 0; i < set->runner_count; i++) {
        struct runner_status status;

        runner_get_status(set->runners[i].runner, &status);
        log_change(set, i, &status);
    }
}

/* A source of the table is opened again from `due_us` on. */
static void stop_runner(struct source_set *set, size_t index, uint64_t due_us, uint64_t wait_us)
{
    size_t table_index = set->runners[index].table_index;
    const struct source_unit unit = *runner_unit(set->runners[index].runner);

    if (!runner_stop(set->runners[index].runner, wait_us)) {
        set->has_left_one = true;
        log_warn("source hangs and was left behind", "source", unit.name);
    }
    if (table_index < SOURCE_SET_TABLE_MAX)
        set->table[table_index].due_us = due_us;
    set->runners[index] = set->runners[--set->runner_count];
    set->has_changed = true;
}

static void note_meters(struct source_set *set, const struct batch *batch)
{
    for (size_t i = 0; i < batch->count; i++)
        if (batch->samples[i].kind == SAMPLE_METER &&
            batch->samples[i].meter.kind == METER_PACKAGE && !batch->samples[i].meter.modelled)
            atomic_store(&set->package_is_metered, true);
}

/* Once for each such GPU. */
static void number_gpus(struct source_set *set, const struct source_unit *unit, struct batch *batch)
{
    if (gpu_numbers_apply(&set->numbers, unit->ops, batch) == 0)
        return;
    if (set->numbers.is_full)
        log_warn("a GPU is left out: there is no index left for it", "source", unit->name);
    else
        log_warn("a GPU of another source has this GPU's index; until the next start it is shown "
                 "under the next that is free",
                 "source", unit->name);
}

void source_set_read(struct source_set *set, uint64_t now_us,
                     void (*take)(void *context, const struct batch *batch), void *context)
{
    const struct clock *clock = set->context.clock;
    uint64_t until_us = now_us + READ_MAX_US;
    bool is_late = false;

    start_found(set);
    for (size_t i = set->runner_count; i-- > 0;) {
        struct runner *runner = set->runners[i].runner;
        struct runner_status status;
        struct batch *batch;

        /* Before the batches: one that is gone has queued its last. */
        runner_get_status(runner, &status);
        while ((batch = runner_next_batch(runner))) {
            note_meters(set, batch);
            number_gpus(set, runner_unit(runner), batch);
            take(context, batch);
            runner_recycle(runner, batch);
            is_late = clock->monotonic_us(clock) >= until_us;
            if (is_late)
                break;
        }
        log_change(set, i, &status);
        if (set->runners[i].is_closing && status.has_ended)
            stop_runner(set, i, set->release_until_us, USEC_PER_SEC);
        else if (status.gone)
            stop_runner(set, i, now_us + set->retry_us, USEC_PER_SEC);
    }
    if (is_late)
        wake_loop(set); /* for those that are left */
}

void source_set_request_read(struct source_set *set)
{
    start_found(set);
    for (size_t i = 0; i < set->runner_count; i++)
        if (runner_unit(set->runners[i].runner)->interval_us <= set->context.interval_us)
            set->runners[i].awaited = runner_request_read(set->runners[i].runner);
}

bool source_set_has_read(const struct source_set *set)
{
    for (size_t i = 0; i < set->runner_count; i++) {
        struct runner_status status;

        runner_get_status(set->runners[i].runner, &status);
        if (status.up && status.reads < set->runners[i].awaited)
            return false;
    }
    return true;
}

int source_set_describe(struct source_set *set, struct snapshot *snapshot)
{
    struct snapshot_source *rows = arena_array(&snapshot->arena, set->runner_count, sizeof(*rows));
    size_t count = 0;

    if (!rows)
        return -ENOMEM;
    for (size_t i = 0; i < set->runner_count; i++) {
        struct runner_status status;
        const char *name = name_of(set, i);

        runner_get_status(set->runners[i].runner, &status);
        if (may_be_absent(set, i, &status))
            continue;
        rows[count] = (struct snapshot_source){
            .name = arena_copy(&snapshot->arena, name, strlen(name)),
            .up = status.up,
            .age_us = status.age_us,
            .duration_us = status.duration_us,
            .errors = status.errors,
        };
        if (!rows[count++].name)
            return -ENOMEM;
    }
    snapshot->sources = rows;
    snapshot->source_count = count;
    return 0;
}

bool source_set_is_releasing(const struct source_set *set, uint64_t now_us)
{
    return now_us < set->release_until_us || source_set_find_closing(set) != NULL;
}

void source_set_release_devices(struct source_set *set, uint64_t until_us)
{
    set->release_until_us = until_us;
    start_found(set);
    for (size_t i = 0; i < set->runner_count; i++) {
        if (!runner_unit(set->runners[i].runner)->ops->holds_device)
            continue;
        runner_request_stop(set->runners[i].runner);
        set->runners[i].is_closing = true;
    }
}

const char *source_set_find_closing(const struct source_set *set)
{
    for (size_t i = 0; i < set->runner_count; i++)
        if (set->runners[i].is_closing)
            return name_of(set, i);
    return NULL;
}

/* Those that were found since the last read, and have no runner. */
static void close_found(struct source_set *set)
{
    struct source_unit unit;

    while (take_found(set, &unit))
        unit.ops->close(unit.state);
}

/* All together: those that hang share the wait. */
bool source_set_stop(struct source_set *set, uint64_t wait_us)
{
    const struct clock *clock = set->context.clock;
    uint64_t until_us = clock->monotonic_us(clock) + wait_us;

    for (int pass = 0; pass < 2; pass++)
        for (size_t i = set->runner_count; i-- > 0;) {
            struct runner *runner = set->runners[i].runner;
            uint64_t now_us = clock->monotonic_us(clock);

            if (pass == 0)
                runner_request_stop(runner);
            else
                stop_runner(set, i, UINT64_MAX, until_us > now_us ? until_us - now_us : 0);
        }
    close_found(set);
    return !set->has_left_one;
}
