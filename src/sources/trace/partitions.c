/* The records of partitioned boards: MIG instances and their memory, and vGPUs. */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "core/macros.h"
#include "core/parse.h"
#include "sources/trace/fields.h"

enum {
    SLICES_MAX = 255,
    SM_COUNT_MAX = 65535,
    TEXT_BYTES = 96, /* as the driver's own buffers */
    ENTRY_MIN_BYTES = 8,
};

#define MEMBER(member, limit)                                                                      \
    {                                                                                              \
        offsetof(struct sample_instance, member), sizeof(((struct sample_instance *)0)->member),   \
            limit                                                                                  \
    }

/* The numbers of an instance, in the order of its entry; its profile and its UUID follow. */
static const struct {
    size_t offset, size_bytes;
    uint64_t max;
} instance_numbers[] = {
    MEMBER(gpu_instance, SAMPLE_NO_INSTANCE - 1),
    MEMBER(compute_instance, SAMPLE_NO_INSTANCE - 1),
    MEMBER(index, UINT32_MAX),
    MEMBER(slices, SLICES_MAX),
    MEMBER(compute_slices, SLICES_MAX),
    MEMBER(sm_count, SM_COUNT_MAX),
    MEMBER(memory_bytes, UINT64_MAX),
};

/* Behind these, where it is known. */
enum { PLACEMENT_NUMBERS = 3 };

static int take_entry_text(struct span *entry, struct batch *batch, const char *what,
                           const char **ret_text, struct error *err)
{
    struct span text = span_cut(entry, ':');

    return trace_take_text(&text, batch, TEXT_BYTES, what, ret_text, err);
}

/* The number of entries, if the rest of the line can hold so many. */
static int take_count(struct span *rest, uint64_t max, const char *what, uint64_t *ret_count,
                      struct error *err)
{
    int r = trace_take_u64(rest, max, what, ret_count, err);

    if (r == 0 && *ret_count > (rest->len + 1) / ENTRY_MIN_BYTES)
        r = error_set(err, -EBADMSG, "%s: %llu entries do not fit in the line", what,
                      (unsigned long long)*ret_count);
    return r;
}

static int parse_placement(struct span entry, struct mig_placement *placement, struct error *err)
{
    uint64_t numbers[PLACEMENT_NUMBERS];

    for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
        if (parse_u64_max(span_cut(&entry, ':'), UINT32_MAX, &numbers[i]) < 0)
            return error_set(err, -EBADMSG, "placement: expected PROFILE:START:SIZE");
    if (entry.len > 0)
        return error_set(err, -EBADMSG, "placement: expected nothing after PROFILE:START:SIZE");
    *placement = (struct mig_placement){true, (uint32_t)numbers[0], (uint32_t)numbers[1],
                                        (uint32_t)numbers[2]};
    return 0;
}

static int parse_instance(struct span entry, struct batch *batch, struct sample_instance *instance,
                          struct error *err)
{
    int r;

    for (size_t i = 0; i < ARRAY_SIZE(instance_numbers); i++) {
        uint64_t value;

        if (parse_u64_max(span_cut(&entry, ':'), instance_numbers[i].max, &value) < 0)
            return error_set(err, -EBADMSG,
                             "instance: expected GI:CI:INDEX:SLICES:SLICES:SMS:BYTES:PROFILE:UUID, "
                             "each number within its limit");
        memcpy((char *)instance + instance_numbers[i].offset, &value,
               instance_numbers[i].size_bytes);
    }
    r = take_entry_text(&entry, batch, "profile", &instance->profile, err);
    if (r == 0)
        r = take_entry_text(&entry, batch, "UUID of an instance", &instance->uuid, err);
    instance->placement = (struct mig_placement){0};
    return r < 0 || entry.len == 0 ? r : parse_placement(entry, &instance->placement, err);
}

int trace_parse_layout(struct span *rest, struct batch *batch, struct sample *sample,
                       struct error *err)
{
    struct sample_instance *items;
    uint64_t kind = 0, slices = 0, sm_count = 0, count = 0;
    int r = trace_take_u64(rest, LAYOUT_KINDS - 1, "kind of partitions", &kind, err);

    if (r == 0)
        r = trace_take_u64(rest, SLICES_MAX, "slices", &slices, err);
    if (r == 0)
        r = trace_take_u64(rest, SM_COUNT_MAX, "SMs", &sm_count, err);
    if (r == 0)
        r = take_count(rest, SAMPLE_INSTANCES_MAX, "number of instances", &count, err);
    if (r < 0)
        return r;
    if (kind == LAYOUT_WHOLE && count > 0)
        return error_set(err, -EBADMSG, "instances of a board that is not partitioned");
    items = arena_array(&batch->arena, count, sizeof(*items));
    if (!items)
        return -ENOMEM;
    for (uint64_t i = 0; i < count && r == 0; i++)
        r = parse_instance(span_cut(rest, ' '), batch, &items[i], err);
    sample->layout = (struct sample_layout){.kind = (enum layout_kind)kind,
                                            .slices = (uint32_t)slices,
                                            .sm_count = (uint32_t)sm_count,
                                            .count = count,
                                            .items = items};
    return r;
}

void trace_put_layout(struct buffer *out, const struct sample *sample)
{
    const struct sample_layout *layout = &sample->layout;

    trace_put_number(out, layout->kind);
    trace_put_number(out, layout->slices);
    trace_put_number(out, layout->sm_count);
    trace_put_number(out, layout->count);
    for (size_t i = 0; i < layout->count; i++) {
        const struct sample_instance *instance = &layout->items[i];

        for (size_t n = 0; n < ARRAY_SIZE(instance_numbers); n++) {
            uint64_t value = 0;

            memcpy(&value, (const char *)instance + instance_numbers[n].offset,
                   instance_numbers[n].size_bytes);
            buffer_char(out, n == 0 ? ' ' : ':');
            buffer_u64(out, value);
        }
        trace_put_entry_text(out, instance->profile);
        trace_put_entry_text(out, instance->uuid);
        if (instance->placement.is_known) {
            const uint32_t numbers[PLACEMENT_NUMBERS] = {
                instance->placement.profile, instance->placement.start, instance->placement.size};

            for (size_t n = 0; n < ARRAY_SIZE(numbers); n++) {
                buffer_char(out, ':');
                buffer_u64(out, numbers[n]);
            }
        }
    }
}

static int parse_vgpu(struct span entry, struct batch *batch, struct sample_vgpu *vgpu,
                      struct error *err)
{
    struct span id = span_cut(&entry, ':'), bytes = span_cut(&entry, ':');
    struct span kind = span_cut(&entry, ':');
    uint64_t value;
    int r;

    if (parse_u64_max(id, UINT32_MAX, &value) < 0 || parse_u64(bytes, &vgpu->memory_bytes) < 0 ||
        !(span_equals(kind, "u") || span_equals(kind, "d")))
        return error_set(err, -EBADMSG, "vGPU: expected VGPU:BYTES:u|d:VM:UUID");
    vgpu->vgpu = (uint32_t)value;
    vgpu->vm_is_uuid = span_equals(kind, "u");
    r = take_entry_text(&entry, batch, "id of a virtual machine", &vgpu->vm, err);
    if (r == 0 && vgpu->vm[0] == '\0')
        r = error_set(err, -EBADMSG, "vGPU: the id of its virtual machine is missing");
    return r < 0 ? r
                 : trace_take_text(&entry, batch, TEXT_BYTES, "UUID of a vGPU", &vgpu->uuid, err);
}

int trace_parse_vgpus(struct span *rest, struct batch *batch, struct sample *sample,
                      struct error *err)
{
    struct sample_vgpu *items;
    uint64_t count = 0;
    int r = take_count(rest, SAMPLE_VGPUS_MAX, "number of vGPUs", &count, err);

    if (r < 0)
        return r;
    items = arena_array(&batch->arena, count, sizeof(*items));
    if (!items)
        return -ENOMEM;
    for (uint64_t i = 0; i < count && r == 0; i++)
        r = parse_vgpu(span_cut(rest, ' '), batch, &items[i], err);
    sample->vgpus = (struct sample_vgpus){count, items};
    return r;
}

void trace_put_vgpus(struct buffer *out, const struct sample *sample)
{
    const struct sample_vgpus *vgpus = &sample->vgpus;

    trace_put_number(out, vgpus->count);
    for (size_t i = 0; i < vgpus->count; i++) {
        trace_put_number(out, vgpus->items[i].vgpu);
        buffer_char(out, ':');
        buffer_u64(out, vgpus->items[i].memory_bytes);
        buffer_str(out, vgpus->items[i].vm_is_uuid ? ":u" : ":d");
        trace_put_entry_text(out, vgpus->items[i].vm);
        trace_put_entry_text(out, vgpus->items[i].uuid);
    }
}

static const struct {
    const char *word;
    enum gpu_gauge gauge;
} memory_words[] = {
    {"total", GPU_GAUGE_MEMORY_TOTAL_BYTES},
    {"reserved", GPU_GAUGE_MEMORY_RESERVED_BYTES},
    {"used", GPU_GAUGE_MEMORY_USED_BYTES},
    {"free", GPU_GAUGE_MEMORY_FREE_BYTES},
};

int trace_parse_instance_memory(struct span *rest, struct batch *batch, struct sample *sample,
                                struct error *err)
{
    uint64_t instance;
    struct span word;
    size_t i = 0;
    int r = trace_take_u64(rest, SAMPLE_NO_INSTANCE - 1, "GPU instance", &instance, err);

    (void)batch;
    if (r < 0)
        return r;
    word = span_cut(rest, ' ');
    while (i < ARRAY_SIZE(memory_words) && !span_equals(word, memory_words[i].word))
        i++;
    if (i == ARRAY_SIZE(memory_words))
        return -ENOTSUP;
    sample->gauge =
        (struct sample_gauge){.gauge = memory_words[i].gauge, .instance = (uint32_t)instance};
    return trace_take_u64(rest, UINT64_MAX, "memory", &sample->gauge.value, err);
}

bool trace_is_instance_memory(const struct sample *sample)
{
    for (size_t i = 0; i < ARRAY_SIZE(memory_words); i++)
        if (sample->gauge.gauge == memory_words[i].gauge)
            return sample->gauge.instance != SAMPLE_NO_INSTANCE;
    return false;
}

void trace_put_instance_memory(struct buffer *out, const struct sample *sample)
{
    trace_put_number(out, sample->gauge.instance);
    buffer_char(out, ' ');
    for (size_t i = 0; i < ARRAY_SIZE(memory_words); i++)
        if (sample->gauge.gauge == memory_words[i].gauge)
            buffer_str(out, memory_words[i].word);
    trace_put_number(out, sample->gauge.value);
}
