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

/* Boards whose limit is unknown: more than any that is sold today. */
static const uint64_t POWER_LIMIT_DEFAULT_MW = 3000000;

static struct window *open_window(struct gpu *gpu)
{
    return &gpu->windows[(gpu->first_window + gpu->window_count - 1) % GPU_WINDOWS_MAX];
}

int gpu_init(struct gpu *gpu, uint32_t index, const struct sample_device *device,
             const struct gpu_options *options, struct ledger *ledger, struct sightings *sightings)
{
    int r;

    *gpu = (struct gpu){
        .options = *options,
        .ledger = ledger,
        .sightings = sightings,
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
    ledger_allow_forgetting(ledger, gpu->meter, 0);
    sightings_restart(sightings, ledger, gpu->meter);
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

uint64_t gpu_pending_uj(const struct gpu *gpu)
{
    uint64_t pending_uj = 0;

    for (size_t i = 0; i < gpu->window_count; i++)
        pending_uj += gpu->windows[(gpu->first_window + i) % GPU_WINDOWS_MAX].energy_uj;
    return pending_uj;
}

static void settle_until(struct gpu *gpu, uint64_t t_us)
{
    gpu->settled_until_us = t_us;
    ledger_allow_forgetting(gpu->ledger, gpu->meter, t_us);
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
    settle_until(gpu, window->end_us);
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
    gpu_note_context(gpu, window);
    for (size_t i = 0; i < count; i++) {
        uint32_t process = presences[i].process;
        uint8_t lists = gpu_lists_in_force(gpu, process);
        struct presence *presence = lists ? window_presence(window, gpu->sightings, process) : NULL;

        if (!presence) {
            r = lists ? -ENOMEM : r;
            continue;
        }
        presence->inherited = lists;
        ledger_see_process(gpu->ledger, process, start_us);
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
    settle_until(gpu, gpu->latest_us);
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
    const struct window *window = open_window(gpu);

    gpu->latest_us = now_us;
    util_samples_clear(&gpu->labels);
    ledger_set_clock_back(gpu->ledger, gpu->meter, now_us);
    sightings_set_clock_back(gpu->sightings, gpu->ledger, gpu->meter, now_us);
    settle_until(gpu, now_us);
    for (size_t i = 0; i < window->presence_count; i++)
        ledger_see_process(gpu->ledger, window->presences[i].process, now_us);
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

static void take_label(struct gpu *gpu, const struct sample_label *sample)
{
    struct util_sample *label = util_samples_add(&gpu->labels, sample, gpu->settled_until_us);
    uint32_t process;

    if (!label)
        return;
    /* Bound at once where possible: by the time of settlement the pid may be another's. */
    if (ledger_find_process(gpu->ledger, gpu->meter, label->pid, &process)) {
        label->process = process;
        ledger_see_process(gpu->ledger, process, label->at_us);
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

    ledger_advance(gpu->ledger, sample->t_us);
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
        gpu_lose_lists(gpu);
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
        result = gpu_take_list(gpu, open_window(gpu), sample->t_us, &sample->list);
        break;
    case SAMPLE_PROCESS:
        result = gpu_take_process(gpu, sample->t_us, &sample->process);
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
