#include "run/result.h"

#include <stdlib.h>
#include <string.h>

#include "core/macros.h"
#include "core/span.h"

const struct quantity_words quantity_words[QUANTITIES] = {
    [QUANTITY_ENERGY] = {"joules", "energy", "J"},
    [QUANTITY_GPU_ENERGY] = {"gpu_joules", "GPU energy", "J"},
    [QUANTITY_CPU_ENERGY] = {"cpu_joules", "CPU energy", "J"},
    [QUANTITY_DRAM_ENERGY] = {"dram_joules", "DRAM energy", "J"},
    [QUANTITY_REST_ENERGY] = {"rest_joules", "rest of the node", "J"},
    [QUANTITY_POWER] = {"watts", "mean power", "W"},
    [QUANTITY_PEAK_POWER] = {"peak_watts", "peak power", "W"},
    [QUANTITY_WALL_TIME] = {"wall_seconds", "wall time", "s"},
    [QUANTITY_CPU_TIME] = {"cpu_seconds", "CPU time", "s"},
    [QUANTITY_EMISSIONS] = {"grams", "emissions", "g"},
    [QUANTITY_COST] = {"cost", "cost", ""},
};

/* Start times of processes are told with the second of the boot, which may be rounded. */
static const uint64_t START_SLACK_US = 2 * USEC_PER_SEC;

/* The counters of GPUs move ten times a second. */
static const uint64_t GPU_TICK_US = USEC_PER_SEC / 10;

/* How often a BMC is read. */
static const uint64_t BMC_INTERVAL_US = 10 * USEC_PER_SEC;

static uint64_t less(uint64_t after, uint64_t before)
{
    return after - MIN(after, before);
}

static uint64_t start_us(const struct result_input *input, const struct relative *relative)
{
    static const uint64_t TICKS_PER_SEC = 100; /* USER_HZ on all that we run on */

    return input->boot_us + relative->start_ticks * (USEC_PER_SEC / TICKS_PER_SEC);
}

static bool is_same(const struct result_input *input, const struct books_row *row,
                    const struct relative *relative)
{
    uint64_t began_us = start_us(input, relative);

    return (pid_t)row->pid == relative->pid &&
           (row->start_us == 0 || input->boot_us == 0 ||
            MAX(row->start_us, began_us) - MIN(row->start_us, began_us) <= START_SLACK_US);
}

/* Which process of the command a row is of; NULL: of none. */
static const struct relative *find_relative(const struct result_input *input,
                                            const struct books_row *row)
{
    for (size_t i = input->family->count; i-- > 0;)
        if (is_same(input, row, &input->family->items[i]))
            return &input->family->items[i];
    return NULL;
}

static void add_rows(const struct result_input *input, const struct books_meter *after,
                     struct result_meter *meter)
{
    const struct books_meter *now = books_find(input->gpus, METER_GPU, meter->id);

    meter->has_uncertainty = true;
    for (size_t i = 0; i < input->gpus->row_count; i++) {
        const struct books_row *row = &input->gpus->rows[i];

        if (row->gpu != meter->gpu || !find_relative(input, row))
            continue;
        meter->command_uj += row->energy_uj;
        meter->uncertain_uj += row->uncertain_uj;
    }
    if (meter->command_uj > 0 && now)
        meter->pending_uj = less(after->counted_uj, now->divided_uj);
}

/* Of what the command used, at the price of the time, or if nothing was divided yet, at that of all
 * times. What a shared GPU counted is divided, and billed, only after the command has ended. */
static void add_bill(const struct result_input *input, const struct books_meter *before,
                     const struct books_meter *after, struct result_meter *meter)
{
    const struct books_meter *settled =
        after->kind == METER_GPU ? books_find(input->gpus, METER_GPU, after->id) : NULL;
    double divided, grams, cost;

    after = settled ? settled : after;
    divided = (double)less(after->divided_uj, before ? before->divided_uj : 0);
    grams = after->grams - (before ? before->grams : 0);
    cost = after->cost - (before ? before->cost : 0);
    if (divided <= 0) {
        divided = (double)after->divided_uj;
        grams = after->grams;
        cost = after->cost;
    }
    if (divided <= 0)
        return;
    meter->grams = grams * (double)meter->command_uj / divided;
    meter->cost = cost * (double)meter->command_uj / divided;
}

static const struct books *factor_of(const struct result_input *input)
{
    return input->daemon_after && input->daemon_after->has_grams && !input->has_own_factor
               ? input->daemon_after
               : input->after;
}

static const struct books *price_of(const struct result_input *input)
{
    return input->daemon_after && input->daemon_after->has_cost && !input->has_own_price
               ? input->daemon_after
               : input->after;
}

/* The books of this process bill what they have, at the price of the time. */
static void apply_prices(const struct result_input *input, bool is_billed,
                         struct result_meter *meter)
{
    double kwh = (double)meter->command_uj / 3.6e12;

    if (!is_billed || factor_of(input) == input->daemon_after)
        meter->grams = kwh * factor_of(input)->grams_per_kwh;
    if (!is_billed || price_of(input) == input->daemon_after)
        meter->cost = kwh * price_of(input)->cost_per_kwh;
}

/* How long before the command began, or after it ended, what is taken for its own may have been. */
static uint64_t boundary_us(const struct result_input *input, const struct books_meter *meter)
{
    if (meter->kind == METER_NODE_OVERHEAD)
        return BMC_INTERVAL_US;
    if (meter->kind == METER_GPU) /* a daemon's books have the window in which it ended */
        return meter->is_of_daemon ? input->boundary_us / 2 : 2 * GPU_TICK_US;
    return meter->is_of_daemon ? input->boundary_us : 0;
}

static void add_boundary(const struct result_input *input, uint64_t boundary_us,
                         struct result_meter *meter)
{
    meter->has_uncertainty = true;
    meter->uncertain_uj +=
        boundary_us < input->wall_us
            ? (uint64_t)((double)meter->command_uj * (double)boundary_us / (double)input->wall_us)
            : meter->command_uj;
}

/* What a daemon tells may be anything. */
static uint64_t whole_uj(double uj)
{
    return uj < 9e18 ? (uint64_t)uj : (uint64_t)9e18;
}

static void add_missed(const struct result_input *input, struct result_meter *meter)
{
    meter->has_uncertainty = true;
    meter->uncertain_uj += whole_uj((double)meter->command_uj * (double)input->missed_us /
                                    (double)MAX(input->cpu_us, (uint64_t)1));
}

/* What was not counted may all have been the command's, as far as it was not idle. */
static void add_lost(const struct result_input *input, struct result_meter *meter)
{
    uint64_t seen_us = MAX(less(input->wall_us, input->lost_us), input->boundary_us / 2);
    double active_uj = (double)less(meter->counted_uj, meter->idle_uj);

    meter->is_partial = true;
    meter->has_uncertainty = true;
    if (seen_us > 0)
        meter->uncertain_uj += whole_uj(active_uj * (double)input->lost_us / (double)seen_us);
}

/* A daemon's document may be older than the end of the command. */
static void extend_to_last_document(const struct result_input *input,
                                    const struct books_meter *before, struct result_meter *meter)
{
    const struct books_meter *now = books_find(input->gpus, meter->kind, meter->id);

    if (now)
        meter->counted_uj =
            MAX(meter->counted_uj,
                MIN(meter->command_uj, less(now->counted_uj, before ? before->counted_uj : 0)));
}

static void add_meter(const struct result_input *input, const struct books_meter *before,
                      const struct books_meter *after, bool is_daemon, struct result *result)
{
    struct result_meter *meter = &result->meters[result->meter_count++];

    *meter = (struct result_meter){
        .kind = after->kind,
        .gpu = after->gpu,
        .is_modelled = after->is_modelled,
        .is_partial = !before,
        .counted_uj = less(after->counted_uj, before ? before->counted_uj : 0),
        .idle_uj = less(after->idle_uj, before ? before->idle_uj : 0),
        .command_uj = less(after->command_uj, before ? before->command_uj : 0),
    };
    memcpy(meter->id, after->id, sizeof(meter->id));
    meter->idle_uj = MIN(meter->idle_uj, meter->counted_uj);
    if (after->kind == METER_GPU)
        add_rows(input, after, meter);
    else
        meter->is_estimated = input->is_estimated;
    if (after->kind == METER_GPU && after->is_of_daemon)
        extend_to_last_document(input, before, meter);
    /* The window of a GPU in which the command ended is longer. */
    meter->command_uj = MIN(meter->command_uj, meter->counted_uj);
    if (boundary_us(input, after) > 0)
        add_boundary(input, boundary_us(input, after), meter);
    if (input->is_estimated && input->missed_us > 0 && meter->kind == METER_PACKAGE)
        add_missed(input, meter);
    meter->uncertain_uj = MIN(meter->uncertain_uj, meter->counted_uj);
    if (after->is_of_daemon && input->lost_us > 0)
        add_lost(input, meter);
    add_bill(input, before, after, meter);
    apply_prices(input, !is_daemon, meter);
}

static void add_meters(const struct result_input *input, const struct books *before,
                       const struct books *after, bool is_daemon, struct result *result)
{
    for (size_t i = 0; i < after->meter_count && result->meter_count < BOOKS_METERS_MAX; i++) {
        const struct books_meter *meter = &after->meters[i];

        /* The processors and the memory of a daemon are in the books of this process. */
        if (meter->kind > METER_NODE_OVERHEAD ||
            (is_daemon && (meter->kind != METER_GPU && meter->kind != METER_NODE_OVERHEAD)))
            continue;
        if (is_daemon && books_find(input->after, meter->kind, meter->id))
            continue;
        add_meter(input, before ? books_find(before, meter->kind, meter->id) : NULL, meter,
                  is_daemon, result);
    }
}

/* The rest of the node that a daemon divides: in proportion to what else the command used. */
static void divide_rest(const struct result_input *input, struct result *result)
{
    uint64_t command_uj = 0, active_uj = 0;

    for (size_t i = 0; i < result->meter_count; i++)
        if (result->meters[i].kind != METER_NODE_OVERHEAD) {
            command_uj += result->meters[i].command_uj;
            active_uj += less(result->meters[i].counted_uj, result->meters[i].idle_uj);
        }
    for (size_t i = 0; i < result->meter_count; i++) {
        struct result_meter *meter = &result->meters[i];
        double part;

        if (meter->kind != METER_NODE_OVERHEAD || meter->command_uj > 0 || active_uj == 0)
            continue;
        part = MIN((double)command_uj / (double)active_uj, 1.0);
        meter->command_uj = (uint64_t)((double)less(meter->counted_uj, meter->idle_uj) * part);
        meter->is_estimated = true;
        add_boundary(input, BMC_INTERVAL_US, meter);
        apply_prices(input, /* is_billed= */ false, meter);
    }
}

static uint64_t energy_of(const struct result *result, enum meter_kind kind)
{
    uint64_t total_uj = 0;

    for (size_t i = 0; i < result->meter_count; i++)
        if (result->meters[i].kind == kind)
            total_uj += result->meters[i].command_uj;
    return total_uj;
}

static uint64_t gpu_energy_of(const struct result_input *input, const struct relative *relative)
{
    uint64_t total_uj = 0;

    for (size_t i = 0; i < input->gpus->row_count; i++)
        if (is_same(input, &input->gpus->rows[i], relative))
            total_uj += input->gpus->rows[i].energy_uj;
    return total_uj;
}

static int by_energy(const void *a, const void *b)
{
    const struct result_process *x = a, *y = b;
    uint64_t of_x = x->gpu_uj + x->cpu_uj, of_y = y->gpu_uj + y->cpu_uj;

    if (of_x != of_y)
        return of_x < of_y ? 1 : -1;
    if (x->cpu_us != y->cpu_us)
        return x->cpu_us < y->cpu_us ? 1 : -1;
    return (x->pid > y->pid) - (x->pid < y->pid);
}

static void add_processes(const struct result_input *input, struct result *result)
{
    struct result_process *processes = calloc(input->family->count + 1, sizeof(*processes));
    uint64_t cpu_uj = energy_of(result, METER_PACKAGE);

    result->process_total = input->family->count;
    for (size_t i = 0; i < input->family->count && processes; i++) {
        const struct relative *from = &input->family->items[i];

        processes[i] = (struct result_process){
            .pid = from->pid,
            .cpu_us = from->cpu_us,
            .gpu_uj = gpu_energy_of(input, from),
            .cpu_uj = input->cpu_us ? (uint64_t)((unsigned __int128)cpu_uj *
                                                 MIN(from->cpu_us, input->cpu_us) / input->cpu_us)
                                    : 0,
        };
        memcpy(processes[i].name, from->name, sizeof(from->name));
    }
    if (!processes)
        return;
    qsort(processes, input->family->count, sizeof(*processes), by_energy);
    result->process_count = MIN(input->family->count, (size_t)RESULT_PROCESSES_MAX);
    memcpy(result->processes, processes, result->process_count * sizeof(*processes));
    free(processes);
}

void result_make(const struct result_input *input, struct result *ret_result)
{
    const struct books *price = price_of(input);
    double mean_w;

    *ret_result = (struct result){
        .status = input->status,
        .is_interrupted = input->is_interrupted,
        .wall_us = input->wall_us,
        .cpu_us = input->cpu_us,
        .peak_w = input->peak_w,
        .has_grams = factor_of(input)->has_grams,
        .has_cost = price->has_cost,
        .left_running = family_count_alive(input->family),
    };
    memcpy(ret_result->currency, price->currency, sizeof(price->currency));
    add_meters(input, input->before, input->after, false, ret_result);
    if (input->daemon_after)
        add_meters(input, input->daemon_before, input->daemon_after, true, ret_result);
    divide_rest(input, ret_result);
    add_processes(input, ret_result);
    /* The last moments are in no whole second. */
    if (ret_result->peak_w > 0 && result_get(ret_result, QUANTITY_POWER, &mean_w))
        ret_result->peak_w = MAX(ret_result->peak_w, mean_w);
}

static bool has_kind(const struct result *result, enum meter_kind kind)
{
    for (size_t i = 0; i < result->meter_count; i++)
        if (result->meters[i].kind == kind)
            return true;
    return false;
}

static bool get_energy(const struct result *result, enum meter_kind kind, double *ret_value)
{
    if (!has_kind(result, kind))
        return false;
    *ret_value = (double)energy_of(result, kind) / 1e6;
    return true;
}

static bool get_sum(const struct result *result, enum quantity quantity, double *ret_value)
{
    double energy = 0, grams = 0, cost = 0;

    for (size_t i = 0; i < result->meter_count; i++) {
        energy += (double)result->meters[i].command_uj / 1e6;
        grams += result->meters[i].grams;
        cost += result->meters[i].cost;
    }
    *ret_value = quantity == QUANTITY_EMISSIONS ? grams : quantity == QUANTITY_COST ? cost : energy;
    if (quantity == QUANTITY_POWER && result->wall_us > 0)
        *ret_value /= (double)result->wall_us / 1e6;
    return result->meter_count > 0 && (quantity != QUANTITY_EMISSIONS || result->has_grams) &&
           (quantity != QUANTITY_COST || result->has_cost) &&
           (quantity != QUANTITY_POWER || result->wall_us > 0);
}

bool result_get(const struct result *result, enum quantity quantity, double *ret_value)
{
    switch (quantity) {
    case QUANTITY_GPU_ENERGY:
        return get_energy(result, METER_GPU, ret_value);
    case QUANTITY_CPU_ENERGY:
        return get_energy(result, METER_PACKAGE, ret_value);
    case QUANTITY_DRAM_ENERGY:
        return get_energy(result, METER_DRAM, ret_value);
    case QUANTITY_REST_ENERGY:
        return get_energy(result, METER_NODE_OVERHEAD, ret_value);
    case QUANTITY_PEAK_POWER:
        *ret_value = result->peak_w;
        return result->peak_w > 0;
    case QUANTITY_WALL_TIME:
        *ret_value = (double)result->wall_us / 1e6;
        return true;
    case QUANTITY_CPU_TIME:
        *ret_value = (double)result->cpu_us / 1e6;
        return true;
    default:
        return get_sum(result, quantity, ret_value);
    }
}

uint64_t result_uncertain_uj(const struct result *result)
{
    uint64_t total_uj = 0;

    for (size_t i = 0; i < result->meter_count; i++)
        total_uj += result->meters[i].uncertain_uj;
    return total_uj;
}
