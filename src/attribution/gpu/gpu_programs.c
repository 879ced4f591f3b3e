/* Whose program a process of a GPU runs. */
#include "attribution/gpu/gpu.h"
#include "core/siphash.h"

/* Hashes of owners are stored with their programs, and the same in every process. */
static uint64_t hash_with(uint64_t hash, const char *text)
{
    return siphash_public_pair(hash, siphash_public(span_of(text)));
}

/* By the image of its container, in a pod also by its namespace. 0 while they are unknown. */
static uint64_t hash_image(const struct gpu *gpu, const struct ledger_process *process,
                           uint64_t hash)
{
    struct workload_names names = {0};
    struct workload_owner owner;
    bool is_pod;

    ledger_describe_owner(gpu->ledger, process, &owner);
    is_pod = owner.kind == WORKLOAD_POD;
    if (gpu->options.find_names)
        (void)gpu->options.find_names(gpu->options.names_context, &owner, &names);
    if (!names.image || !names.image[0] || (is_pod && (!names.namespace || !names.namespace[0])))
        return 0;
    hash = hash_with(hash, names.image);
    return is_pod ? hash_with(hash, names.namespace) : hash;
}

/* Who runs a program: in a pod its namespace and image, in another container its image, in a job
 * its user, else its user and the unit, machine or cgroup. 0 while that is unknown: what one
 * tenant's program taught is not for others. */
static uint64_t hash_owner(const struct gpu *gpu, const struct ledger_process *process)
{
    const struct ledger_workload *workload = ledger_workload(gpu->ledger, process->workload);
    uint64_t hash = workload->kind + 1;

    if (workload->kind == WORKLOAD_POD || workload->kind == WORKLOAD_CONTAINER)
        return hash_image(gpu, process, hash);
    if (process->uid == SAMPLE_UID_UNKNOWN)
        return 0;
    hash = siphash_public_pair(hash, process->uid);
    if (workload_is_job(workload->kind))
        return hash;
    /* Root may be anybody's, in a container that nobody knows. */
    return workload->kind == WORKLOAD_PROCESS || workload->kind == WORKLOAD_SYSTEM
               ? siphash_public_pair(hash, process->cgroup_hash)
               : hash_with(hash, workload->id);
}

const struct gpu_instance *gpu_instance_of(const struct gpu *gpu, uint32_t process)
{
    return gpu->mig ? gpu_mig_find(gpu->mig, gpu_sighting(gpu, process)->gpu_instance) : NULL;
}

/* In a GPU instance a program shows something else than on a whole board. */
struct program_key gpu_program_of(const struct gpu *gpu, uint32_t index)
{
    const struct ledger_process *process = ledger_process(gpu->ledger, index);
    const struct gpu_instance *instance = gpu_instance_of(gpu, index);
    const struct program_key *program = &process->program;
    uint64_t owner = program->exact && !process->unseen ? hash_owner(gpu, process) : 0;

    if (owner == 0)
        return (struct program_key){0};
    if (instance)
        owner = hash_with(owner, instance->profile);
    return (struct program_key){
        .exact = siphash_public_pair(owner, program->exact) ?: 1,
        .coarse = program->coarse ? siphash_public_pair(~owner, program->coarse) ?: 1 : 0,
    };
}
