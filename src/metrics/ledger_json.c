#include "metrics/ledger_json.h"

#include "core/json.h"
#include "metrics/confidence.h"

static void put_field(struct buffer *out, const char *name, uint64_t value)
{
    buffer_char(out, ',');
    json_string(out, name);
    buffer_char(out, ':');
    buffer_u64(out, value);
}

static void put_meter(struct buffer *out, const struct snapshot_meter *meter)
{
    buffer_str(out, "{\"meter\":");
    json_string(out, meter_words[meter->kind]);
    buffer_str(out, ",\"meter_id\":");
    json_string(out, meter->meter_id);
    if (meter->kind == METER_GPU)
        put_field(out, "gpu", meter->gpu);
    put_field(out, "energy_uj", meter->energy_uj);
    put_field(out, "idle_uj", meter->unowned_uj[UNOWNED_IDLE]);
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
    buffer_str(out, "]}\n");
}
