/*
 * The vGPUs of a host (virtualisation mode 3): which virtual machine has which, and what each used.
 * A board that is given to a machine as a whole (VFIO) is not the driver's, and NVML does not show
 * it.
 */
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"
#include "sources/nvml/nvml.h"

/* As it is now; false if it has ended. */
static bool read_vgpu(struct nvml_poll *poll, uint32_t vgpu, struct sample_vgpu *ret_vgpu)
{
    const struct nvml_library *nvml = &poll->gpu->shared->library;
    struct arena *arena = &poll->batch->arena;
    char vm[NVML_UUID_BYTES] = "", uuid[NVML_UUID_BYTES] = "";
    unsigned long long memory_bytes;
    int type = 0;

    if (nvml->vgpu_vm(vgpu, vm, sizeof(vm), &type) != NVML_SUCCESS || vm[0] == '\0')
        return false;
    vm[sizeof(vm) - 1] = '\0';
    if (!nvml->vgpu_uuid || nvml->vgpu_uuid(vgpu, uuid, sizeof(uuid)) != NVML_SUCCESS)
        uuid[0] = '\0';
    uuid[sizeof(uuid) - 1] = '\0';
    if (!nvml->vgpu_memory || nvml->vgpu_memory(vgpu, &memory_bytes) != NVML_SUCCESS)
        memory_bytes = SAMPLE_MEMORY_UNKNOWN;
    *ret_vgpu = (struct sample_vgpu){
        .vgpu = vgpu,
        .vm = arena_copy(arena, vm, strlen(vm)),
        .vm_is_uuid = type == NVML_VM_ID_UUID,
        .uuid = arena_copy(arena, uuid, strlen(uuid)),
        .memory_bytes = memory_bytes,
    };
    if (!ret_vgpu->vm || !ret_vgpu->uuid)
        nvml_poll_out_of_memory(poll);
    return !nvml_poll_is_over(poll);
}

void nvml_poll_read_vgpus(struct nvml_poll *poll)
{
    struct nvml_gpu *gpu = poll->gpu;
    uint32_t vgpus[SAMPLE_VGPUS_MAX], count = SAMPLE_VGPUS_MAX;
    struct sample_vgpu *items;
    size_t kept = 0;

    if (!gpu->shared->library.vgpu_vm ||
        !NVML_POLL_CALL(poll, "active vGPUs", active_vgpus, &count, vgpus))
        return;
    count = MIN(count, (uint32_t)SAMPLE_VGPUS_MAX);
    items = arena_array(&poll->batch->arena, count, sizeof(*items));
    if (!items) {
        nvml_poll_out_of_memory(poll);
        return;
    }
    for (uint32_t i = 0; i < count && !nvml_poll_is_over(poll); i++)
        kept += read_vgpu(poll, vgpus[i], &items[kept]);
    if (nvml_poll_is_over(poll))
        return;
    gpu->vgpu_count = kept;
    nvml_poll_add(poll, (struct sample){.kind = SAMPLE_VGPUS, .vgpus = {kept, items}});
}

static uint16_t vgpu_percent(int type, union nvml_value value)
{
    return (uint16_t)MIN(nvml_value_number(type, value), (uint64_t)UINT16_MAX);
}

static void add_vgpu_use(struct nvml_poll *poll, int type, const struct nvml_vgpu_sample *from)
{
    nvml_poll_add(
        poll, (struct sample){.kind = SAMPLE_VGPU_USE,
                              .vgpu_use = {.vgpu = from->vgpu,
                                           .at_us = from->timestamp_us,
                                           .sm_percent = vgpu_percent(type, from->sm),
                                           .memory_percent = vgpu_percent(type, from->memory),
                                           .encoder_percent = vgpu_percent(type, from->encoder),
                                           .decoder_percent = vgpu_percent(type, from->decoder)}});
}

/* New samples in gpu->vgpu_samples, as the newest version has them. Returns how many. */
static uint32_t fetch_vgpu_samples(struct nvml_poll *poll, int *ret_type)
{
    struct nvml_gpu *gpu = poll->gpu;
    struct nvml_vgpu_sample *samples = gpu->vgpu_samples;
    struct nvml_vgpu_samples info = {.version = NVML_VERSION(struct nvml_vgpu_samples, 1),
                                     .count = SAMPLE_VGPUS_MAX,
                                     .since_us = gpu->last_vgpu_sample_us,
                                     .samples = samples};
    struct nvml_vgpu_sample_v1 *old = gpu->vgpu_samples;
    uint32_t count = SAMPLE_VGPUS_MAX;

    if (gpu->shared->library.vgpu_samples) {
        bool has_any = NVML_POLL_CALL(poll, "use of vGPUs", vgpu_samples, &info);

        *ret_type = info.value_type;
        return has_any ? MIN(info.count, (uint32_t)SAMPLE_VGPUS_MAX) : 0;
    }
    if (!NVML_POLL_CALL(poll, "use of vGPUs", vgpu_samples_v1, gpu->last_vgpu_sample_us, ret_type,
                        &count, old))
        return 0;
    count = MIN(count, (uint32_t)SAMPLE_VGPUS_MAX);
    /* From the last: the new form is longer. */
    for (uint32_t i = count; i-- > 0;) {
        struct nvml_vgpu_sample_v1 from = old[i];

        samples[i] = (struct nvml_vgpu_sample){.vgpu = from.vgpu,
                                               .timestamp_us = from.timestamp_us,
                                               .sm = from.sm,
                                               .memory = from.memory,
                                               .encoder = from.encoder,
                                               .decoder = from.decoder};
    }
    return count;
}

void nvml_poll_read_vgpu_samples(struct nvml_poll *poll)
{
    struct nvml_gpu *gpu = poll->gpu;
    uint64_t newest_us = gpu->last_vgpu_sample_us;
    const struct nvml_vgpu_sample *samples;
    uint32_t count;
    int type = NVML_VALUE_U32;

    if (!gpu->vgpu_samples)
        gpu->vgpu_samples = calloc(SAMPLE_VGPUS_MAX, sizeof(struct nvml_vgpu_sample));
    if (!gpu->vgpu_samples) {
        nvml_poll_out_of_memory(poll);
        return;
    }
    count = fetch_vgpu_samples(poll, &type);
    samples = gpu->vgpu_samples;
    for (uint32_t i = 0; i < count; i++) {
        if (samples[i].timestamp_us <= gpu->last_vgpu_sample_us || samples[i].vgpu == 0)
            continue;
        newest_us = MAX(newest_us, samples[i].timestamp_us);
        add_vgpu_use(poll, type, &samples[i]);
    }
    gpu->last_vgpu_sample_us = newest_us;
}
