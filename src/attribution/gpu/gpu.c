#include "attribution/gpu/gpu.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"

/* The counter ticks every 100 ms (H200), and a reading is late by anything below that. */
static const uint64_t TICK_US = 100000;

/* Samples arrive up to 200 ms late, the list that first names a process up to a second. */
static const uint64_t SETTLE_DELAY_US = USEC_PER_SEC;

/* If nothing was read for this long (and five windows), nobody can say who used the energy. */
static const uint64_t GAP_US = 10 * USEC_PER_SEC;
enum { GAP_WINDOWS = 5 };

/* A process that is gone from a list so soon after a window began has no part in it. */
static const uint64_t RENEWAL_US = 350000;

/* Boards whose limit is unknown: more than any that is sold today. */
static const uint64_t POWER_LIMIT_DEFAULT_MW = 3000000;

static struct window *open_window(struct gpu *gpu)
{
    return &gpu->windows[(gpu->first_window + gpu->window_count - 1) % GPU_WINDOWS_MAX];
}

/* A board that was away: windows, lists and places are counted anew, and what its processes
 * remember of them is of before. */
static void forget_sightings(struct gpu *gpu)
{
    for (size_t i = 0; i < gpu->ledger->process_slots; i++) {
        struct ledger_process *process = &gpu->ledger->processes[i];

        if (!process->used || process->meter != gpu->meter)
            continue;
        process->seen.window = 0;
        process->seen.tenant = 0;
        memset(process->seen.list_round, 0, sizeof(process->seen.list_round));
    }
}

int gpu_init(struct gpu *gpu, uint32_t index, const struct sample_device *device,
             const struct gpu_options *options, struct ledger *ledger)
{
    int r;

    *gpu = (struct gpu){
        .options = *options,
        .ledger = ledger,
        .index = index,
        .uuid = strdup(device->uuid),
        .name = strdup(device->name),
        .driver = strdup(device->driver),
        .power_limit_mw = device->power_limit_mw,
        .memory_bytes = device->memory_bytes,
        .has_minor = device->has_minor,
        .minor = device->minor,
        .window_count = 1,
    };
    r = gpu->uuid && gpu->name && gpu->driver ? 0 : -ENOMEM;
    if (r == 0)
        r = gpu_learning_init(gpu);
    if (r == 0)
        r = ledger_add_meter(ledger, METER_GPU, device->uuid, index, &gpu->meter);
    if (r < 0) {
        gpu_done(gpu);
        return r;
    }
    forget_sightings(gpu);
    window_begin(open_window(gpu), 1, 0);
    return 0;
}

void gpu_done(struct gpu *gpu)
{
    for (size_t i = 0; i < GPU_WINDOWS_MAX; i++)
        window_done(&gpu->windows[i]);
    free(gpu->uuid);
    free(gpu->name);
    free(gpu->driver);
    free(gpu->learning);
    free(gpu->held);
    free(gpu->attached);
    free(gpu->claimants);
    free(gpu->shares);
    free(gpu->bookings);
    *gpu = (struct gpu){0};
}

static uint8_t lists_in_force(const struct gpu *gpu, const struct ledger_process *process)
{
    uint8_t lists = 0;

    for (int kind = 0; kind < SAMPLE_LIST_KINDS; kind++)
        if (gpu->list_round[kind] > 0 && process->seen.list_round[kind] == gpu->list_round[kind])
            lists |= (uint8_t)(1 << kind);
    return lists;
}

bool gpu_is_listed(const struct gpu *gpu, const struct ledger_process *process)
{
    return lists_in_force(gpu, process) != 0;
}

bool gpu_is_mps_client(const struct gpu *gpu, const struct ledger_process *process)
{
    return lists_in_force(gpu, process) & (1 << SAMPLE_LIST_MPS);
}

bool gpu_is_live(const struct gpu *gpu, const struct ledger_process *process)
{
    return process->seen.last_us >= gpu->settled_until_us || gpu_is_listed(gpu, process);
}

uint64_t gpu_pending_uj(const struct gpu *gpu)
{
    uint64_t pending_uj = 0;

    for (size_t i = 0; i < gpu->window_count; i++)
        pending_uj += gpu->windows[(gpu->first_window + i) % GPU_WINDOWS_MAX].energy_uj;
    return pending_uj;
}

static void mark_seen(struct ledger_process *process, uint64_t t_us)
{
    process->seen.last_us = MAX(process->seen.last_us, t_us);
}

/* Notes whether anybody holds a context, as far as the lists in force tell. */
static void note_context(struct gpu *gpu)
{
    struct window *window = open_window(gpu);
    bool named = false, read = false;

    for (int kind = 0; kind < SAMPLE_LIST_KINDS; kind++) {
        named |= gpu->list_named[kind];
        read |= gpu->list_round[kind] > 0;
    }
    window->saw_context |= named;
    window->saw_no_context |= read && !named;
}

/* Looks at closed windows once, those that ended by `until_us`. */
static void observe_windows(struct gpu *gpu, uint64_t until_us)
{
    for (; gpu->observed_count + 1 < gpu->window_count; gpu->observed_count++) {
        const struct window *window =
            &gpu->windows[(gpu->first_window + gpu->observed_count) % GPU_WINDOWS_MAX];

        if (window->end_us > until_us)
            return;
        gpu_observe_window(gpu, window);
    }
}

static int settle_first(struct gpu *gpu)
{
    struct window *window = &gpu->windows[gpu->first_window];
    int r;

    observe_windows(gpu, window->end_us);
    r = gpu_settle_window(gpu, window);
    gpu->observed_count--;
    gpu->settled_until_us = window->end_us;
    gpu_forget_window(gpu, window);
    gpu->first_window = (gpu->first_window + 1) % GPU_WINDOWS_MAX;
    gpu->window_count--;
    return r;
}

/* Begins a window, which may be `before` itself, with those present whom the lists in force name.
 */
static int begin_window(struct gpu *gpu, struct window *window, const struct window *before,
                        uint64_t start_us)
{
    const struct presence *presences = before->presences;
    size_t count = before->presence_count;
    int r = 0;

    window_begin(window, before->number + 1, start_us);
    note_context(gpu);
    for (size_t i = 0; i < count; i++) {
        uint32_t process = presences[i].process;
        uint8_t lists = lists_in_force(gpu, &gpu->ledger->processes[process]);
        struct presence *presence = lists ? window_presence(window, gpu->ledger, process) : NULL;

        if (!presence) {
            r = lists ? -ENOMEM : r;
            continue;
        }
        presence->inherited = lists;
        mark_seen(&gpu->ledger->processes[process], start_us);
    }
    return r;
}

/* Closes the open window, if any energy is in it, and begins the next at `start_us`. */
static int next_window(struct gpu *gpu, uint64_t start_us)
{
    const struct window *closed = open_window(gpu);
    int settled = 0, begun;

    if (closed->energy_uj == 0) {
        open_window(gpu)->start_us = open_window(gpu)->end_us = start_us;
        return 0;
    }
    if (gpu->window_count == GPU_WINDOWS_MAX)
        settled = settle_first(gpu);
    gpu->window_count++;
    begun = begin_window(gpu, open_window(gpu), closed, start_us);
    return begun < 0 ? begun : settled;
}

static uint64_t gap_us(const struct gpu *gpu)
{
    return MAX(GAP_US, GAP_WINDOWS * gpu->options.interval_us);
}

/*
 * Begins the open window anew when no energy came for so long that what comes next would be a gap:
 * a board without a counter must not keep everybody present for ever.
 */
static int renew_quiet_window(struct gpu *gpu)
{
    struct window *window = open_window(gpu);

    if (window->energy_uj > 0 || gpu->latest_us < window->start_us + gap_us(gpu))
        return 0;
    ledger_book_time(gpu->ledger, gpu->meter, window->start_us, gpu->latest_us, NULL, 0);
    gpu->settled_until_us = gpu->latest_us;
    return begin_window(gpu, window, window, gpu->latest_us);
}

/* Could the board have used this much in this time? */
static bool is_plausible(const struct gpu *gpu, uint64_t energy_uj, uint64_t elapsed_us)
{
    uint64_t limit_mw = gpu->power_limit_mw ? gpu->power_limit_mw : POWER_LIMIT_DEFAULT_MW;

    /* mW x us = nJ; one and a half times the limit. */
    return (unsigned __int128)energy_uj * 2000 <=
           (unsigned __int128)limit_mw * 3 * (elapsed_us + TICK_US);
}

/* What lies in the future now would be believed for as long as that is one. */
static void forget_future(struct gpu *gpu, uint64_t now_us)
{
    struct ledger *ledger = gpu->ledger;

    gpu->latest_us = gpu->settled_until_us = ledger->latest_us = now_us;
    util_samples_clear(&gpu->labels);
    for (size_t i = 0; i < ledger->process_slots; i++) {
        struct ledger_process *process = &ledger->processes[i];

        if (!process->used || process->meter != gpu->meter)
            continue;
        process->last_booked_us = MIN(process->last_booked_us, now_us);
        process->seen.last_us = MIN(process->seen.last_us, now_us);
        process->seen.last_listed_us = MIN(process->seen.last_listed_us, now_us);
        process->seen.first_listed_us = MIN(process->seen.first_listed_us, now_us);
    }
}

/* The clock was set back: all before it is settled, and how long the last joules took is unknown.
 */
static int begin_anew(struct gpu *gpu, uint64_t t_us, uint64_t counter_uj)
{
    int settled = gpu_finish(gpu), begun;

    forget_future(gpu, t_us);
    if (counter_uj >= gpu->counter_uj &&
        is_plausible(gpu, counter_uj - gpu->counter_uj, gap_us(gpu)))
        ledger_book_gap(gpu->ledger, gpu->meter, counter_uj - gpu->counter_uj);
    else
        gpu->resets++;
    begun = next_window(gpu, t_us);
    gpu_learn_restart(gpu, t_us);
    gpu->counter_uj = counter_uj;
    gpu->tick_us = t_us;
    return begun < 0 ? begun : settled;
}

static int take_energy(struct gpu *gpu, uint64_t t_us, uint64_t counter_uj)
{
    struct window *window = open_window(gpu);
    uint64_t elapsed_us = t_us - gpu->tick_us;
    uint64_t delta_uj = counter_uj - gpu->counter_uj;
    bool ends_window;
    int r;

    if (!gpu->counter_seen) {
        gpu->counter_seen = true;
        goto restart;
    }
    if (t_us + TICK_US < gpu->tick_us)
        return begin_anew(gpu, t_us, counter_uj);
    if (t_us <= gpu->tick_us || counter_uj == gpu->counter_uj)
        return 0; /* not a tick */
    if (counter_uj < gpu->counter_uj || !is_plausible(gpu, delta_uj, elapsed_us)) {
        gpu->resets++;
        /* After a reset the counter has counted from 0; an impossible jump tells nothing. */
        if (counter_uj < gpu->counter_uj && is_plausible(gpu, counter_uj, elapsed_us))
            ledger_book_gap(gpu->ledger, gpu->meter, counter_uj);
        goto restart;
    }
    if (elapsed_us > gap_us(gpu)) {
        ledger_book_gap(gpu->ledger, gpu->meter, delta_uj);
        goto restart;
    }
    gpu->counter_uj = counter_uj;
    gpu->tick_us = t_us;
    window->energy_uj += delta_uj;
    window->end_us = t_us;
    ends_window = window->end_us - window->start_us + TICK_US / 2 >= gpu->options.interval_us;
    gpu_learn_energy(gpu, t_us, delta_uj);
    return ends_window ? next_window(gpu, t_us) : 0;

restart:
    r = next_window(gpu, t_us);
    gpu_learn_restart(gpu, t_us);
    gpu->counter_uj = counter_uj;
    gpu->tick_us = t_us;
    return r;
}

/*
 * The MPS server is on the compute list, its clients are on the MPS list too. It is known by its
 * name, or where there are no names, by being the only one of its kind.
 */
static void find_mps_server(struct gpu *gpu)
{
    const struct window *window = open_window(gpu);
    uint32_t server = LEDGER_NONE;

    if (!gpu->list_named[SAMPLE_LIST_MPS])
        return;
    for (size_t i = 0; i < window->presence_count; i++) {
        uint32_t process = window->presences[i].process;

        if (lists_in_force(gpu, &gpu->ledger->processes[process]) != 1 << SAMPLE_LIST_COMPUTE)
            continue;
        if (server != LEDGER_NONE)
            return;
        server = process;
    }
    if (server != LEDGER_NONE)
        gpu->ledger->processes[server].seen.is_mps_server = true;
}

static int take_list(struct gpu *gpu, uint64_t t_us, const struct sample_list *list)
{
    struct window *window = open_window(gpu);
    uint64_t round = ++gpu->list_round[list->kind];
    int result = 0;

    if (t_us <= window->start_us + RENEWAL_US)
        window->lists_renewed |= (uint8_t)(1 << list->kind);
    gpu->list_named[list->kind] = list->count > 0;
    gpu->list_us[list->kind] = t_us;
    note_context(gpu);
    for (size_t i = 0; i < list->count; i++) {
        struct ledger_process *process;
        struct presence *presence;
        uint32_t index;
        int r;

        if (list->entries[i].pid == 0)
            continue; /* the driver's own */
        r = ledger_open_process(gpu->ledger, gpu->meter, list->entries[i].pid, &index);
        if (r < 0) {
            result = r;
            continue;
        }
        process = &gpu->ledger->processes[index];
        mark_seen(process, t_us);
        if (process->seen.first_listed_us == 0)
            process->seen.first_listed_us = t_us;
        process->seen.last_listed_us = t_us;
        process->seen.list_round[list->kind] = round;
        process->seen.memory_bytes[list->kind] = list->entries[i].memory_bytes;
        presence = window_presence(window, gpu->ledger, index);
        if (presence)
            presence->listed |= (uint8_t)(1 << list->kind);
        else
            result = -ENOMEM;
    }
    find_mps_server(gpu);
    gpu_learn_list(gpu, list);
    return result;
}

static void take_label(struct gpu *gpu, const struct sample_label *sample)
{
    struct util_sample *label = util_samples_add(&gpu->labels, sample, gpu->settled_until_us);
    uint32_t process;

    if (!label)
        return;
    /* Bound at once where possible: by the time of settlement the pid may be another's. */
    if (ledger_find_process(gpu->ledger, gpu->meter, label->pid, &process)) {
        label->process = process;
        mark_seen(&gpu->ledger->processes[process], label->at_us);
    }
    gpu_learn_label(gpu, sample, label);
}

static void set_gauge(struct gpu *gpu, enum gpu_gauge gauge, uint64_t t_us, uint64_t value)
{
    gpu->gauges[gauge] = (struct gpu_reading){t_us, value};
}

static void take_utilisation(struct gpu *gpu, uint64_t t_us,
                             const struct sample_utilisation *utilisation)
{
    struct window *window = open_window(gpu);

    window->busiest_percent = MAX(window->busiest_percent, utilisation->gpu_percent);
    window->saw_utilisation = true;
    set_gauge(gpu, GPU_GAUGE_UTILISATION_PERCENT, t_us, utilisation->gpu_percent);
    set_gauge(gpu, GPU_GAUGE_MEMORY_UTILISATION_PERCENT, t_us, utilisation->memory_percent);
    if (utilisation->sm_clock_mhz > 0) {
        set_gauge(gpu, GPU_GAUGE_SM_CLOCK_MHZ, t_us, utilisation->sm_clock_mhz);
        gpu_learn_clock(gpu, utilisation->sm_clock_mhz);
    }
    if (utilisation->temperature_c > 0)
        set_gauge(gpu, GPU_GAUGE_TEMPERATURE_C, t_us, utilisation->temperature_c);
}

static void take_xid(struct gpu *gpu, uint32_t xid)
{
    struct gpu_xid *entry = gpu->xids;

    while (entry < &gpu->xids[GPU_XIDS_MAX - 1] && entry->xid != 0 && entry->xid != xid)
        entry++;
    if (entry->xid == 0)
        entry->xid = xid;
    entry->count++;
}

/* Nobody is listed on a board that does not answer, until it answers again. */
static void take_loss(struct gpu *gpu)
{
    for (int kind = 0; kind < SAMPLE_LIST_KINDS; kind++) {
        gpu->list_round[kind]++;
        gpu->list_named[kind] = false;
    }
}

static int take_process(struct gpu *gpu, uint64_t t_us, const struct sample_process *who)
{
    uint32_t process;
    int r = who->pid > 0 ? ledger_identify(gpu->ledger, gpu->meter, who, &process) : -EINVAL;

    if (r == 0) {
        mark_seen(&gpu->ledger->processes[process], t_us);
        gpu->ledger->processes[process].seen.is_mps_server |=
            strcmp(who->name, "nvidia-cuda-mps-server") == 0;
    }
    return r == -EINVAL ? 0 : r;
}

static bool is_due(const struct gpu *gpu, const struct window *window)
{
    if (gpu->latest_us < window->end_us + SETTLE_DELAY_US)
        return false;
    return gpu->latest_us >= window->end_us + gpu->options.patience_us ||
           !gpu_may_learn_more(gpu, window);
}

int gpu_ingest(struct gpu *gpu, const struct sample *sample)
{
    int result = 0;

    gpu->ledger->latest_us = MAX(gpu->ledger->latest_us, sample->t_us);
    switch (sample->kind) {
    case SAMPLE_DEVICE:
        return 0; /* gpu_init took it */
    case SAMPLE_KINDS:
    case SAMPLE_METER:
    case SAMPLE_NODE_POWER:
    case SAMPLE_USAGE:
    case SAMPLE_NAMES:
        break; /* of no GPU */
    case SAMPLE_GPM:
        gpu_learn_gpm(gpu, sample->t_us, &sample->gpm);
        break;
    case SAMPLE_GAUGE:
        set_gauge(gpu, sample->gauge.gauge, sample->t_us, sample->gauge.value);
        if (sample->gauge.gauge == GPU_GAUGE_POWER_LIMIT_MW)
            gpu->power_limit_mw = sample->gauge.value;
        else if (sample->gauge.gauge == GPU_GAUGE_MEMORY_USED_BYTES)
            gpu_read_memory(gpu, sample->t_us, sample->gauge.value);
        break;
    case SAMPLE_XID:
        take_xid(gpu, sample->xid);
        break;
    case SAMPLE_LOST:
        take_loss(gpu);
        break;
    case SAMPLE_INTEGRAL:
        gpu->counter_is_integral = true;
        result = take_energy(gpu, sample->t_us, sample->counter_uj);
        break;
    case SAMPLE_ENERGY:
        result = take_energy(gpu, sample->t_us, sample->counter_uj);
        break;
    case SAMPLE_POWER:
        set_gauge(gpu, GPU_GAUGE_POWER_MW, sample->t_us, sample->power_mw);
        break;
    case SAMPLE_UTILISATION:
        take_utilisation(gpu, sample->t_us, &sample->utilisation);
        break;
    case SAMPLE_LABEL:
        take_label(gpu, &sample->label);
        break;
    case SAMPLE_LIST:
        result = take_list(gpu, sample->t_us, &sample->list);
        break;
    case SAMPLE_PROCESS:
        result = take_process(gpu, sample->t_us, &sample->process);
        break;
    }
    gpu->latest_us = MAX(gpu->latest_us, sample->t_us);
    observe_windows(gpu, gpu->latest_us - MIN(gpu->latest_us, SETTLE_DELAY_US));
    while (gpu->window_count > 1 && is_due(gpu, &gpu->windows[gpu->first_window])) {
        int r = settle_first(gpu);

        if (r < 0)
            result = r;
    }
    if (gpu->window_count == 1) {
        int r = renew_quiet_window(gpu);

        if (r < 0)
            result = r;
    }
    util_samples_prune(&gpu->labels, gpu->latest_us);
    return result;
}

int gpu_finish(struct gpu *gpu)
{
    int result = next_window(gpu, gpu->tick_us);

    observe_windows(gpu, UINT64_MAX);
    gpu_learn_the_rest(gpu);
    while (gpu->window_count > 1) {
        int r = settle_first(gpu);

        if (r < 0)
            result = r;
    }
    return result;
}
