#include "metrics/ledger_json.h"

#include "core/json.h"

static void meter_labels(struct buffer *out, enum meter_kind kind, const char *id)
{
    json_member(out, "meter", meter_words[kind]);
    json_member(out, "meter_id", id);
}

static void meter_object(struct buffer *out, const struct snapshot_meter *meter)
{
    meter_labels(out, meter->kind, meter->meter_id);
    if (meter->kind == METER_GPU)
        json_member_u64(out, "gpu", meter->gpu);
    json_member_u64(out, "energy_uj", meter->energy_uj);
    json_member_u64(out, "idle_uj", meter->unowned_uj[UNOWNED_IDLE]);
    if (meter->kind != METER_GPU) /* at a GPU, the system's processes have rows */
        json_member_u64(out, "system_uj", meter->unowned_uj[UNOWNED_SYSTEM]);
    json_member_u64(out, "unattributed_uj", meter->unowned_uj[UNOWNED_UNATTRIBUTED]);
    json_member_u64(out, "gap_uj", meter->unowned_uj[UNOWNED_GAP]);
    json_member_u64(out, "resets", meter->resets);
}

static void process_object(struct buffer *out, const struct snapshot_process *process)
{
    uint64_t energy_uj = process->active_uj + process->idle_uj;

    json_member_u64(out, "pid", process->pid);
    json_member_u64(out, "gpu", process->gpu);
    json_member_u64(out, "energy_uj", energy_uj);
    json_member_u64(out, "active_uj", process->active_uj);
    json_member_u64(out, "idle_uj", process->idle_uj);
    json_member_u64(out, "measured_uj", process->measured_uj);
    json_key(out, "confidence");
    buffer_fixed(out, confidence_millionths(process->known_uj, energy_uj), 6);
    if (process->valid & SNAPSHOT_PROCESS_UNCERTAINTY)
        json_member_u64(out, "uncertainty_uj", process->uncertain_uj);
}

static void workload_object(struct buffer *out, const struct snapshot *snapshot,
                            const struct snapshot_workload *workload)
{
    const struct snapshot_meter *meter = &snapshot->meters[workload->meter];
    const char *const names[] = {workload->names.name, workload->names.namespace,
                                 workload->names.pod, workload->names.container};

    json_member(out, "kind", workload_words[workload->kind]);
    json_member(out, "id", workload->id);
    for (int i = WORKLOAD_TEXT_NAME; i <= WORKLOAD_TEXT_CONTAINER; i++)
        if (names[i][0])
            json_member(out, workload_text_words[i], names[i]);
    meter_labels(out, meter->kind, meter->meter_id);
    json_member_u64(out, "energy_uj", account_total_uj(&workload->account));
    if (meter->has_uncertainty)
        json_member_u64(out, "uncertainty_uj", workload->account.uncertain_uj);
}

static bool has_node_meters(const struct snapshot *snapshot)
{
    for (size_t i = 0; i < snapshot->meter_count; i++)
        if (snapshot->meters[i].kind != METER_GPU)
            return true;
    return snapshot->observed_count > 0;
}

static bool has_names(const struct snapshot *snapshot)
{
    for (size_t i = 0; i < snapshot->workload_count; i++)
        if (snapshot->workloads[i].names.name[0])
            return true;
    return false;
}

/* Begins the object of row `i` on a line of its own. */
static void begin_row(struct buffer *out, size_t i)
{
    buffer_str(out, i ? "},\n {" : "\n {");
}

static void end_rows(struct buffer *out, size_t count)
{
    buffer_str(out, count ? "}]" : "]");
}

void ledger_json(const struct snapshot *snapshot, struct buffer *out)
{
    buffer_str(out, "{\"meters\":[");
    for (size_t i = 0; i < snapshot->meter_count; i++) {
        begin_row(out, i);
        meter_object(out, &snapshot->meters[i]);
    }
    end_rows(out, snapshot->meter_count);
    buffer_str(out, ",\n\"processes\":[");
    for (size_t i = 0; i < snapshot->process_count; i++) {
        begin_row(out, i);
        process_object(out, &snapshot->processes[i]);
    }
    end_rows(out, snapshot->process_count);
    /* For GPUs alone, workloads add nothing to processes but names. */
    if (has_node_meters(snapshot) || has_names(snapshot)) {
        buffer_str(out, ",\n\"workloads\":[");
        for (size_t i = 0; i < snapshot->workload_count; i++) {
            begin_row(out, i);
            workload_object(out, snapshot, &snapshot->workloads[i]);
        }
        end_rows(out, snapshot->workload_count);
    }
    if (has_node_meters(snapshot)) {
        buffer_str(out, ",\n\"observed\":[");
        for (size_t i = 0; i < snapshot->observed_count; i++) {
            begin_row(out, i);
            meter_labels(out, snapshot->observed[i].kind, snapshot->observed[i].id);
            json_member_u64(out, "counter_uj", snapshot->observed[i].counter_uj);
        }
        end_rows(out, snapshot->observed_count);
    }
    buffer_str(out, "}\n");
}
