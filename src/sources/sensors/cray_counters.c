#include "sources/sensors/cray_counters.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "core/fs.h"
#include "core/macros.h"
#include "core/parse.h"
#include "sources/plausible.h"

enum { TRIES = 3, TEXT_BYTES = 128 };

const char *const cray_file_names[CRAY_FILES] = {
    [CRAY_FRESHNESS] = "freshness",   [CRAY_STARTUP] = "startup",
    [CRAY_POWER] = "power",           [CRAY_ENERGY] = "energy",
    [CRAY_CPU_ENERGY] = "cpu_energy", [CRAY_MEMORY_ENERGY] = "memory_energy",
};

static const char *unit_of(enum cray_file file)
{
    switch (file) {
    case CRAY_FRESHNESS:
    case CRAY_STARTUP:
        return NULL;
    case CRAY_POWER:
        return "W";
    default:
        return "J";
    }
}

static uint64_t max_of(enum cray_file file)
{
    switch (file) {
    case CRAY_FRESHNESS:
    case CRAY_STARTUP:
        return UINT64_MAX;
    case CRAY_POWER:
        return PLAUSIBLE_POWER_MAX_UW / 1000000 - 1;
    default:
        return UINT64_MAX / 1000000; /* so that it can be said in microjoules */
    }
}

int cray_parse(enum cray_file file, struct span text, struct cray_value *ret_value)
{
    const char *unit = unit_of(file);
    struct cray_value value = {.valid = true};
    struct span rest = text;
    int r;

    span_strip_suffix(&rest, "\n");
    r = parse_u64_max(span_cut(&rest, ' '), max_of(file), &value.number);
    if (r < 0)
        return r;
    if (unit && !span_equals(span_cut(&rest, ' '), unit))
        return -EINVAL;
    if (unit && rest.len > 0) {
        if (!span_strip_suffix(&rest, " us"))
            return -EINVAL;
        r = parse_u64(rest, &value.t_us);
        if (r < 0)
            return r;
    }
    *ret_value = value;
    return 0;
}

static bool counts_energy(enum cray_file file)
{
    return file == CRAY_ENERGY || file == CRAY_CPU_ENERGY || file == CRAY_MEMORY_ENERGY;
}

int cray_counters_open(int sysfs_fd, struct cray_counters *ret_counters)
{
    struct cray_counters counters = {
        .dir_fd = openat(sysfs_fd, "cray/pm_counters", O_PATH | O_DIRECTORY | O_CLOEXEC),
        .read_kept = fs_read_kept,
    };
    int result = -ENODEV;

    if (counters.dir_fd < 0)
        return -ENODEV;
    for (size_t i = 0; i < CRAY_FILES; i++) {
        counters.fds[i] =
            openat(counters.dir_fd, cray_file_names[i], O_RDONLY | O_CLOEXEC | O_NOCTTY);
        if (!counts_energy((enum cray_file)i))
            continue;
        if (counters.fds[i] >= 0)
            result = 0;
        else if (result < 0 && errno != ENOENT)
            result = -errno;
    }
    if (result < 0) {
        cray_counters_close(&counters);
        return result;
    }
    *ret_counters = counters;
    return 0;
}

void cray_counters_close(struct cray_counters *counters)
{
    for (size_t i = 0; i < CRAY_FILES; i++) {
        cleanup_close(&counters->fds[i]);
        counters->fds[i] = -1;
    }
    cleanup_close(&counters->dir_fd);
    counters->dir_fd = -1;
}

void cray_counters_reopen(struct cray_counters *counters)
{
    for (size_t i = 0; i < CRAY_FILES; i++)
        if (counters->fds[i] < 0)
            counters->fds[i] =
                openat(counters->dir_fd, cray_file_names[i], O_RDONLY | O_CLOEXEC | O_NOCTTY);
}

static struct cray_value read_one(struct cray_counters *counters, enum cray_file file)
{
    struct cray_value value = {0};
    char text[TEXT_BYTES];
    size_t len;
    int r;

    if (counters->fds[file] < 0)
        return value;
    r = counters->read_kept(counters->fds[file], text, sizeof(text), &len);
    if (r == -ENODEV || r == -ENOENT) {
        cleanup_close(&counters->fds[file]);
        counters->fds[file] = -1;
    }
    if (r < 0 || cray_parse(file, (struct span){text, len}, &value) < 0)
        return (struct cray_value){0};
    return value;
}

int cray_counters_read(struct cray_counters *counters, struct cray_value ret_values[CRAY_FILES])
{
    struct cray_value values[CRAY_FILES];
    struct cray_value after;

    values[CRAY_FRESHNESS] = read_one(counters, CRAY_FRESHNESS);
    for (int i = 0; i < TRIES; i++) {
        for (enum cray_file file = CRAY_FRESHNESS + 1; file < CRAY_FILES; file++)
            values[file] = read_one(counters, file);
        after = read_one(counters, CRAY_FRESHNESS);
        if (after.valid == values[CRAY_FRESHNESS].valid &&
            after.number == values[CRAY_FRESHNESS].number) {
            memcpy(ret_values, values, sizeof(values));
            return 0;
        }
        values[CRAY_FRESHNESS] = after;
    }
    return -EAGAIN;
}
