/* The truth of a scripted board (tests/fakes/nvml/scenarios), and how much of its energy is booked
 * to the wrong process. */
#pragma once

#include "nvml_fixture.h"

#include <math.h>

#define UID_OF_ROOT "Name:\tx\nUid:\t0\t0\t0\t0\n"

enum { GPUS_MAX = 8, TRUTHS_MAX = 32 };

/* What the script says of a process: joules above the idle board. */
struct truth {
    unsigned gpu, pid;
    double joules;
};

struct script {
    uint64_t first_uj[GPUS_MAX], last_uj[GPUS_MAX]; /* of the counters */
    unsigned gpu_count;
    struct truth truths[TRUTHS_MAX];
    size_t truth_count;
};

/* A process of an `N` record: its executable and its one argument are its name. */
static inline void write_identity(const struct rig *rig, uint32_t pid, uint64_t start_us,
                                  const char *cgroup, const char *name)
{
    char path[64], text[256];
    int len = snprintf(text, sizeof(text), "%s%cserve", name, 0);

    write_process(rig, pid, (unsigned)((start_us - START_US) / SECOND), cgroup);
    snprintf(path, sizeof(path), "%u/cmdline", pid);
    file_write_at(rig->host.procfs_fd, path, text, (size_t)len + 1);
    snprintf(path, sizeof(path), "%u/exe", pid);
    snprintf(text, sizeof(text), "/usr/bin/%s", name);
    assert_int_equal(symlinkat(text, rig->host.procfs_fd, path), 0);
    snprintf(path, sizeof(path), "%u/status", pid);
    file_write_at(rig->host.procfs_fd, path, UID_OF_ROOT, strlen(UID_OF_ROOT));
}

static inline uint64_t number(struct span *line)
{
    struct span word = span_cut(line, ' ');
    char text[32];

    assert_true(word.len < sizeof(text));
    memcpy(text, word.data, word.len);
    text[word.len] = '\0';
    return strtoull(text, NULL, 10);
}

static inline const char *word(struct span *line, char text[128])
{
    struct span word = span_cut(line, ' ');

    assert_true(word.len < 128);
    memcpy(text, word.data, word.len);
    text[word.len] = '\0';
    return text;
}

static inline void read_line(const struct rig *rig, struct span line, uint64_t until_us,
                             struct script *script)
{
    char kind[128], cgroup[128], name[128];
    uint64_t t_us = number(&line), value, start_us;
    unsigned gpu, pid;

    (void)word(&line, kind);
    gpu = (unsigned)number(&line);
    if (strcmp(kind, "E") == 0 && t_us <= until_us) {
        value = number(&line) * 1000;
        assert_true(gpu < GPUS_MAX);
        if (gpu >= script->gpu_count) {
            script->gpu_count = gpu + 1;
            script->first_uj[gpu] = value;
        }
        script->last_uj[gpu] = value;
    } else if (strcmp(kind, "N") == 0) {
        pid = (unsigned)number(&line);
        start_us = number(&line);
        (void)word(&line, cgroup);
        write_identity(rig, pid, start_us, cgroup, word(&line, name));
    } else if (strcmp(kind, "#") == 0 && strcmp(word(&line, name), "truth") == 0) {
        assert_true(script->truth_count < TRUTHS_MAX);
        pid = (unsigned)number(&line);
        script->truths[script->truth_count++] = (struct truth){gpu, pid, (double)number(&line)};
    }
}

/* Reads the counters and the truth, and writes /proc of the processes that the script names. */
static inline struct script read_script(const struct rig *rig, const char *path, uint64_t until_us)
{
    struct script script = {0};
    char *data;
    size_t len;
    struct span rest;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    assert_int_equal(fs_read_fd(fd, 16 << 20, &data, &len), 0);
    close(fd);
    rest = (struct span){data, len};
    while (rest.len > 0) {
        struct span line = span_cut(&rest, '\n');

        if (line.len > 0 && line.data[0] == '1')
            read_line(rig, line, until_us, &script);
    }
    free(data);
    return script;
}

/* The part of a board's active energy that is booked to the wrong process. */
static inline double wrong_part(const struct rig *rig, const struct script *script, unsigned gpu)
{
    double booked = 0, true_j = 0, wrong = 0;

    for (size_t i = 0; i < script->truth_count; i++)
        if (script->truths[i].gpu == gpu) {
            booked += (double)process_of(rig, gpu, script->truths[i].pid).active_uj;
            true_j += script->truths[i].joules;
        }
    for (size_t i = 0; i < script->truth_count && true_j > 0; i++)
        if (script->truths[i].gpu == gpu)
            wrong += fabs((double)process_of(rig, gpu, script->truths[i].pid).active_uj / booked -
                          script->truths[i].joules / true_j);
    return wrong / 2;
}
