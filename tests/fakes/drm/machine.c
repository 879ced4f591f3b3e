#include "machine.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "writers.h"

const struct fake_script *fake_script_find(const char *name)
{
    for (const struct fake_script *script = fake_scripts; script->name; script++)
        if (strcmp(script->name, name) == 0)
            return script;
    fake_die("there is no machine %s", name);
}

static void write_processes(struct fake_machine *machine, uint64_t t_us)
{
    const struct fake_script *script = machine->script;

    /* Those that end go first: their pids may be used again. */
    for (size_t i = 0; i < fake_process_count(script); i++) {
        const struct fake_process *process = &script->processes[i];

        if (machine->processes[i].is_running && !fake_is_running(process, t_us)) {
            fake_process_remove(machine, process);
            machine->processes[i].is_running = false;
        }
        if (machine->processes[i].is_in_kfd && !fake_is_in_kfd(process, t_us)) {
            fake_kfd_remove(machine, process);
            machine->processes[i].is_in_kfd = false;
        }
    }
    for (size_t i = 0; i < fake_process_count(script); i++) {
        const struct fake_process *process = &script->processes[i];

        if (fake_is_running(process, t_us)) {
            /* A directory is complete before its process counts as there, but for real ones, too,
             * files come one after the other. */
            fake_process_write(machine, process, t_us);
            if (!machine->processes[i].is_running)
                fake_process_add(machine, process);
            machine->processes[i].is_running = true;
        }
        if (fake_is_in_kfd(process, t_us)) {
            if (!machine->processes[i].is_in_kfd)
                fake_kfd_add(machine, process);
            fake_kfd_write(machine, process, t_us);
            machine->processes[i].is_in_kfd = true;
        }
    }
}

void fake_machine_write(struct fake_machine *machine, uint64_t t_us)
{
    for (unsigned i = 0; i < fake_board_count(machine->script); i++)
        if (machine->boards[i].is_plugged)
            fake_card_write(machine, i, t_us);
    write_processes(machine, t_us);
}

void fake_machine_init(struct fake_machine *machine, const struct fake_script *script,
                       const char *root, uint64_t boot_s, bool is_replaced)
{
    *machine = (struct fake_machine){
        .script = script, .boot_s = boot_s, .is_replaced = is_replaced, .generation = 1};
    if (strlen(root) >= sizeof(machine->root))
        fake_die("%s is too long", root);
    strcpy(machine->root, root);
    fake_tree_print(machine, "proc/stat", "cpu  1 0 0 1 0 0 0 0 0 0\nbtime %" PRIu64 "\n", boot_s);
    fake_tree_make_directory(machine, "sys/class/drm");
    fake_tree_print(machine, "sys/class/drm/version", "drm 1.1.0 20060810\n");
    for (unsigned i = 0; i < fake_board_count(script); i++) {
        unsigned partitions = script->boards[i].partitions;

        machine->boards[i].partitions = partitions ? partitions : 1;
        machine->boards[i].is_plugged = true;
        fake_card_plug(machine, i);
    }
    fake_kfd_write_topology(machine);
    fake_machine_write(machine, 0);
}

static void change_topology(struct fake_machine *machine)
{
    machine->generation++;
    fake_kfd_write_topology(machine);
}

void fake_machine_unplug(struct fake_machine *machine, unsigned board)
{
    machine->boards[board].is_plugged = false;
    fake_card_unplug(machine, board);
    change_topology(machine);
}

void fake_machine_plug(struct fake_machine *machine, unsigned board, uint64_t t_us)
{
    machine->boards[board].is_plugged = true;
    fake_card_plug(machine, board);
    change_topology(machine);
    fake_machine_write(machine, t_us);
}

void fake_machine_suspend(struct fake_machine *machine, unsigned board, bool is_suspended)
{
    char path[FAKE_PATH_BYTES];

    machine->boards[board].is_suspended = is_suspended;
    fake_tree_print(machine, fake_board_path(machine, board, "power/runtime_status", path), "%s\n",
                    is_suspended ? "suspended" : "active");
}

void fake_machine_partition(struct fake_machine *machine, unsigned board, unsigned partitions,
                            uint64_t t_us)
{
    machine->boards[board].partitions = partitions;
    change_topology(machine);
    fake_machine_write(machine, t_us);
}
