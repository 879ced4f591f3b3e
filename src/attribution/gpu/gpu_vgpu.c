/*
 * vGPUs on their host: each is booked to its virtual machine. The driver's samples have the
 * utilisation of every vGPU, so their shares of time need no estimate.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attribution/gpu/gpu.h"
#include "core/macros.h"

enum { VM_BYTES = 96 };

struct gpu_vgpu {
    uint32_t handle;
    uint64_t seen_us; /* on a list, last */
    char vm[VM_BYTES];
    bool vm_is_uuid;
};

/* Those that are gone are kept for samples that come late, until there is no room. */
struct gpu_vgpus {
    struct gpu_vgpu items[SAMPLE_VGPUS_MAX];
    size_t count;
};

static struct gpu_vgpu *find_vgpu(const struct gpu *gpu, uint32_t handle)
{
    for (size_t i = 0; gpu->vgpus && i < gpu->vgpus->count; i++)
        if (gpu->vgpus->items[i].handle == handle)
            return &gpu->vgpus->items[i];
    return NULL;
}

/* The one that was not seen for longest makes room. */
static struct gpu_vgpu *open_vgpu(struct gpu *gpu, const struct sample_vgpu *from)
{
    struct gpu_vgpu *vgpu = find_vgpu(gpu, from->vgpu);

    if (!vgpu && gpu->vgpus->count < SAMPLE_VGPUS_MAX)
        vgpu = &gpu->vgpus->items[gpu->vgpus->count++];
    if (!vgpu) {
        vgpu = &gpu->vgpus->items[0];
        for (size_t i = 1; i < gpu->vgpus->count; i++)
            if (gpu->vgpus->items[i].seen_us < vgpu->seen_us)
                vgpu = &gpu->vgpus->items[i];
    }
    vgpu->handle = from->vgpu;
    vgpu->vm_is_uuid = from->vm_is_uuid;
    snprintf(vgpu->vm, sizeof(vgpu->vm), "%s", from->vm);
    return vgpu;
}

/* The account of its machine: that of its cgroups if it is known, else one by its id. */
static int open_machine(struct gpu *gpu, const struct gpu_vgpu *vgpu, uint32_t *ret_process)
{
    const struct gpu_options *options = &gpu->options;
    struct workload_owner owner;

    if (!options->find_vm ||
        !options->find_vm(options->names_context, vgpu->vm, vgpu->vm_is_uuid, &owner)) {
        owner = (struct workload_owner){.kind = WORKLOAD_VM};
        snprintf(owner.id, sizeof(owner.id), "%s", vgpu->vm);
    }
    if (gpu_open_unseen(gpu, &owner, ret_process) < 0) {
        gpu->out_of_memory = true;
        return -1;
    }
    return 0;
}

void gpu_take_vgpus(struct gpu *gpu, struct window *window, uint64_t t_us,
                    const struct sample_vgpus *vgpus)
{
    uint32_t process;

    if (!gpu->vgpus)
        gpu->vgpus = calloc(1, sizeof(*gpu->vgpus));
    if (!gpu->vgpus) {
        gpu->out_of_memory = true;
        return;
    }
    gpu->list_round[GPU_LIST_VGPU]++;
    gpu->list_us[GPU_LIST_VGPU] = t_us;
    gpu->list_named[GPU_LIST_VGPU] = vgpus->count > 0;
    for (size_t i = 0; i < MIN(vgpus->count, (size_t)SAMPLE_VGPUS_MAX); i++) {
        struct gpu_vgpu *vgpu = open_vgpu(gpu, &vgpus->items[i]);

        vgpu->seen_us = t_us;
        if (open_machine(gpu, vgpu, &process) == 0)
            gpu_take_listed(gpu, window, t_us, process, GPU_LIST_VGPU,
                            vgpus->items[i].memory_bytes);
    }
    gpu_record_context(gpu, window);
}

void gpu_take_vgpu_use(struct gpu *gpu, const struct sample_vgpu_use *use)
{
    const struct sample_label sample = {
        .pid = use->vgpu,
        .at_us = use->at_us,
        .sm_percent = use->sm_percent,
        .memory_percent = use->memory_percent,
        .encoder_percent = use->encoder_percent,
        .decoder_percent = use->decoder_percent,
        .in_proc = true,
    };
    const struct gpu_vgpu *vgpu = find_vgpu(gpu, use->vgpu);
    struct gpu_sample *taken;
    uint32_t process;

    if (!vgpu || open_machine(gpu, vgpu, &process) < 0)
        return; /* it is on no list */
    taken = gpu_samples_add(&gpu->samples, &sample, gpu->settled_until_us);
    if (!taken)
        return;
    taken->process = process;
    ledger_see_process(gpu->ledger, process, taken->at_us);
}
