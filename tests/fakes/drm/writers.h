/* The writers of a machine's files, one for each tree. */
#pragma once

#include "tree.h"
#include "truth.h"

enum { FAKE_METRICS_BYTES = 4096, FAKE_RENDER_MINOR = 128 };

static inline bool fake_is_amd(const struct fake_chip *chip)
{
    return chip->vendor_id == 0x1002;
}

/* Each render node of a machine has the next minor: partitions come right behind their board, and a
 * board that can be partitioned has the nodes of all of them in every mode. */
unsigned fake_render_minor(const struct fake_script *script, unsigned board, unsigned partition);
static inline unsigned fake_card_number(const struct fake_script *script, unsigned board,
                                        unsigned partition)
{
    return fake_render_minor(script, board, partition) - FAKE_RENDER_MINOR;
}

/* gpu_metrics, as the driver makes it; returns its length. */
size_t fake_metrics(const struct fake_machine *machine, unsigned board, uint64_t t_us,
                    uint8_t table[FAKE_METRICS_BYTES]);

/* /sys/class/drm and the devices behind it. */
void fake_card_plug(const struct fake_machine *machine, unsigned board);
void fake_card_unplug(const struct fake_machine *machine, unsigned board);
void fake_card_write(const struct fake_machine *machine, unsigned board, uint64_t t_us);

/* /sys/class/kfd: the topology, as of the boards' partitions, and the processes of ROCm. */
void fake_kfd_write_topology(const struct fake_machine *machine);
void fake_kfd_add(const struct fake_machine *machine, const struct fake_process *process);
void fake_kfd_remove(const struct fake_machine *machine, const struct fake_process *process);
void fake_kfd_write(const struct fake_machine *machine, const struct fake_process *process,
                    uint64_t t_us);

/* /proc. */
void fake_process_add(const struct fake_machine *machine, const struct fake_process *process);
void fake_process_remove(const struct fake_machine *machine, const struct fake_process *process);
void fake_process_write(const struct fake_machine *machine, const struct fake_process *process,
                        uint64_t t_us);
