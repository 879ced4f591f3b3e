#include "attribution/gpu/gpu.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"
#include "core/span.h"

/* The counter ticks every 100 ms (H200), and a reading is late by anything below that. */
static const uint64_t TICK_US = 100000;

/* Samples arrive up to 200 ms late, the first list with a process up to a second. */
static const uint64_t SETTLE_DELAY_US = USEC_PER_SEC;

/* If nothing was read for this long (and five windows), the energy has no known user. */
static const uint64_t GAP_US = 10 * USEC_PER_SEC;
enum { GAP_WINDOWS = 5 };

/* Boards whose limit is unknown: more than any that is sold today. */
static const uint64_t POWER_LIMIT_DEFAULT_MW = 3000000;

static struct window *window_at(struct gpu *gpu, size_t index)
{
    return &gpu->windows[(gpu->first_window + index) % GPU_WINDOWS_MAX];
}

static struct window *open_window(struct gpu *gpu)
{
    return window_at(gpu, gpu->window_count - 1);
}

/* Where it is: a board may get another minor, and another slot. */
static void set_place(struct gpu *gpu, const struct sample_device *device)
{
    gpu->has_minor = device->has_minor;
    gpu->minor = device->minor;
    gpu->render_minor = device->render_minor;
    gpu->is_renumbered = device->is_renumbered;
    snprintf(gpu->pci, sizeof(gpu->pci), "%s", device->pci ? device->pci : "");
}

/* As the operator says. */
static void fix_idle(struct gpu *gpu)
{
    const struct gpu_idle_power *fixed =
        gpu_idle_find(gpu->options.idle_powers, gpu->index, gpu->uuid);

    gpu->idle.is_fixed = fixed;
    gpu->idle.fixed_mw = fixed ? fixed->mw : 0;
}

int gpu_init(struct gpu *gpu, uint32_t index, const struct sample_device *device,
             const struct gpu_options *options, struct ledger *ledger, struct sightings *sightings)
{
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
        .window_count = 1,
    };
    set_place(gpu, device);
    fix_idle(gpu);
    if (options->attribution == ATTRIBUTION_INTENSITY) {
        gpu->programs = calloc(1, sizeof(*gpu->programs));
        gpu->learning = calloc(1, sizeof(*gpu->learning));
    }
    if (gpu->learning)
        gpu->learning->intensity.memory = gpu->programs;
    if (!gpu->uuid || !gpu->name || !gpu->driver ||
        (options->attribution == ATTRIBUTION_INTENSITY && (!gpu->programs || !gpu->learning)) ||
        ledger_add_meter(ledger, METER_GPU, device->uuid, index, &gpu->meter) < 0 ||
        gpu_reserve_sightings(gpu) < 0) {
        gpu_done(gpu);
        return -ENOMEM;
    }
    ledger_allow_forgetting(ledger, gpu->meter, 0);
    gpu_reset_sightings(gpu, true, UINT64_MAX);
    gpu_begin_window(gpu, open_window(gpu), open_window(gpu), 0);
    return 0;
}

void gpu_done(struct gpu *gpu)
{
    for (size_t i = 0; i < GPU_WINDOWS_MAX; i++)
        free(gpu->windows[i].presences);
    free(gpu->uuid);
    free(gpu->name);
    free(gpu->driver);
    gpu_mig_free(gpu->mig);
    free(gpu->vgpus);
    free(gpu->learning);
    free(gpu->programs);
    free(gpu->held.items);
    free(gpu->attached);
    free(gpu->claimants.items);
    bookings_done(&gpu->bookings);
    *gpu = (struct gpu){0};
}

bool gpu_is_changed(const struct gpu *gpu, const char *driver, uint64_t power_limit_mw)
{
    struct span before = span_of(gpu->driver), now = span_of(driver);

    before = span_cut(&before, '.');
    now = span_cut(&now, '.');
    return before.len != now.len || memcmp(before.data, now.data, now.len) != 0 ||
           (gpu->power_limit_mw > 0 && power_limit_mw > 0 && gpu->power_limit_mw != power_limit_mw);
}

int gpu_describe(struct gpu *gpu, const struct sample_device *device)
{
    char *driver = strdup(device->driver);

    if (!driver)
        return -ENOMEM;
    gpu_age_programs(gpu, driver, device->power_limit_mw);
    free(gpu->driver);
    gpu->driver = driver;
    if (device->memory_bytes > 0) /* in MIG mode it takes a permission */
        gpu->memory_bytes = device->memory_bytes;
    set_place(gpu, device);
    return 0;
}

void gpu_set_attached(struct gpu *gpu, struct attached *attached, size_t count)
{
    free(gpu->attached);
    gpu->attached = attached;
    gpu->attached_count = count;
    gpu->is_memory_requested = count > 0;
    for (size_t i = 0; i < count; i++)
        gpu->is_memory_requested &= !attached[i].is_candidate || attached[i].memory_bytes > 0;
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

/* Observes closed windows once, those that ended by `until_us`. */
static void observe_windows(struct gpu *gpu, uint64_t until_us)
{
    while (gpu->observed_count + 1 < gpu->window_count &&
           window_at(gpu, gpu->observed_count)->end_us <= until_us)
        gpu_observe_window(gpu, window_at(gpu, gpu->observed_count++));
}

static void settle_first(struct gpu *gpu)
{
    struct window *window = window_at(gpu, 0);

    observe_windows(gpu, window->end_us);
    gpu_settle_window(gpu, window);
    gpu->observed_count--;
    settle_until(gpu, window->end_us);
    if (gpu->learning)
        gpu_forget_window(gpu, window);
    gpu->first_window = (gpu->first_window + 1) % GPU_WINDOWS_MAX;
    gpu->window_count--;
}

/* Closes the open window, if it has energy, and starts the next at `start_us`. */
static void next_window(struct gpu *gpu, uint64_t start_us)
{
    struct window *closed = open_window(gpu);

    if (closed->energy_uj == 0) {
        closed->start_us = closed->end_us = start_us;
        return;
    }
    if (gpu->window_count == GPU_WINDOWS_MAX)
        settle_first(gpu);
    gpu->window_count++;
    gpu_begin_window(gpu, open_window(gpu), closed, start_us);
}

/* Closes the open window at the last tick and settles everything. */
static void settle_all(struct gpu *gpu)
{
    next_window(gpu, gpu->tick_us);
    observe_windows(gpu, UINT64_MAX);
    if (gpu->learning)
        gpu_learn_last(gpu);
    while (gpu->window_count > 1)
        settle_first(gpu);
}

static uint64_t gap_us(const struct gpu *gpu)
{
    return MAX(GAP_US, GAP_WINDOWS * gpu->options.interval_us);
}

/* Could a board with this limit have used this much in this time? */
static bool is_within(uint64_t limit_mw, uint64_t energy_uj, uint64_t elapsed_us)
{
    /* mW x us = nJ; one and a half times the limit. */
    return (unsigned __int128)energy_uj * 2000 <=
           (unsigned __int128)limit_mw * 3 * (elapsed_us + TICK_US);
}

static bool is_plausible(const struct gpu *gpu, uint64_t energy_uj, uint64_t elapsed_us)
{
    return is_within(gpu->power_limit_mw ? gpu->power_limit_mw : POWER_LIMIT_DEFAULT_MW, energy_uj,
                     elapsed_us);
}

/* Starts over at a tick: how the energy since the last one was used is unknown. */
static void restart_at(struct gpu *gpu, uint64_t t_us, uint64_t counter_uj)
{
    struct gpu_learning *learning;

    next_window(gpu, t_us);
    for (size_t i = 0; (learning = gpu_learning_at(gpu, i)); i++)
        slots_restart(&learning->slots, t_us);
    gpu->counter_seen = true;
    gpu->counter_uj = counter_uj;
    gpu->tick_us = t_us;
}

/* The clock was set back: all before it is settled, what is in the future now is dropped, and how
 * long the last energy took is unknown. */
static void set_clock_back(struct gpu *gpu, uint64_t t_us, uint64_t counter_uj)
{
    const struct window *window;

    settle_all(gpu);
    window = open_window(gpu);
    gpu->latest_us = t_us;
    gpu->samples.count = 0;
    ledger_set_clock_back(gpu->ledger, gpu->meter, t_us);
    gpu_reset_sightings(gpu, false, t_us);
    settle_until(gpu, t_us);
    for (size_t i = 0; i < window->presence_count; i++)
        ledger_see_process(gpu->ledger, window->presences[i].process, t_us);
    if (counter_uj >= gpu->counter_uj &&
        is_plausible(gpu, counter_uj - gpu->counter_uj, gap_us(gpu)))
        ledger_book_gap(gpu->ledger, gpu->meter, counter_uj - gpu->counter_uj, t_us, t_us);
    else
        gpu->resets++;
    restart_at(gpu, t_us, counter_uj);
}

void gpu_resume(struct gpu *gpu, const struct resumed_meter *before)
{
    gpu->idle = before->idle;
    fix_idle(gpu);
    if (!before->has_counter)
        return;
    if (!before->has_hardware && !before->is_integral) { /* its energy was booked elsewhere */
        ledger_note_unknown_gap(gpu->ledger, gpu->meter);
        return;
    }
    gpu->counter_seen = gpu->is_resumed = true;
    gpu->counter_is_integral = before->is_integral;
    gpu->counter_uj = before->counter_uj;
    gpu->tick_us = before->read_us;
}

struct resumed_meter gpu_resumed_meter(const struct gpu *gpu)
{
    return (struct resumed_meter){
        .kind = METER_GPU,
        .id = gpu->uuid,
        .has_counter = gpu->counter_seen,
        .is_integral = gpu->counter_is_integral,
        .counter_uj = gpu->counter_uj,
        .read_us = gpu->tick_us,
        .has_hardware = !gpu->counter_is_integral,
        .is_booked = true,
        .pending_uj = gpu_pending_uj(gpu),
        .idle = gpu->idle,
    };
}

/* The first reading since the previous run: nobody saw who used the energy in between. */
static void end_downtime(struct gpu *gpu, uint64_t t_us, uint64_t counter_uj)
{
    uint64_t elapsed_us = t_us - MIN(t_us, gpu->tick_us);
    bool is_reset = counter_uj < gpu->counter_uj;
    /* After a reset the counter has counted from 0; what it had before that is unknown. */
    uint64_t gap_uj = is_reset ? counter_uj : counter_uj - gpu->counter_uj;
    bool is_known = is_plausible(gpu, gap_uj, elapsed_us);

    if (is_known)
        ledger_book_gap(gpu->ledger, gpu->meter, gap_uj, gpu->tick_us, t_us);
    if (is_reset || !is_known) {
        ledger_note_unknown_gap(gpu->ledger, gpu->meter);
        gpu->resets++;
    }
    restart_at(gpu, t_us, counter_uj);
}

static void take_energy(struct gpu *gpu, uint64_t t_us, uint64_t counter_uj)
{
    struct window *window = open_window(gpu);
    uint64_t elapsed_us = t_us - gpu->tick_us;
    uint64_t delta_uj = counter_uj - gpu->counter_uj;

    if (!gpu->counter_seen) {
        restart_at(gpu, t_us, counter_uj);
    } else if (gpu->is_resumed) {
        gpu->is_resumed = false;
        end_downtime(gpu, t_us, counter_uj);
    } else if (t_us + TICK_US < gpu->tick_us) {
        set_clock_back(gpu, t_us, counter_uj);
    } else if (t_us <= gpu->tick_us || counter_uj == gpu->counter_uj) {
        return; /* not a tick */
    } else if (counter_uj < gpu->counter_uj || !is_plausible(gpu, delta_uj, elapsed_us)) {
        gpu->resets++;
        /* After a reset the counter has counted from 0. More than the limit allows was used all the
         * same, if a board can: limits are set by users, and some are of a long mean. An impossible
         * jump means nothing. */
        if (counter_uj < gpu->counter_uj && is_plausible(gpu, counter_uj, elapsed_us))
            ledger_book_gap(gpu->ledger, gpu->meter, counter_uj, gpu->tick_us, t_us);
        else if (counter_uj > gpu->counter_uj &&
                 is_within(POWER_LIMIT_DEFAULT_MW, delta_uj, elapsed_us))
            ledger_book_gap(gpu->ledger, gpu->meter, delta_uj, gpu->tick_us, t_us);
        restart_at(gpu, t_us, counter_uj);
    } else if (elapsed_us > gap_us(gpu)) {
        ledger_book_gap(gpu->ledger, gpu->meter, delta_uj, gpu->tick_us, t_us);
        restart_at(gpu, t_us, counter_uj);
    } else {
        gpu->counter_uj = counter_uj;
        gpu->tick_us = t_us;
        window->energy_uj += delta_uj;
        window->end_us = t_us;
        if (gpu->learning)
            gpu_learn_energy(gpu, t_us, delta_uj);
        if (window->end_us - window->start_us + TICK_US / 2 >= gpu->options.interval_us)
            next_window(gpu, t_us);
    }
}

/* Energy by power and time: nothing shows what was used while nobody read the power. */
static void take_integral(struct gpu *gpu, uint64_t t_us, uint64_t integral_uj)
{
    if (gpu->is_resumed) {
        gpu->is_resumed = false;
        gpu->integral_base_uj = gpu->counter_is_integral ? gpu->counter_uj : 0;
        ledger_note_unknown_gap(gpu->ledger, gpu->meter);
        restart_at(gpu, t_us, gpu->integral_base_uj + integral_uj);
    }
    gpu->counter_is_integral = true;
    take_energy(gpu, t_us, gpu->integral_base_uj + integral_uj);
}

static void take_counter(struct gpu *gpu, uint64_t t_us, uint64_t counter_uj)
{
    if (gpu->is_resumed && gpu->counter_is_integral) { /* the driver has a counter now */
        gpu->is_resumed = gpu->counter_is_integral = false;
        ledger_note_unknown_gap(gpu->ledger, gpu->meter);
        restart_at(gpu, t_us, counter_uj);
    }
    take_energy(gpu, t_us, counter_uj);
}

static void take_sample(struct gpu *gpu, const struct sample_label *sample)
{
    struct gpu_sample *taken = gpu_samples_add(&gpu->samples, sample, gpu->settled_until_us);
    uint32_t process;

    if (!taken)
        return;
    /* Bound at once where possible: at settlement the pid may be another process. */
    if (ledger_find_process(gpu->ledger, gpu->meter, taken->pid, &process)) {
        taken->process = process;
        ledger_see_process(gpu->ledger, process, taken->at_us);
    }
    if (gpu->learning)
        gpu_learn_sample(gpu, sample, taken);
}

/* What was used before a change is divided as the board was partitioned then. */
static void take_layout(struct gpu *gpu, const struct sample_layout *layout)
{
    if (!gpu_mig_is_changed(gpu, layout))
        return;
    settle_all(gpu);
    if (gpu_mig_take_layout(gpu, layout) < 0)
        gpu->out_of_memory = true;
}

/* Settles the windows of which no more is to be learned. */
static void settle_due(struct gpu *gpu)
{
    struct window *window = window_at(gpu, 0);

    observe_windows(gpu, gpu->latest_us - MIN(gpu->latest_us, SETTLE_DELAY_US));
    while (gpu->window_count > 1 && gpu->latest_us >= window->end_us + SETTLE_DELAY_US &&
           (gpu->latest_us >= window->end_us + gpu->options.patience_us ||
            !gpu_may_learn_more(gpu, window))) {
        settle_first(gpu);
        window = window_at(gpu, 0);
    }
    /* Without energy for so long that the next would be a gap, the open window restarts: on a board
     * without a counter processes must not stay present for ever. */
    if (gpu->window_count == 1 && window->energy_uj == 0 &&
        gpu->latest_us >= window->start_us + gap_us(gpu)) {
        ledger_pass_time(gpu->ledger, gpu->meter, window->start_us, gpu->latest_us);
        settle_until(gpu, gpu->latest_us);
        gpu_begin_window(gpu, window, window, gpu->latest_us);
    }
    gpu_samples_prune(&gpu->samples, gpu->latest_us);
}

static int take_error(struct gpu *gpu)
{
    bool failed = gpu->out_of_memory;

    gpu->out_of_memory = false;
    return failed ? -ENOMEM : 0;
}

int gpu_ingest(struct gpu *gpu, const struct sample *sample)
{
    ledger_advance(gpu->ledger, sample->t_us);
    switch (sample->kind) {
    case SAMPLE_GPM:
        gpu_take_gpm(gpu, open_window(gpu), sample->t_us, &sample->gpm);
        break;
    case SAMPLE_GAUGE:
        gpu_take_gauge(gpu, open_window(gpu), sample->t_us, &sample->gauge);
        break;
    case SAMPLE_VGPUS:
        gpu_take_vgpus(gpu, open_window(gpu), sample->t_us, &sample->vgpus);
        break;
    case SAMPLE_VGPU_USE:
        gpu_take_vgpu_use(gpu, &sample->vgpu_use);
        break;
    case SAMPLE_LAYOUT:
        take_layout(gpu, &sample->layout);
        break;
    case SAMPLE_XID:
        gpu_take_xid(gpu, sample->xid);
        break;
    case SAMPLE_LOST:
        for (int kind = 0; kind < GPU_LIST_KINDS; kind++) {
            gpu->list_round[kind]++; /* none is in force until the next */
            gpu->list_named[kind] = false;
        }
        break;
    case SAMPLE_INTEGRAL:
        take_integral(gpu, sample->t_us, sample->counter_uj);
        break;
    case SAMPLE_ENERGY:
        take_counter(gpu, sample->t_us, sample->counter_uj);
        break;
    case SAMPLE_POWER:
        gpu->gauges[GPU_GAUGE_POWER_MW] = (struct gpu_reading){sample->t_us, sample->power_mw};
        break;
    case SAMPLE_UTILISATION:
        gpu_take_utilisation(gpu, open_window(gpu), sample->t_us, &sample->utilisation);
        break;
    case SAMPLE_LABEL:
        take_sample(gpu, &sample->label);
        break;
    case SAMPLE_BUSY:
        gpu_take_busy(gpu, open_window(gpu), sample->t_us, &sample->busy);
        break;
    case SAMPLE_LIST:
        gpu_take_list(gpu, open_window(gpu), sample->t_us, &sample->list);
        break;
    case SAMPLE_PROCESS:
        gpu_take_process(gpu, sample->t_us, &sample->process);
        break;
    default: /* of its partitions, or of the node */
        break;
    }
    gpu->latest_us = MAX(gpu->latest_us, sample->t_us);
    settle_due(gpu);
    return take_error(gpu);
}

int gpu_finish(struct gpu *gpu)
{
    settle_all(gpu);
    return take_error(gpu);
}
