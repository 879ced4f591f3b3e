#include "cli/run_session.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <time.h>

#include "core/macros.h"
#include "host/proc.h"

/* The first reading: drivers take their time. A later one, at the ends of the command. */
static const uint64_t FIRST_READ_US = 2 * USEC_PER_SEC;
static const uint64_t READ_US = USEC_PER_SEC / 4;
/* Between the first two, so that the idle level is learned if nobody is busy. */
static const uint64_t LOOK_US = USEC_PER_SEC / 5;
static const uint64_t WINDOW_US = USEC_PER_SEC;
/* How often processes are looked for, at most; and the share of time that this may take. */
static const uint64_t SCAN_US = USEC_PER_SEC / 10;
enum { SCAN_SHARE = 50 };

/* A daemon's page is a second old, and so are its readings. */
static const uint64_t DAEMON_AGE_US = USEC_PER_SEC;
/* What a GPU counted last waits for samples of who was on it. */
static const uint64_t SAMPLES_US = 3 * USEC_PER_SEC / 2;
static const uint64_t DAEMON_SETTLE_US = 15 * USEC_PER_SEC;

static uint64_t now_us(void)
{
    return clock_system.monotonic_us(&clock_system);
}

static void sleep_us(uint64_t us)
{
    struct timespec left = {.tv_sec = (time_t)(us / USEC_PER_SEC),
                            .tv_nsec = (long)(us % USEC_PER_SEC * 1000)};

    while (nanosleep(&left, &left) < 0 && errno == EINTR)
        ;
}

static bool reads_beside_daemon(const char *source)
{
    static const char *const gpus[] = {"nvml", "dcgm", "drm"};

    for (size_t i = 0; i < ARRAY_SIZE(gpus); i++)
        if (strcmp(source, gpus[i]) == 0)
            return false;
    return true;
}

static uint64_t command_cpu_us(const struct run_session *session)
{
    const struct repetition *of = session->now;
    uint64_t cpu_us;

    if (!of)
        return 0;
    return of->has_cgroup && own_cgroup_read_cpu(&of->cgroup, &cpu_us) == 0
               ? cpu_us
               : family_cpu_us(&of->family);
}

static uint64_t command_memory_bytes(const struct run_session *session)
{
    const struct repetition *of = session->now;
    uint64_t bytes;

    if (!of)
        return 0;
    return of->has_cgroup && own_cgroup_read_memory(&of->cgroup, &bytes) == 0
               ? bytes
               : family_memory_bytes(&of->family);
}

/* Processors and memory are divided between the command and all others. */
static void report_usage(struct run_session *session)
{
    uint64_t total_us = command_cpu_us(session);
    uint64_t cpu_us = total_us - MIN(total_us, session->reported_cpu_us);
    uint64_t memory_bytes = command_memory_bytes(session);
    struct machine machine;
    struct sample_workload workloads[2];
    struct sample sample = {
        .kind = SAMPLE_USAGE,
        .t_us = clock_system.realtime_us(&clock_system),
        .usage = {.is_first = !session->has_reported, .count = 2, .workloads = workloads},
    };

    /* Until the daemon has read its meters again, there is nothing to divide. */
    if (session->has_reported && session->is_fed && session->fed_uj == session->divided_fed_uj)
        return;
    if (machine_read(&session->host, &machine) < 0)
        return;
    session->divided_fed_uj = session->fed_uj;
    session->reported_cpu_us = MAX(total_us, session->reported_cpu_us);
    if (session->has_reported) {
        /* /proc/stat counts ticks, cgroups time. */
        sample.usage.busy_us =
            MAX(machine.busy_us - MIN(machine.busy_us, session->machine.busy_us), cpu_us);
        sample.usage.capacity_us =
            machine.capacity_us - MIN(machine.capacity_us, session->machine.capacity_us);
    }
    sample.usage.memory_bytes = machine.memory_bytes;
    sample.usage.memory_used_bytes = machine.memory_used_bytes;
    workloads[0] = (struct sample_workload){.kind = WORKLOAD_UNIT,
                                            .id = BOOKS_COMMAND_ID,
                                            .container_id = "",
                                            .pod_uid = "",
                                            .cpu_us = cpu_us,
                                            .memory_bytes = memory_bytes};
    workloads[1] = (struct sample_workload){
        .kind = WORKLOAD_OTHER,
        .id = "other",
        .container_id = "",
        .pod_uid = "",
        .cpu_us = sample.usage.busy_us - cpu_us,
        .memory_bytes = machine.memory_used_bytes - MIN(machine.memory_used_bytes, memory_bytes),
    };
    if (pipeline_ingest(session->measurement->pipeline, &sample, 1) < 0)
        session->measurement->result = -ENOMEM;
    session->machine = machine;
    session->has_reported = true;
}

/* The meters that only the daemon may read, as if this process did. */
static void feed(struct run_session *session)
{
    struct sample samples[BOOKS_METERS_MAX];
    size_t count = books_copy_samples(&session->remote, clock_system.realtime_us(&clock_system),
                                      samples, ARRAY_SIZE(samples));

    if (!session->is_fed)
        return;
    session->fed_uj = 0;
    for (size_t i = 0; i < count; i++)
        session->fed_uj += samples[i].meter.counter_uj;
    if (pipeline_ingest(session->measurement->pipeline, samples, count) < 0)
        session->measurement->result = -ENOMEM;
}

/* A document that does not come leaves the last one. */
static void refresh_daemon(struct run_session *session, bool may_wait)
{
    if (run_daemon_refresh(session, may_wait))
        feed(session);
}

static void take_books(struct run_session *session)
{
    struct snapshot snapshot;

    snapshot_init(&snapshot);
    if (measurement_snapshot(session->measurement, &snapshot) == 0)
        (void)books_take_snapshot(&session->local, &snapshot);
    snapshot_done(&snapshot);
    if (session->is_fed)
        books_open_meters(&session->local, &session->remote);
    for (size_t i = 0; i < session->local.meter_count; i++) {
        struct books_meter *meter = &session->local.meters[i];

        meter->is_of_daemon =
            session->is_fed && (meter->kind == METER_PACKAGE || meter->kind == METER_DRAM);
    }
}

static bool has_kind(const struct books *books, enum meter_kind kind)
{
    for (size_t i = 0; i < books->meter_count; i++)
        if (books->meters[i].kind == kind)
            return true;
    return false;
}

/* A daemon has seen this node rest. */
static void learn_idle(struct run_session *session)
{
    for (size_t i = 0; i < session->remote.meter_count; i++) {
        const struct books_meter *meter = &session->remote.meters[i];

        if (meter->idle_w > 0)
            pipeline_learn_idle(session->measurement->pipeline, meter->kind, meter->id,
                                (uint64_t)(meter->idle_w * 1000));
    }
}

static bool reads_processors(const struct node *node)
{
    for (size_t i = 0; i < node->meter_count; i++)
        if (node->meters[i].kind == METER_PACKAGE && !node->meters[i].modelled)
            return true;
    return false;
}

static void read_first(struct run_session *session)
{
    const struct node *node = &session->measurement->pipeline->node;
    uint64_t began_us = now_us();

    (void)measurement_read_now(session->measurement, FIRST_READ_US);
    /* GPUs are found by the first reading of their driver. */
    (void)measurement_read_now(session->measurement,
                               FIRST_READ_US - MIN(FIRST_READ_US, now_us() - began_us));
    session->is_fed = session->daemon && !reads_processors(node);
    feed(session);
    report_usage(session);
    if (node->meter_count > 0)
        sleep_us(LOOK_US);
    learn_idle(session);
}

int run_session_open(struct run_session *session, const struct options *options, struct error *err)
{
    int r;

    *session = (struct run_session){.options = options,
                                    .signal_fd = -1,
                                    .host = {.procfs_fd = -1, .sysfs_fd = -1, .rootfs_fd = -1}};
    r = host_open(options->procfs_path, options->sysfs_path, options->rootfs_path, &session->host,
                  err);
    if (r == 0)
        r = run_daemon_open(session, err);
    if (r == 0)
        r = measurement_open(
            &(struct measurement_options){
                .options = options,
                .host = &session->host,
                .interval_us = WINDOW_US,
                .reads = session->daemon ? reads_beside_daemon : NULL,
                .reports_usage = true,
                .keeps_everything = true,
                .with_prices = true,
            },
            &session->measurement, err);
    if (r == 0)
        read_first(session);
    return r;
}

bool run_session_close(struct run_session *session)
{
    bool is_idle = measurement_close(session->measurement) && !session->hangs;

    daemon_client_close(session->daemon);
    books_done(&session->local);
    books_done(&session->remote);
    if (is_idle)
        host_close(&session->host);
    return is_idle;
}

/* The meters alone. */
static void copy_books(struct books *to, const struct books *from)
{
    *to = *from;
    to->rows = NULL;
    to->row_count = to->row_capacity = 0;
}

/* What the command has used so far, and all meters. */
static void sum_up(const struct run_session *session, uint64_t *ret_command_uj,
                   uint64_t *ret_all_uj)
{
    struct result result;
    uint64_t command_uj = 0, all_uj = 0;

    run_session_result(session, session->now, &result);
    for (size_t i = 0; i < result.meter_count; i++) {
        command_uj += result.meters[i].command_uj;
        all_uj += result.meters[i].counted_uj;
    }
    *ret_command_uj = command_uj;
    *ret_all_uj = all_uj;
}

/* Reads all at this moment. */
static void read_all(struct run_session *session)
{
    (void)measurement_read_now(session->measurement, READ_US);
    family_scan(&session->now->family);
    report_usage(session);
    take_books(session);
}

void run_session_begin(struct run_session *session, struct repetition *repetition)
{
    session->now = repetition;
    session->reported_cpu_us = 0;
    refresh_daemon(session, true);
    read_all(session);
    copy_books(&repetition->before, &session->local);
    copy_books(&repetition->daemon_before, &session->remote);
    session->command_uj = session->step_uj = session->step_all_uj = 0;
    session->watts = 0;
    session->step_us = repetition->began_us = now_us();
    session->tick_us = session->step_us + WINDOW_US;
    repetition->ended_us = repetition->began_us;
}

/* The peak is of windows; energy of a GPU that was divided late must not make one. */
static void note_step(struct run_session *session)
{
    uint64_t command_uj, all_uj, t_us = now_us(), step_us = t_us - session->step_us;
    double most_w, w;

    sum_up(session, &command_uj, &all_uj);
    w = (double)(command_uj - MIN(command_uj, session->step_uj)) / (double)MAX(step_us, 1UL);
    most_w = (double)(all_uj - MIN(all_uj, session->step_all_uj)) / (double)MAX(step_us, 1UL);
    session->watts = MIN(w, most_w);
    if (step_us >= WINDOW_US - WINDOW_US / 10)
        session->now->peak_w = MAX(session->now->peak_w, session->watts);
    session->command_uj = command_uj;
    session->step_uj = command_uj;
    session->step_all_uj = all_uj;
    session->step_us = t_us;
}

uint64_t run_session_tick(struct run_session *session)
{
    struct repetition *repetition = session->now;
    uint64_t began_us = now_us(), took_us;

    measurement_read(session->measurement);
    if (began_us >= session->tick_us) {
        session->now->ended_us = began_us;
        refresh_daemon(session, false);
        read_all(session);
        copy_books(&repetition->after, &session->local);
        copy_books(&repetition->daemon_after, &session->remote);
        repetition->cpu_us = MAX(repetition->cpu_us, command_cpu_us(session));
        note_step(session);
        session->tick_us = MAX(session->tick_us + WINDOW_US, now_us());
        return session->tick_us;
    }
    family_scan(&repetition->family);
    took_us = now_us() - began_us;
    return MIN(session->tick_us, now_us() + MAX(SCAN_US, SCAN_SHARE * took_us));
}

void run_session_end(struct run_session *session)
{
    struct repetition *repetition = session->now;

    repetition->ended_us = now_us();
    if (session->is_fed) {
        sleep_us(DAEMON_AGE_US); /* the reading that has all of it */
        refresh_daemon(session, true);
    }
    read_all(session);
    copy_books(&repetition->after, &session->local);
    if (session->daemon && !session->is_fed)
        refresh_daemon(session, true);
    run_daemon_end(session);
    copy_books(&repetition->daemon_after, &session->remote);
    repetition->cpu_us = MAX(repetition->cpu_us, command_cpu_us(session));
    repetition->missed_us = family_missed_us(&repetition->family);
    repetition->left_running = family_count_alive(&repetition->family);
    session->now = NULL;
}

static bool is_member(const struct repetition *repetitions, size_t count, uint32_t pid)
{
    for (size_t i = 0; i < count; i++)
        if (family_find(&repetitions[i].family, (pid_t)pid))
            return true;
    return false;
}

static bool uses_gpus(const struct books *books, const struct repetition *repetitions, size_t count)
{
    for (size_t i = 0; i < books->row_count; i++)
        if (is_member(repetitions, count, books->rows[i].pid))
            return true;
    return false;
}

/* Has the daemon divided what these GPUs had counted then? */
static bool is_divided(const struct books *now, const struct books *then)
{
    for (size_t i = 0; i < then->meter_count; i++) {
        const struct books_meter *target = &then->meters[i];
        const struct books_meter *meter = books_find(now, target->kind, target->id);

        if (target->kind == METER_GPU && (!meter || meter->divided_uj < target->counted_uj))
            return false;
    }
    return true;
}

static void settle_daemon(struct run_session *session, struct repetition *repetitions, size_t count)
{
    struct repetition *last = &repetitions[count - 1];
    uint64_t until_us = now_us() + DAEMON_SETTLE_US;
    struct books target;

    if (!has_kind(&session->remote, METER_GPU))
        return;
    sleep_us(DAEMON_AGE_US);
    refresh_daemon(session, true);
    copy_books(&last->daemon_after, &session->remote);
    if (!uses_gpus(&session->remote, repetitions, count))
        return;
    copy_books(&target, &session->remote);
    while (!is_divided(&session->remote, &target) && now_us() < until_us) {
        sleep_us(DAEMON_AGE_US);
        refresh_daemon(session, true);
    }
}

static void settle_local(struct run_session *session)
{
    uint64_t until_us = now_us() + SAMPLES_US;

    while (now_us() < until_us) {
        poll(&(struct pollfd){.fd = session->measurement->wake_fd, .events = POLLIN}, 1, 100);
        measurement_read(session->measurement);
    }
}

void run_session_settle(struct run_session *session, struct repetition *repetitions, size_t count)
{
    if (session->daemon) {
        settle_daemon(session, repetitions, count);
        return;
    }
    if (uses_gpus(&session->local, repetitions, count))
        settle_local(session);
    if (pipeline_finish(session->measurement->pipeline) < 0)
        session->measurement->result = -ENOMEM;
    take_books(session);
}

static bool gives_any(const struct options *options, const char *const *flags)
{
    bool any = false;

    for (; *flags; flags++)
        any |= options_is_given(options, *flags);
    return any;
}

void run_session_result(const struct run_session *session, const struct repetition *repetition,
                        struct result *ret_result)
{
    static const char *const factors[] = {"emissions.factor", "emissions.zone",
                                          "emissions.providers", NULL};
    static const char *const prices[] = {"cost.price", "cost.tariff-file", NULL};
    const bool with_daemon = session->daemon != NULL;

    result_make(
        &(struct result_input){
            .status = repetition->status,
            .is_interrupted = repetition->is_interrupted,
            .wall_us = repetition->ended_us - repetition->began_us,
            .cpu_us = repetition->cpu_us,
            .peak_w = repetition->peak_w,
            .family = &repetition->family,
            .boot_us = proc_read_boot_us(&(struct host){.procfs_fd = repetition->family.proc_fd}),
            .is_estimated = !repetition->has_cgroup,
            .missed_us = repetition->missed_us,
            .boundary_us = 2 * DAEMON_AGE_US, /* one at each end */
            .lost_us = repetition->lost_us,
            .has_own_factor = gives_any(session->options, factors),
            .has_own_price = gives_any(session->options, prices),
            .before = &repetition->before,
            .after = &repetition->after,
            .daemon_before = with_daemon ? &repetition->daemon_before : NULL,
            .daemon_after = with_daemon ? &repetition->daemon_after : NULL,
            .gpus = with_daemon ? &session->remote : &session->local,
        },
        ret_result);
    ret_result->left_running = repetition->left_running;
}
