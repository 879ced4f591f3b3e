/*
 * AMD's compute processes and topology, from /sys/class/kfd.
 *
 * /dev/kfd is never opened: that would make us a compute process, too, and block changes of
 * partitions.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/span.h"
#include "model/sample.h"

enum { KFD_NODES_MAX = 64, KFD_PROCESSES_MAX = 1024 };

/* A GPU, or a partition of one. */
struct kfd_node {
    uint32_t gpu_id;            /* a hash, never 0; a partition has its own */
    char pci[SAMPLE_PCI_BYTES]; /* "0000:19:00.0" of the board; its partitions share it */
    bool has_render;
    uint32_t render_minor;  /* of renderD128 and up; tells partitions apart */
    uint32_t compute_units; /* 0: unknown */
    uint64_t unique_id;     /* 0: unknown; in newer kernels a partition's own, not the board's */
};

struct kfd_topology {
    uint64_t generation;
    struct kfd_node nodes[KFD_NODES_MAX]; /* in the kernel's order; further ones are left out */
    size_t count;
    size_t denied; /* GPUs that the reader's device cgroup forbids: their files give EPERM */
};

/* Pure. Parses nodes/N/properties; `gpu_id` stays 0, because it has a file of its own. -EINVAL:
 * there is no PCI address in it. */
int kfd_parse_properties(struct span text, struct kfd_node *ret_node);

/*
 * Reads all nodes but CPUs and those that may not be read or are malformed. A topology that changes
 * meanwhile is read again. 0; -ENODEV: there is no KFD; -EAGAIN: it keeps changing; or
 * another -errno.
 */
int kfd_read_topology(int sysfs_fd, struct kfd_topology *ret_topology);

/* Tells whether the topology changed, by three system calls. 0, -ENODEV, -EINVAL or another -errno.
 */
int kfd_read_generation(int sysfs_fd, uint64_t *ret_generation);

/* What a process has on one GPU or partition, all of its contexts added up. Sums are saturated. */
struct kfd_usage {
    uint32_t pid; /* in the initial namespace; the process itself may have ended */
    bool has_memory;
    uint64_t vram_bytes;
    bool has_sdma;
    uint64_t sdma_us; /* of copy engines, cumulative; the kernel may report 0 as the process ends */
    bool has_occupancy;
    uint32_t compute_units; /* occupied now */
    bool has_evicted;
    uint64_t evicted_ms; /* its queues were off the GPU, cumulative */
    bool has_queues;     /* at least one compute queue */
};

typedef int kfd_visit(void *context, const struct kfd_usage *usage);

/*
 * Visits each process that can use this GPU, the first KFD_PROCESSES_MAX of them. Whoever opens
 * /dev/kfd has files for every GPU that its container may use: only memory and queues show that it
 * does. What vanishes meanwhile is left out.
 *
 * May block: the kernel reads the copy engines' times from the process's own memory. Occupancy
 * costs a scan of the GPU's registers for each process with queues, and is read only on demand.
 *
 * 0; -ENODEV: there is no KFD; another -errno; or what `visit` returned, if negative, which ends
 * the visits.
 */
int kfd_each_process(int sysfs_fd, uint32_t gpu_id, bool with_occupancy, kfd_visit *visit,
                     void *context);
