/* What workloads use of the node beside GPUs: CPU, memory, IO. */
#include <stdlib.h>

#include "core/macros.h"
#include "metrics/exposition_parts.h"

/* A number of a workload, and the labels that tell it apart within its family. */
static const struct {
    enum metric metric;
    enum usage_field field;
    unsigned digits;
    struct {
        const char *name, *value;
    } labels[2];
} families[] = {
    {METRIC_WORKLOAD_CPU, USAGE_CPU_USER_US, MICRO, {{"mode", "user"}}},
    {METRIC_WORKLOAD_CPU, USAGE_CPU_SYSTEM_US, MICRO, {{"mode", "system"}}},
    {METRIC_WORKLOAD_CPU_PERIODS, USAGE_CPU_PERIODS, WHOLE, {{0}}},
    {METRIC_WORKLOAD_CPU_THROTTLED_PERIODS, USAGE_CPU_THROTTLED_PERIODS, WHOLE, {{0}}},
    {METRIC_WORKLOAD_CPU_THROTTLED, USAGE_CPU_THROTTLED_US, MICRO, {{0}}},
    {METRIC_WORKLOAD_MEMORY_RSS, USAGE_MEMORY_RSS_BYTES, WHOLE, {{0}}},
    {METRIC_WORKLOAD_MEMORY_CACHE, USAGE_MEMORY_CACHE_BYTES, WHOLE, {{0}}},
    {METRIC_WORKLOAD_MEMORY_USED, USAGE_MEMORY_USED_BYTES, WHOLE, {{0}}},
    {METRIC_WORKLOAD_MEMORY_SWAP, USAGE_MEMORY_SWAP_BYTES, WHOLE, {{0}}},
    {METRIC_WORKLOAD_MEMORY_LIMIT, USAGE_MEMORY_LIMIT_BYTES, WHOLE, {{0}}},
    {METRIC_WORKLOAD_MEMORY_FAILURES, USAGE_MEMORY_FAILURES, WHOLE, {{0}}},
    {METRIC_WORKLOAD_MEMORY_OOM_KILLS, USAGE_MEMORY_OOM_KILLS, WHOLE, {{0}}},
    {METRIC_WORKLOAD_PRESSURE, USAGE_CPU_SOME_US, MICRO, {{"resource", "cpu"}, {"stall", "some"}}},
    {METRIC_WORKLOAD_PRESSURE, USAGE_CPU_FULL_US, MICRO, {{"resource", "cpu"}, {"stall", "full"}}},
    {METRIC_WORKLOAD_PRESSURE,
     USAGE_MEMORY_SOME_US,
     MICRO,
     {{"resource", "memory"}, {"stall", "some"}}},
    {METRIC_WORKLOAD_PRESSURE,
     USAGE_MEMORY_FULL_US,
     MICRO,
     {{"resource", "memory"}, {"stall", "full"}}},
    {METRIC_WORKLOAD_PRESSURE, USAGE_IO_SOME_US, MICRO, {{"resource", "io"}, {"stall", "some"}}},
    {METRIC_WORKLOAD_PRESSURE, USAGE_IO_FULL_US, MICRO, {{"resource", "io"}, {"stall", "full"}}},
    {METRIC_WORKLOAD_PIDS, USAGE_PIDS, WHOLE, {{0}}},
};

static const enum metric io_metrics[USAGE_IO_FIELDS] = {
    [USAGE_IO_READ_BYTES] = METRIC_WORKLOAD_IO_READ,
    [USAGE_IO_WRITTEN_BYTES] = METRIC_WORKLOAD_IO_WRITTEN,
    [USAGE_IO_READS] = METRIC_WORKLOAD_IO_READS,
    [USAGE_IO_WRITES] = METRIC_WORKLOAD_IO_WRITES,
};

/* The labels that a workload has in all of its rows; escaped only once. */
struct labelled {
    const struct snapshot_usage *row;
    struct text_labels labels; /* once written */
};

typedef void write_row(struct text *text, struct labelled *labelled, int which);

static void begin(struct text *text, struct labelled *labelled)
{
    const struct snapshot_usage *row = labelled->row;

    text_sample(text);
    if (labelled->labels.len > 0) {
        text_repeat_labels(text, labelled->labels);
        return;
    }
    exposition_workload_labels(text, row->kind, row->id, &row->names);
    labelled->labels = text_labels_so_far(text);
}

static void field_row(struct text *text, struct labelled *labelled, int which)
{
    if (!usage_has(&labelled->row->usage, families[which].field))
        return;
    begin(text, labelled);
    for (size_t i = 0; i < ARRAY_SIZE(families[which].labels) && families[which].labels[i].name;
         i++)
        text_label(text, families[which].labels[i].name, families[which].labels[i].value);
    text_value(text, (int64_t)labelled->row->usage.values[families[which].field],
               families[which].digits);
}

static void working_set_row(struct text *text, struct labelled *labelled, int which)
{
    const uint64_t *values = labelled->row->usage.values;

    (void)which;
    if (!usage_has(&labelled->row->usage, USAGE_MEMORY_USED_BYTES) ||
        !usage_has(&labelled->row->usage, USAGE_MEMORY_INACTIVE_FILE_BYTES))
        return;
    begin(text, labelled);
    text_value(
        text,
        (int64_t)(values[USAGE_MEMORY_USED_BYTES] -
                  MIN(values[USAGE_MEMORY_USED_BYTES], values[USAGE_MEMORY_INACTIVE_FILE_BYTES])),
        WHOLE);
}

static void io_rows(struct text *text, struct labelled *labelled, int field)
{
    for (size_t i = 0; i < labelled->row->usage.io_count; i++) {
        const struct usage_io *io = &labelled->row->usage.io[i];

        if (!(io->valid & 1U << field))
            continue;
        begin(text, labelled);
        text_label(text, "device", io->device);
        text_value(text, (int64_t)io->values[field], WHOLE);
    }
}

static void rdma_rows(struct text *text, struct labelled *labelled, int objects)
{
    for (size_t i = 0; i < labelled->row->usage.rdma_count; i++) {
        const struct usage_rdma *rdma = &labelled->row->usage.rdma[i];

        if (!(objects ? rdma->has_objects : rdma->has_handles))
            continue;
        begin(text, labelled);
        text_label(text, "device", rdma->device);
        text_value(text, (int64_t)(objects ? rdma->objects : rdma->handles), WHOLE);
    }
}

static void hugetlb_rows(struct text *text, struct labelled *labelled, int which)
{
    (void)which;
    for (size_t i = 0; i < labelled->row->usage.hugetlb_count; i++) {
        begin(text, labelled);
        text_label_u64(text, "page_bytes", labelled->row->usage.hugetlb[i].page_bytes);
        text_value(text, (int64_t)labelled->row->usage.hugetlb[i].used_bytes, WHOLE);
    }
}

struct rows {
    struct labelled *items;
    size_t count;
};

static void write_rows(struct text *text, const struct rows *rows, write_row *write, int which)
{
    for (size_t i = 0; i < rows->count; i++)
        write(text, &rows->items[i], which);
}

static void write_families(struct text *text, const struct rows *rows)
{
    for (size_t i = 0; i < ARRAY_SIZE(families); i++) {
        if (i == 0 || families[i].metric != families[i - 1].metric)
            text_family(text, families[i].metric);
        write_rows(text, rows, field_row, (int)i);
    }
    text_family(text, METRIC_WORKLOAD_MEMORY_WORKING_SET);
    write_rows(text, rows, working_set_row, 0);
    for (int f = 0; f < USAGE_IO_FIELDS; f++) {
        text_family(text, io_metrics[f]);
        write_rows(text, rows, io_rows, f);
    }
    text_family(text, METRIC_WORKLOAD_RDMA_HANDLES);
    write_rows(text, rows, rdma_rows, false);
    text_family(text, METRIC_WORKLOAD_RDMA_OBJECTS);
    write_rows(text, rows, rdma_rows, true);
    text_family(text, METRIC_WORKLOAD_HUGETLB);
    write_rows(text, rows, hugetlb_rows, 0);
}

void exposition_usage(struct text *text, const struct snapshot *snapshot, enum expose expose)
{
    _cleanup_free_ struct labelled *items =
        calloc(MAX(snapshot->usage_count, (size_t)1), sizeof(*items));
    struct rows rows = {.items = items};

    if (!items) {
        buffer_fail(text->out);
        return;
    }
    for (size_t i = 0; i < snapshot->usage_count; i++)
        if (exposition_shows(expose, snapshot->usages[i].kind))
            items[rows.count++].row = &snapshot->usages[i];
    write_families(text, &rows);
}
