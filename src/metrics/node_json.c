#include "metrics/node_json.h"

#include "core/macros.h"
#include "metrics/node_json_private.h"

static double sum_watts(const struct snapshot *snapshot)
{
    double power_mw = -1;

    for (size_t i = 0; i < snapshot->meter_count; i++)
        if (snapshot->meters[i].power_mw >= 0)
            power_mw = MAX(power_mw, 0.0) + snapshot->meters[i].power_mw;
    return power_mw;
}

static void put_node(struct buffer *out, const struct snapshot *snapshot,
                     const struct node_json_options *options)
{
    const struct price *price = &snapshot->price;

    json_member_u64(out, "api", 1);
    json_member(out, "version", options->version);
    json_member(out, "node", snapshot->node ? snapshot->node : "");
    member_seconds(out, "time", snapshot->time_us);
    member_seconds(out, "start_time", snapshot->start_us);
    json_member_u64(out, "generation", options->generation);
    if (snapshot->replay_active)
        json_member_bool(out, "replay", true);
    if (price->cost.known) {
        json_member(out, "currency", price->cost.currency);
        json_member_fixed(out, "price_per_kwh", (int64_t)price->cost.micro_per_kwh, MICRO);
    }
    if (price->factor.known)
        json_member_fixed(out, "grams_per_kwh", (int64_t)price->factor.ug_per_kwh, MICRO);
    if (price->pue_millionths > 0 && price->pue_millionths != PRICE_PUE_ONE)
        json_member_fixed(out, "pue", (int64_t)price->pue_millionths, MICRO);
    member_watts(out, "watts", sum_watts(snapshot));
}

static void put_unowned(struct buffer *out, const struct snapshot_meter *meter)
{
    json_key(out, "unowned");
    buffer_char(out, '{');
    for (int owner = 0; owner < UNOWNED_COUNT; owner++) {
        json_key(out, unowned_words[owner]);
        buffer_char(out, '{');
        if (meter->power_mw >= 0)
            member_watts(out, "watts", meter->unowned_mw[owner]);
        member_joules(out, "energy_joules", meter->unowned_uj[owner]);
        buffer_char(out, '}');
    }
    buffer_char(out, '}');
}

static void put_meter(struct buffer *out, const struct snapshot_meter *meter)
{
    json_member(out, "meter", meter_words[meter->kind]);
    json_member(out, "meter_id", meter->meter_id);
    if (meter->kind == METER_GPU && !meter->replaced)
        json_member_u64(out, "gpu", meter->gpu);
    json_member_bool(out, "modelled", meter->modelled);
    member_watts(out, "watts", meter->power_mw);
    member_watts(out, "measured_watts", meter->measured_mw);
    if (meter->settled_until_us > 0)
        member_seconds(out, "settled_time", meter->settled_until_us);
    member_joules(out, "energy_joules", meter->energy_uj);
    member_joules(out, "pending_joules", meter->pending_uj);
    if (meter->has_counter)
        member_joules(out, "counter_joules", meter->counter_uj);
    json_member_fixed(out, "imbalance_joules", meter->imbalance_uj, MICRO);
    put_unowned(out, meter);
}

/* Of a GPU or of an instance. */
static void put_gauges(struct buffer *out, uint64_t valid, const uint64_t *gauges)
{
    static const struct {
        const char *key;
        enum gpu_gauge gauge;
        unsigned digits;
    } members[] = {
        {"watts", GPU_GAUGE_POWER_MW, MILLI},
        {"utilisation_percent", GPU_GAUGE_UTILISATION_PERCENT, WHOLE},
        {"memory_used_bytes", GPU_GAUGE_MEMORY_USED_BYTES, WHOLE},
        {"memory_total_bytes", GPU_GAUGE_MEMORY_TOTAL_BYTES, WHOLE},
        {"temperature_celsius", GPU_GAUGE_TEMPERATURE_C, WHOLE},
    };

    for (size_t i = 0; i < ARRAY_SIZE(members); i++)
        if (valid >> members[i].gauge & 1)
            json_member_fixed(out, members[i].key, (int64_t)gauges[members[i].gauge],
                              members[i].digits);
}

static void put_gpu(struct buffer *out, const struct snapshot_gpu *gpu)
{
    json_member_u64(out, "gpu", gpu->gpu);
    json_member(out, "uuid", gpu->uuid);
    member_text(out, "name", gpu->name);
    member_text(out, "driver", gpu->driver);
    json_member(out, "sharing", gpu_sharing_words[gpu->sharing]);
    put_gauges(out, gpu->valid, gpu->gauges);
    open_array(out, "instances");
    for (size_t i = 0; i < gpu->instance_count; i++) {
        open_element(out);
        json_member_u64(out, "gpu_instance", gpu->instances[i].gpu_instance);
        json_member(out, "profile", gpu->instances[i].profile);
        put_gauges(out, gpu->instances[i].valid, gpu->instances[i].gauges);
        buffer_char(out, '}');
    }
    buffer_char(out, ']');
}

static void put_source(struct buffer *out, const struct snapshot_source *source)
{
    json_member(out, "name", source->name);
    json_member_bool(out, "up", source->up);
    member_seconds(out, "age_seconds", source->age_us);
    json_member_u64(out, "errors", source->errors);
}

#define PUT_ARRAY(key, put, items, count)                                                          \
    do {                                                                                           \
        open_array(out, key);                                                                      \
        for (size_t i_ = 0; i_ < (count); i_++) {                                                  \
            open_element(out);                                                                     \
            put(out, &(items)[i_]);                                                                \
            buffer_char(out, '}');                                                                 \
        }                                                                                          \
        buffer_char(out, ']');                                                                     \
    } while (0)

void node_json(const struct snapshot *snapshot, const struct node_json_options *options,
               struct buffer *out)
{
    buffer_char(out, '{');
    put_node(out, snapshot, options);
    PUT_ARRAY("meters", put_meter, snapshot->meters, snapshot->meter_count);
    node_json_workloads(out, snapshot, options->expose);
    PUT_ARRAY("gpus", put_gpu, snapshot->gpus, snapshot->gpu_count);
    PUT_ARRAY("sources", put_source, snapshot->sources, snapshot->source_count);
    buffer_char(out, '}');
}
