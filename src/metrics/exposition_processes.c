/* Per process and GPU. */
#include "metrics/confidence.h"
#include "metrics/exposition_parts.h"

static void process_labels(struct text *text, const struct snapshot_process *process)
{
    text_sample(text);
    if (process->pid > 0)
        text_label_u64(text, "pid", process->pid);
    else
        text_label(text, "pid", "other");
    text_label_u64(text, "gpu", process->gpu);
    text_label(text, "process_name", process->name);
    text_label(text, "pod", process->names.pod);
    text_label(text, "namespace", process->names.namespace);
    text_label(text, "container", process->names.container);
    text_label(text, "pod_uid", process->pod_uid);
    text_label(text, "container_id", process->container_id);
}

static uint64_t energy_of(const struct snapshot_process *process)
{
    return process->active_uj + process->idle_uj;
}

static void process_energy(struct text *text, const struct snapshot_process *process)
{
    process_labels(text, process);
    text_label(text, "energy_estimated", "false");
    text_value(text, (int64_t)process->measured_uj, MICRO);
    process_labels(text, process);
    text_label(text, "energy_estimated", "true");
    text_value(text, (int64_t)(energy_of(process) - process->measured_uj), MICRO);
}

static void process_energy_sum(struct text *text, const struct snapshot_process *process)
{
    process_labels(text, process);
    text_value(text, (int64_t)energy_of(process), MICRO);
}

static void process_confidence(struct text *text, const struct snapshot_process *process)
{
    if (energy_of(process) == 0)
        return;
    process_labels(text, process);
    text_value(text, confidence_millionths(process->known_uj, energy_of(process)), MICRO);
}

/* A sum of percents over the samples that a process won, as a ratio over all samples. */
static void won_ratio(struct text *text, const struct snapshot_process *process,
                      uint64_t won_percent)
{
    if (!(process->valid & SNAPSHOT_PROCESS_UTILISATION))
        return;
    process_labels(text, process);
    text_value(text, process->samples ? (int64_t)(won_percent * 10000 / process->samples) : 0,
               MICRO);
}

static void process_sm(struct text *text, const struct snapshot_process *process)
{
    won_ratio(text, process, process->sm_won_percent);
}

static void process_memory_utilisation(struct text *text, const struct snapshot_process *process)
{
    won_ratio(text, process, process->memory_won_percent);
}

static void process_memory(struct text *text, const struct snapshot_process *process)
{
    if (!(process->valid & SNAPSHOT_PROCESS_MEMORY))
        return;
    process_labels(text, process);
    text_value(text, (int64_t)process->memory_bytes, WHOLE);
}

static void process_start(struct text *text, const struct snapshot_process *process)
{
    if (!(process->valid & SNAPSHOT_PROCESS_START))
        return;
    process_labels(text, process);
    text_value(text, (int64_t)process->start_us, MICRO);
}

static void process_active(struct text *text, const struct snapshot_process *process)
{
    if (process->pid == 0)
        return; /* many, in one row */
    process_labels(text, process);
    text_value(text, process->active, WHOLE);
}

static void processes(struct text *text, const struct snapshot *snapshot, enum metric metric,
                      void (*row)(struct text *, const struct snapshot_process *))
{
    text_family(text, metric);
    for (size_t i = 0; i < snapshot->process_count; i++)
        if (!snapshot->processes[i].superseded && !snapshot->processes[i].hidden)
            row(text, &snapshot->processes[i]);
}

static void compat_gpu_energy(struct text *text, const struct snapshot *snapshot)
{
    text_family(text, METRIC_COMPAT_GPU_ENERGY);
    for (size_t i = 0; i < snapshot->meter_count; i++) {
        if (snapshot->meters[i].kind != METER_GPU || snapshot->meters[i].replaced)
            continue;
        text_sample(text);
        text_label_u64(text, "gpu", snapshot->meters[i].gpu);
        text_value(text, (int64_t)snapshot->meters[i].energy_uj, MICRO);
    }
}

static void all_processes(struct text *text, const struct snapshot *snapshot,
                          const struct exposition_options *options)
{
    processes(text, snapshot, METRIC_PROCESS_ENERGY, process_energy);
    /* In OpenMetrics a counter's family has no _total: there this name is taken. */
    if (options->compat & COMPAT_MY_GPU_EXPORTER && options->format == TEXT_PROMETHEUS)
        processes(text, snapshot, METRIC_PROCESS_ENERGY_SUM, process_energy_sum);
    processes(text, snapshot, METRIC_PROCESS_CONFIDENCE, process_confidence);
    processes(text, snapshot, METRIC_PROCESS_SM_UTILIZATION, process_sm);
    processes(text, snapshot, METRIC_PROCESS_MEMORY_UTILIZATION, process_memory_utilisation);
    processes(text, snapshot, METRIC_PROCESS_MEMORY_USED, process_memory);
    processes(text, snapshot, METRIC_PROCESS_START_TIME, process_start);
    processes(text, snapshot, METRIC_PROCESS_ACTIVE, process_active);
}

void exposition_processes(struct text *text, const struct snapshot *snapshot,
                          const struct exposition_options *options)
{
    if (options->expose == EXPOSE_ALL)
        all_processes(text, snapshot, options);
    if (options->compat & COMPAT_MY_GPU_EXPORTER)
        compat_gpu_energy(text, snapshot);
}
