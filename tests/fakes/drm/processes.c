/* Processes in procfs, with what the drivers show of their clients (Documentation/gpu/
 * drm-usage-stats.rst; amdgpu_fdinfo.c, i915_drm_client.c, xe_drm_client.c). */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "writers.h"

enum { CLIENT_FD = 7, COPY_FD = 9, TEXT_BYTES = 4096 };

/* Intel's timestamp counter. */
static const uint64_t CYCLES_PER_MS = 19200;

static const char *path_of(const struct fake_process *process, const char *name,
                           char path[FAKE_PATH_BYTES])
{
    snprintf(path, FAKE_PATH_BYTES, "proc/%u/%s", process->pid, name);
    return path;
}

static void put_lines(const struct fake_machine *machine, const struct fake_process *process,
                      const char *name, const char *lines)
{
    char path[FAKE_PATH_BYTES], text[TEXT_BYTES];
    size_t len = strlen(lines) + 1;

    memcpy(text, lines, len);
    for (size_t i = 0; i < len; i++)
        if (text[i] == '\n')
            text[i] = '\0';
    fake_tree_put(machine, path_of(process, name, path), text, len);
}

void fake_process_add(const struct fake_machine *machine, const struct fake_process *process)
{
    char path[FAKE_PATH_BYTES], text[TEXT_BYTES];
    uint64_t ticks = process->from_ms * (uint64_t)sysconf(_SC_CLK_TCK) / 1000;

    fake_tree_print(machine, path_of(process, "stat", path),
                    "%u (%.15s) S 1 1 1 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 %" PRIu64 " 0 0 0\n",
                    process->pid, process->name, ticks);
    fake_tree_print(machine, path_of(process, "cgroup", path), "0::%s\n", process->cgroup);
    fake_tree_print(machine, path_of(process, "status", path),
                    "Name:\t%.15s\nUid:\t1000\t1000\t1000\t1000\n", process->name);
    snprintf(text, sizeof(text), "/usr/bin/%s\n--serve", process->name);
    put_lines(machine, process, "cmdline", text);
    put_lines(machine, process, "environ", process->environment ? process->environment : "");
    snprintf(text, sizeof(text), "/usr/bin/%s", process->name);
    fake_tree_link(machine, path_of(process, "exe", path), text);
    fake_tree_link(machine, path_of(process, "fd/0", path), "/dev/null");
    fake_tree_print(machine, path_of(process, "fdinfo/0", path), "pos:\t0\nflags:\t0100000\n");
    if (!process->engine && !process->client_of) {
        fake_tree_link(machine, path_of(process, "fd/3", path), "/dev/kfd");
        fake_tree_print(machine, path_of(process, "fdinfo/3", path), "pos:\t0\nflags:\t02100002\n");
    }
    snprintf(text, sizeof(text), "/dev/dri/renderD%u",
             fake_render_minor(machine->script, process->board, process->partition));
    snprintf(path, sizeof(path), "proc/%u/fd/%u", process->pid, CLIENT_FD);
    fake_tree_link(machine, path, text);
    /* Whoever has the client of another has a copy of it, too. */
    snprintf(path, sizeof(path), "proc/%u/fd/%u", process->pid, COPY_FD);
    if (process->client_of)
        fake_tree_link(machine, path, text);
}

void fake_process_remove(const struct fake_machine *machine, const struct fake_process *process)
{
    char path[FAKE_PATH_BYTES];

    snprintf(path, sizeof(path), "proc/%u", process->pid);
    fake_tree_remove(machine, path);
}

struct text {
    char data[TEXT_BYTES];
    size_t len;
};

__attribute__((format(printf, 2, 3))) static void add(struct text *text, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    text->len += (size_t)vsnprintf(text->data + text->len, sizeof(text->data) - text->len, format,
                                   arguments);
    va_end(arguments);
    if (text->len >= sizeof(text->data))
        fake_die("fdinfo is too long");
}

/* How long all engines of one kind have worked for a process: thousandths times microseconds. */
static uint64_t engine_work(const struct fake_process *process, const struct fake_engine *engine,
                            uint64_t t_us)
{
    uint64_t work = fake_work(process, t_us) * engine->capacity;

    if (process->engine && strcmp(process->engine, engine->name) == 0)
        return work;
    if (process->second_engine && strcmp(process->second_engine, engine->name) == 0)
        return work / 2;
    return 0;
}

static void add_memory(struct text *text, const struct fake_chip *chip, uint64_t bytes)
{
    if (strcmp(chip->driver, "amdgpu") == 0) {
        add(text,
            "drm-memory-vram:\t%" PRIu64 " KiB\ndrm-memory-gtt: \t2048 KiB\n"
            "drm-memory-cpu: \t0 KiB\namd-evicted-vram:\t0 KiB\namd-requested-vram:\t%" PRIu64
            " KiB\namd-requested-gtt:\t2048 KiB\ndrm-total-vram:\t%" PRIu64
            " KiB\ndrm-shared-vram:\t0\ndrm-resident-vram:\t%" PRIu64 " KiB\n",
            bytes >> 10, bytes >> 10, bytes >> 10, bytes >> 10);
    } else {
        bool is_xe = strcmp(chip->driver, "xe") == 0;
        unsigned tiles = chip->tiles ? chip->tiles : 1;

        add(text, "drm-total-system%s:\t4096 KiB\ndrm-resident-system%s:\t4096 KiB\n",
            is_xe ? "" : "0", is_xe ? "" : "0");
        for (unsigned i = 0; i < tiles; i++)
            add(text,
                "drm-total-%s%u:\t%" PRIu64 " KiB\ndrm-shared-%s%u:\t0\ndrm-active-%s%u:\t0\n"
                "drm-resident-%s%u:\t%" PRIu64 " KiB\n",
                is_xe ? "vram" : "local", i, bytes / tiles >> 10, is_xe ? "vram" : "local", i,
                is_xe ? "vram" : "local", i, is_xe ? "vram" : "local", i, bytes / tiles >> 10);
    }
}

static void add_engines(struct text *text, const struct fake_process *process,
                        const struct fake_chip *chip, uint64_t t_us)
{
    for (size_t i = 0; i < FAKE_ENGINES_MAX && chip->engines[i].capacity > 0; i++) {
        const struct fake_engine *engine = &chip->engines[i];
        uint64_t work = engine_work(process, engine, t_us);

        if (strcmp(chip->driver, "xe") == 0)
            add(text, "drm-cycles-%s:\t%" PRIu64 "\ndrm-total-cycles-%s:\t%" PRIu64 "\n",
                engine->name, work / 1000 * CYCLES_PER_MS / 1000, engine->name,
                (t_us + 5000000) * CYCLES_PER_MS / 1000);
        else if (work > 0 || strcmp(chip->driver, "amdgpu") != 0) /* amdgpu omits zeros */
            add(text, "drm-engine-%s:\t%" PRIu64 " ns\n", engine->name, work);
        if (engine->capacity > 1)
            add(text, "drm-engine-capacity-%s:\t%u\n", engine->name, engine->capacity);
    }
}

static const struct fake_process *client_of(const struct fake_script *script,
                                            const struct fake_process *process)
{
    for (size_t i = 0; process->client_of && i < fake_process_count(script); i++)
        if (script->processes[i].pid == process->client_of)
            return &script->processes[i];
    return process;
}

static void add_client(struct text *text, const struct fake_script *script,
                       const struct fake_process *client, uint64_t t_us)
{
    const struct fake_board *board = &script->boards[client->board];

    add(text, "drm-driver:\t%s\ndrm-client-id:\t%u\ndrm-pdev:\t%s\n", board->chip->driver,
        (unsigned)(client - script->processes) + 14, board->pci);
    if (fake_is_amd(board->chip))
        add(text, "pasid:\t%u\n", 32768 + client->pid % 1000);
    /* ROCm's memory is its DRM client's, too: KFD takes over the address space of that file. */
    add_memory(text, board->chip, client->memory_bytes);
    add_engines(text, client, board->chip, t_us);
}

void fake_process_write(const struct fake_machine *machine, const struct fake_process *process,
                        uint64_t t_us)
{
    const struct fake_script *script = machine->script;
    const struct fake_process *client = client_of(script, process);
    const struct fake_board *board = &script->boards[client->board];
    struct text text = {.len = 0};
    char path[FAKE_PATH_BYTES];

    add(&text, "pos:\t0\nflags:\t02100002\nmnt_id:\t26\nino:\t593\n");
    if (board->chip->has_old_fdinfo)
        add(&text, "pdev:\t%s\npasid:\t%u\nvram mem:\t%" PRIu64 " kB\ngfx0:\t30.00%%\n", board->pci,
            32768 + client->pid % 1000, client->memory_bytes >> 10);
    else
        add_client(&text, script, client, t_us);
    snprintf(path, sizeof(path), "proc/%u/fdinfo/%u", process->pid, CLIENT_FD);
    fake_tree_put(machine, path, text.data, text.len);
    snprintf(path, sizeof(path), "proc/%u/fdinfo/%u", process->pid, COPY_FD);
    if (process->client_of)
        fake_tree_put(machine, path, text.data, text.len);
}
