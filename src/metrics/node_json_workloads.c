/* The workloads: all that tables of the snapshot have about one of them, together. */
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"
#include "metrics/node_json_private.h"

/* A row of the snapshot that is about a workload. Those of one follow one another in this order. */
struct row {
    enum workload_kind kind;
    const char *id;
    enum row_table {
        ROW_METER,
        ROW_USAGE,
        ROW_INFO,
        ROW_ALLOCATION,
        ROW_PROCESS,
        ROW_TABLES
    } table;
    const void *of;
};

/* The rows of one workload in a table. */
struct span_of_rows {
    const struct row *rows;
    size_t count;
};

struct workload_rows {
    struct span_of_rows tables[ROW_TABLES];
};

static int compare_rows(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    int order;

    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    order = strcmp(x->id, y->id);
    if (order != 0)
        return order;
    if (x->table != y->table)
        return x->table < y->table ? -1 : 1;
    return (x->of > y->of) - (x->of < y->of);
}

#define ADD_ROWS(table_, items, item_count)                                                        \
    for (size_t i_ = 0; i_ < (item_count); i_++)                                                   \
        rows[count++] = (struct row)                                                               \
        {                                                                                          \
            (items)[i_].kind, (items)[i_].id, (table_), &(items)[i_]                               \
        }

/* All rows about workloads, sorted. NULL if out of memory. */
static struct row *list_rows(const struct snapshot *snapshot, size_t *ret_count)
{
    struct row *rows =
        calloc(snapshot->workload_count + snapshot->usage_count + snapshot->info_count +
                   snapshot->allocation_count + snapshot->process_count + 1,
               sizeof(*rows));
    size_t count = 0;

    if (!rows)
        return NULL;
    ADD_ROWS(ROW_METER, snapshot->workloads, snapshot->workload_count);
    ADD_ROWS(ROW_USAGE, snapshot->usages, snapshot->usage_count);
    ADD_ROWS(ROW_INFO, snapshot->infos, snapshot->info_count);
    ADD_ROWS(ROW_ALLOCATION, snapshot->allocations, snapshot->allocation_count);
    ADD_ROWS(ROW_PROCESS, snapshot->processes, snapshot->process_count);
    qsort(rows, count, sizeof(*rows), compare_rows);
    *ret_count = count;
    return rows;
}

/* Divides the rows of one workload among the tables. Returns their number. */
static size_t take_workload(const struct row *rows, size_t count, struct workload_rows *ret_rows)
{
    size_t taken = 0;

    *ret_rows = (struct workload_rows){0};
    while (taken < count && rows[taken].kind == rows[0].kind &&
           strcmp(rows[taken].id, rows[0].id) == 0) {
        struct span_of_rows *table = &ret_rows->tables[rows[taken].table];

        if (table->count++ == 0)
            table->rows = &rows[taken];
        taken++;
    }
    return taken;
}

/* The names of a row, or of what is known by now: unlike labels they may come late. */
static void put_names(struct buffer *out, const struct workload_rows *rows)
{
    const struct workload_names *names = NULL;
    const struct snapshot_info *info =
        rows->tables[ROW_INFO].count > 0 ? rows->tables[ROW_INFO].rows[0].of : NULL;

    if (rows->tables[ROW_METER].count > 0)
        names = &((const struct snapshot_workload *)rows->tables[ROW_METER].rows[0].of)->names;
    else if (rows->tables[ROW_USAGE].count > 0)
        names = &((const struct snapshot_usage *)rows->tables[ROW_USAGE].rows[0].of)->names;
    else if (rows->tables[ROW_ALLOCATION].count > 0)
        names =
            &((const struct snapshot_allocation *)rows->tables[ROW_ALLOCATION].rows[0].of)->names;
    if (!names)
        return;
    member_text(out, "name", names->name);
    member_text(out, "namespace",
                names->namespace[0] || !info ? names->namespace : info->namespace);
    member_text(out, "pod", names->pod[0] || !info ? names->pod : info->pod);
    member_text(out, "container",
                names->container[0] || !info ? names->container : info->container);
}

static void put_account(struct buffer *out, const struct snapshot_meter *meter,
                        const struct account *account)
{
    uint64_t energy_uj = account_total_uj(account);

    member_joules(out, "energy_joules", energy_uj);
    if (meter->has_uncertainty)
        member_joules(out, "uncertainty_joules", account->uncertain_uj);
    if (energy_uj > 0)
        json_member_fixed(out, "confidence", confidence_millionths(account->known_uj, energy_uj),
                          MICRO);
}

/* The power of a workload at a meter that is booked at present; < 0: none. */
static double row_power(const struct snapshot *snapshot, const struct snapshot_workload *row)
{
    return snapshot->meters[row->meter].power_mw >= 0 ? row->power_mw : -1;
}

static void put_row_meters(struct buffer *out, const struct snapshot *snapshot,
                           const struct span_of_rows *meters)
{
    open_array(out, "meters");
    for (size_t i = 0; i < meters->count; i++) {
        const struct snapshot_workload *row = meters->rows[i].of;

        open_element(out);
        json_member_u64(out, "meter", row->meter);
        member_watts(out, "watts", row_power(snapshot, row));
        put_account(out, &snapshot->meters[row->meter], &row->account);
        buffer_char(out, '}');
    }
    buffer_char(out, ']');
}

static void member_bill(struct buffer *out, const char *key, unsigned __int128 bill)
{
    enum { BILLION = 1000000000 };
    unsigned __int128 billionths = exposition_billionths(bill);

    json_key(out, key);
    buffer_decimal(out, (uint64_t)(billionths / BILLION), (uint64_t)(billionths % BILLION), NANO);
}

/* Sums over the meters of a workload. */
static void put_sums(struct buffer *out, const struct snapshot *snapshot,
                     const struct span_of_rows *meters)
{
    struct account sum = {0};
    bool has_uncertainty = false;
    double power_mw = -1;

    for (size_t i = 0; i < meters->count; i++) {
        const struct snapshot_workload *row = meters->rows[i].of;
        double row_mw = row_power(snapshot, row);

        account_add(&sum, &row->account);
        has_uncertainty |= snapshot->meters[row->meter].has_uncertainty;
        if (row_mw >= 0)
            power_mw = MAX(power_mw, 0.0) + row_mw;
    }
    if (meters->count == 0)
        return;
    member_watts(out, "watts", power_mw);
    member_joules(out, "energy_joules", account_total_uj(&sum));
    if (has_uncertainty)
        member_joules(out, "uncertainty_joules", sum.uncertain_uj);
    if (snapshot->price.factor.known)
        member_bill(out, "emissions_grams", sum.bill.emission);
    if (snapshot->price.cost.known)
        member_bill(out, "cost", sum.bill.cost);
}

static void put_usage(struct buffer *out, const struct usage *usage)
{
    if (usage_has(usage, USAGE_CPU_US))
        member_seconds(out, "cpu_seconds", usage->values[USAGE_CPU_US]);
    if (usage_has(usage, USAGE_MEMORY_USED_BYTES))
        json_member_u64(out, "memory_bytes", usage->values[USAGE_MEMORY_USED_BYTES]);
}

static bool is_shown(const struct snapshot_process *process)
{
    return !process->superseded && !process->hidden;
}

static void put_gpu_memory(struct buffer *out, const struct span_of_rows *processes)
{
    uint64_t sum_bytes = 0;
    bool is_known = false;

    for (size_t i = 0; i < processes->count; i++) {
        const struct snapshot_process *process = processes->rows[i].of;

        if (!is_shown(process) || !(process->valid & SNAPSHOT_PROCESS_MEMORY))
            continue;
        is_known = true;
        sum_bytes += process->memory_bytes;
    }
    if (is_known)
        json_member_u64(out, "gpu_memory_bytes", sum_bytes);
}

static void put_process(struct buffer *out, const struct snapshot_process *process)
{
    open_element(out);
    if (process->pid > 0) /* else those that --max-processes cut, together */
        json_member_u64(out, "pid", process->pid);
    json_member_u64(out, "gpu", process->gpu);
    member_text(out, "name", process->name);
    member_joules(out, "energy_joules", process->active_uj + process->idle_uj);
    if (process->valid & SNAPSHOT_PROCESS_UNCERTAINTY)
        member_joules(out, "uncertainty_joules", process->uncertain_uj);
    if (process->valid & SNAPSHOT_PROCESS_MEMORY)
        json_member_u64(out, "gpu_memory_bytes", process->memory_bytes);
    if (process->valid & SNAPSHOT_PROCESS_START)
        member_seconds(out, "start_time", process->start_us);
    buffer_char(out, '}');
}

static void put_processes(struct buffer *out, const struct span_of_rows *processes)
{
    open_array(out, "processes");
    for (size_t i = 0; i < processes->count; i++)
        if (is_shown(processes->rows[i].of))
            put_process(out, processes->rows[i].of);
    buffer_char(out, ']');
}

static void put_allocations(struct buffer *out, const struct span_of_rows *allocations)
{
    open_array(out, "gpus");
    for (size_t i = 0; i < allocations->count; i++) {
        const struct snapshot_allocation *row = allocations->rows[i].of;

        open_element(out);
        json_member_u64(out, "gpu", row->gpu);
        json_member(out, "uuid", row->uuid);
        if (row->has_instance)
            json_member_u64(out, "gpu_instance", row->gpu_instance);
        json_member(out, "source", allocation_source_words[row->source]);
        if (row->is_unverified)
            json_member_bool(out, "unverified", true);
        buffer_char(out, '}');
    }
    buffer_char(out, ']');
}

static void put_details(struct buffer *out, const struct snapshot_info *info)
{
    json_key(out, "details");
    buffer_char(out, '{');
    member_text(out, "image", info->image);
    member_text(out, "user", info->user);
    member_text(out, "account", info->account);
    member_text(out, "job_id", info->job_id);
    member_text(out, "job_name", info->job_name);
    member_text(out, "uuid", info->uuid);
    member_text(out, "unverified", info->unverified);
    buffer_char(out, '}');
}

static void put_workload(struct buffer *out, const struct snapshot *snapshot, enum expose expose,
                         const struct row *first, const struct workload_rows *rows)
{
    json_member(out, "kind", workload_words[first->kind]);
    json_member(out, "id", first->id);
    put_names(out, rows);
    put_sums(out, snapshot, &rows->tables[ROW_METER]);
    put_gpu_memory(out, &rows->tables[ROW_PROCESS]);
    if (rows->tables[ROW_USAGE].count > 0)
        put_usage(out, &((const struct snapshot_usage *)rows->tables[ROW_USAGE].rows[0].of)->usage);
    put_row_meters(out, snapshot, &rows->tables[ROW_METER]);
    if (expose == EXPOSE_ALL)
        put_processes(out, &rows->tables[ROW_PROCESS]);
    put_allocations(out, &rows->tables[ROW_ALLOCATION]);
    if (rows->tables[ROW_INFO].count > 0)
        put_details(out, rows->tables[ROW_INFO].rows[0].of);
}

/* What has processes alone is the system, which is unowned, or waits for its names. */
static bool is_workload(const struct workload_rows *rows)
{
    return rows->tables[ROW_METER].count > 0 || rows->tables[ROW_USAGE].count > 0 ||
           rows->tables[ROW_ALLOCATION].count > 0;
}

void node_json_workloads(struct buffer *out, const struct snapshot *snapshot, enum expose expose)
{
    size_t count = 0, taken;
    _cleanup_free_ struct row *rows = list_rows(snapshot, &count);

    if (!rows) {
        buffer_fail(out);
        return;
    }
    open_array(out, "workloads");
    for (size_t i = 0; i < count; i += taken) {
        struct workload_rows workload;

        taken = take_workload(&rows[i], count - i, &workload);
        if (!is_workload(&workload) || !expose_has(expose, rows[i].kind))
            continue;
        open_element(out);
        put_workload(out, snapshot, expose, &rows[i], &workload);
        buffer_char(out, '}');
    }
    buffer_char(out, ']');
}
