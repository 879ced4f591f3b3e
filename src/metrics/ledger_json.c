#include "metrics/ledger_json.h"

#include "core/json.h"
#include "core/macros.h"
#include "metrics/confidence.h"

static void put_field(struct buffer *out, const char *name, uint64_t value)
{
    buffer_char(out, ',');
    json_string(out, name);
    buffer_char(out, ':');
    buffer_u64(out, value);
}

static void put_text(struct buffer *out, const char *name, const char *value)
{
    json_string(out, name);
    buffer_char(out, ':');
    json_string(out, value);
}

static void put_meter_id(struct buffer *out, enum meter_kind kind, const char *id)
{
    put_text(out, "meter", meter_words[kind]);
    buffer_char(out, ',');
    put_text(out, "meter_id", id);
}

static void put_meter(struct buffer *out, const struct snapshot_meter *meter)
{
    buffer_char(out, '{');
    put_meter_id(out, meter->kind, meter->meter_id);
    if (meter->kind == METER_GPU)
        put_field(out, "gpu", meter->gpu);
    put_field(out, "energy_uj", meter->energy_uj);
    put_field(out, "idle_uj", meter->unowned_uj[UNOWNED_IDLE]);
    if (meter->kind != METER_GPU) /* of a GPU, they are processes */
        put_field(out, "system_uj", meter->unowned_uj[UNOWNED_SYSTEM]);
    put_field(out, "unattributed_uj", meter->unowned_uj[UNOWNED_UNATTRIBUTED]);
    put_field(out, "gap_uj", meter->unowned_uj[UNOWNED_GAP]);
    put_field(out, "resets", meter->resets);
    buffer_char(out, '}');
}

static void put_process(struct buffer *out, const struct snapshot_process *process)
{
    uint64_t energy_uj = process->active_uj + process->idle_uj;

    buffer_str(out, "{\"pid\":");
    buffer_u64(out, process->pid);
    put_field(out, "gpu", process->gpu);
    put_field(out, "energy_uj", energy_uj);
    put_field(out, "active_uj", process->active_uj);
    put_field(out, "idle_uj", process->idle_uj);
    put_field(out, "measured_uj", process->measured_uj);
    buffer_str(out, ",\"confidence\":");
    buffer_fixed(out, confidence_millionths(process->known_uj, energy_uj), 6);
    buffer_char(out, '}');
}

static void put_names(struct buffer *out, const struct workload_names *names)
{
    const struct {
        const char *key, *text;
    } texts[] = {{"name", names->name},
                 {"namespace", names->namespace},
                 {"pod", names->pod},
                 {"container", names->container}};

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        if (texts[i].text[0]) {
            put_text(out, texts[i].key, texts[i].text);
            buffer_char(out, ',');
        }
}

static void put_workload(struct buffer *out, const struct snapshot *snapshot,
                         const struct snapshot_workload *workload)
{
    const struct snapshot_meter *meter = &snapshot->meters[workload->meter];

    buffer_char(out, '{');
    put_text(out, "kind", workload_words[workload->kind]);
    buffer_char(out, ',');
    put_text(out, "id", workload->id);
    buffer_char(out, ',');
    put_names(out, &workload->names);
    put_meter_id(out, meter->kind, meter->meter_id);
    put_field(out, "energy_uj", account_total_uj(&workload->account));
    buffer_char(out, '}');
}

static void put_observed(struct buffer *out, const struct snapshot_observed *observed)
{
    buffer_char(out, '{');
    put_meter_id(out, observed->kind, observed->id);
    put_field(out, "counter_uj", observed->counter_uj);
    buffer_char(out, '}');
}

static void put_workloads(struct buffer *out, const struct snapshot *snapshot)
{
    buffer_str(out, ",\n\"workloads\":[");
    for (size_t i = 0; i < snapshot->workload_count; i++) {
        buffer_str(out, i ? ",\n " : "\n ");
        put_workload(out, snapshot, &snapshot->workloads[i]);
    }
    buffer_char(out, ']');
}

static void put_all_observed(struct buffer *out, const struct snapshot *snapshot)
{
    buffer_str(out, ",\n\"observed\":[");
    for (size_t i = 0; i < snapshot->observed_count; i++) {
        buffer_str(out, i ? ",\n " : "\n ");
        put_observed(out, &snapshot->observed[i]);
    }
    buffer_char(out, ']');
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

void ledger_json(const struct snapshot *snapshot, struct buffer *out)
{
    buffer_str(out, "{\"meters\":[");
    for (size_t i = 0; i < snapshot->meter_count; i++) {
        buffer_str(out, i ? ",\n " : "\n ");
        put_meter(out, &snapshot->meters[i]);
    }
    buffer_str(out, "],\n\"processes\":[");
    for (size_t i = 0; i < snapshot->process_count; i++) {
        buffer_str(out, i ? ",\n " : "\n ");
        put_process(out, &snapshot->processes[i]);
    }
    buffer_char(out, ']');
    /* Of GPUs, processes tell it all but names. */
    if (has_node_meters(snapshot) || has_names(snapshot))
        put_workloads(out, snapshot);
    if (has_node_meters(snapshot))
        put_all_observed(out, snapshot);
    buffer_str(out, "}\n");
}
