#include "sources/drm/drm.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/fs.h"
#include "core/macros.h"
#include "core/parse.h"

/* Occupancy is what it is at an instant: more often shows more of it. */
static const uint64_t POLL_US = 100000;

/* Between two searches for cards. */
static const uint64_t SEARCH_US = 10 * USEC_PER_SEC;

enum { CARD_NUMBER_MAX = 9999, TEXT_BYTES = 256, PATH_BYTES = 320 };

static const struct {
    const char *name;
    const struct drm_vendor *vendor;
} drivers[] = {
    {"amdgpu", &drm_amd},
    {"i915", &drm_intel},
    {"xe", &drm_intel},
};

void drm_read_link(int directory_fd, const char *name, char *text, size_t size_bytes)
{
    char target[TEXT_BYTES];
    ssize_t n = readlinkat(directory_fd, name, target, sizeof(target) - 1);
    const char *slash;

    target[MAX(n, 0)] = '\0';
    slash = strrchr(target, '/');
    snprintf(text, size_bytes, "%s", slash ? slash + 1 : target);
}

/* "card1", but not "card1-DP-1". */
static bool describe_card(const struct host *host, const char *name, struct drm_found *ret_found)
{
    struct span number = span_of(name);
    char path[PATH_BYTES], driver[TEXT_BYTES], pci[TEXT_BYTES];
    struct drm_die *die = &ret_found->dies[0];
    uint64_t card;

    if (!span_strip_prefix(&number, "card") || parse_u64_max(number, CARD_NUMBER_MAX, &card) < 0)
        return false;
    snprintf(path, sizeof(path), "class/drm/card%u/device", (uint32_t)card);
    drm_read_link(host->sysfs_fd, path, pci, sizeof(pci));
    snprintf(path, sizeof(path), "class/drm/card%u/device/driver", (uint32_t)card);
    drm_read_link(host->sysfs_fd, path, driver, sizeof(driver));
    /* AMD's partitions are platform devices without files of their own: "amdgpu_xcp_1". */
    if (strlen(pci) >= sizeof(die->pci) || !strchr(pci, ':'))
        return false;
    *ret_found = (struct drm_found){.die_count = 1};
    die->card = (uint32_t)card;
    memcpy(die->pci, pci, strlen(pci) + 1);
    for (size_t i = 0; i < ARRAY_SIZE(drivers); i++)
        if (strcmp(driver, drivers[i].name) == 0) {
            ret_found->vendor = drivers[i].vendor;
            ret_found->driver = drivers[i].name;
        }
    return ret_found->vendor;
}

static int by_pci(const void *a, const void *b)
{
    const struct drm_found *x = a, *y = b;

    return strcmp(x->dies[0].pci, y->dies[0].pci);
}

int drm_open_die(const struct host *host, const struct drm_die *die)
{
    char path[PATH_BYTES];
    int fd;

    snprintf(path, sizeof(path), "class/drm/card%u/device", die->card);
    fd = openat(host->sysfs_fd, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

/* The number that a card has, or the next that is free. SAMPLE_GPU_MAX: there is none left. */
static uint32_t find_index(const struct drm_shared *shared, const char *pci)
{
    uint32_t index = shared->first_index;

    while (index < SAMPLE_GPU_MAX && shared->pci[index][0] != '\0' &&
           strcmp(shared->pci[index], pci) != 0)
        index++;
    return index;
}

static bool is_die(const struct host *host, const struct drm_found *found)
{
    _cleanup_close_ int fd = -1;

    if (!found->vendor->is_die)
        return false;
    fd = drm_open_die(host, &found->dies[0]);
    return fd >= 0 && found->vendor->is_die(fd);
}

static bool is_single(const struct drm_shared *shared, const struct drm_found *found)
{
    uint32_t index = find_index(shared, found->dies[0].pci);

    return index < SAMPLE_GPU_MAX && atomic_load(&shared->is_single[index]);
}

/* Two dies with neighbouring addresses are taken for one board, until its unit has seen their
 * counters. */
static size_t join_dies(const struct drm_shared *shared, struct drm_found *cards, size_t count)
{
    const struct host *host = shared->context->host;
    size_t kept = 0;

    for (size_t i = 0; i < count; i++) {
        struct drm_found *before = kept > 0 ? &cards[kept - 1] : NULL;

        if (before && before->vendor == cards[i].vendor && before->die_count == 1 &&
            is_die(host, &cards[i]) && is_die(host, before) && !is_single(shared, before))
            before->dies[before->die_count++] = cards[i].dies[0];
        else
            cards[kept++] = cards[i];
    }
    return kept;
}

size_t drm_find_cards(const struct drm_shared *shared, struct drm_found cards[static DRM_CARDS_MAX])
{
    const struct host *host = shared->context->host;
    DIR *directory = fs_open_dir(host->sysfs_fd, "class/drm");
    const struct dirent *entry;
    size_t count = 0;

    while (directory && count < DRM_CARDS_MAX && (entry = readdir(directory)))
        count += describe_card(host, entry->d_name, &cards[count]);
    if (directory)
        closedir(directory);
    if (count > 0)
        qsort(cards, count, sizeof(*cards), by_pci);
    return join_dies(shared, cards, count);
}

/* VGA and 3D controllers of NVIDIA. */
static bool is_nvidia_gpu(int devices_fd, const char *pci)
{
    char path[PATH_BYTES], text[32];

    snprintf(path, sizeof(path), "%.255s/vendor", pci);
    drm_read_text(devices_fd, path, text, sizeof(text));
    if (strcmp(text, "0x10de") != 0)
        return false;
    snprintf(path, sizeof(path), "%.255s/class", pci);
    drm_read_text(devices_fd, path, text, sizeof(text));
    return strncmp(text, "0x0300", strlen("0x0300")) == 0 ||
           strncmp(text, "0x0302", strlen("0x0302")) == 0;
}

uint32_t drm_first_index(const struct host *host)
{
    DIR *directory = fs_open_dir(host->sysfs_fd, "bus/pci/devices");
    const struct dirent *entry;
    uint32_t count = 0;

    while (directory && (entry = readdir(directory)))
        count += entry->d_name[0] != '.' && is_nvidia_gpu(dirfd(directory), entry->d_name);
    if (directory)
        closedir(directory);
    return count;
}

void drm_shared_unref(void *state)
{
    struct drm_shared *shared = state;

    if (!shared || atomic_fetch_sub(&shared->references, 1) != 1)
        return;
    drm_files_done(&shared->files);
    free(shared);
}

static int drm_open(const struct source_context *context, void **ret_state, struct error *err)
{
    struct drm_found cards[DRM_CARDS_MAX];
    _cleanup_free_ struct drm_shared *shared = calloc(1, sizeof(*shared));

    if (!shared)
        return error_set(err, -ENOMEM, "out of memory");
    shared->context = context;
    if (context->replay_path || drm_find_cards(shared, cards) == 0)
        return -ENODEV;
    shared->references = 1;
    shared->first_index = drm_first_index(context->host);
    shared->polls_per_window = MAX(context->interval_us / POLL_US, (uint64_t)1);
    proc_reader_init(&shared->proc, context->host);
    drm_files_init(&shared->files, context->host);
    *ret_state = TAKE_PTR(shared);
    return 0;
}

/* Gives it that number for good. */
static uint32_t index_of(struct drm_shared *shared, const char *pci)
{
    uint32_t index = find_index(shared, pci);

    if (index < SAMPLE_GPU_MAX)
        snprintf(shared->pci[index], sizeof(shared->pci[index]), "%s", pci);
    return index;
}

static int add_card(struct drm_shared *shared, uint32_t index, const struct drm_found *found,
                    struct error *err)
{
    const struct source_context *context = shared->context;
    struct source_unit unit = {
        .ops = &drm_card_unit,
        .interval_us = context->interval_us / shared->polls_per_window,
    };
    int r = drm_card_new(shared, index, found, &unit.state);

    if (r < 0)
        return error_set(err, r, "out of memory");
    shared->die_counts[index] = found->die_count;
    snprintf(unit.name, sizeof(unit.name), "drm/%u", index);
    r = context->add_unit(context, &unit);
    if (r < 0) {
        unit.ops->close(unit.state);
        return error_set(err, r, "GPU %u: %s", index, strerror(-r));
    }
    return 0;
}

/* A die that came before the other one was taken for a board of its own. */
static void rejoin_dies(struct drm_shared *shared, const struct drm_found *found)
{
    for (size_t d = 0; found->die_count > 1 && d < found->die_count; d++) {
        uint32_t index = find_index(shared, found->dies[d].pci);

        if (index < SAMPLE_GPU_MAX && atomic_load(&shared->running[index]) &&
            shared->die_counts[index] == 1)
            atomic_store(&shared->is_outdated[index], true);
    }
}

static int report_left_out(const struct drm_shared *shared, struct error *err)
{
    return shared->left_out > 0
               ? error_set(err, -ENOSPC, "%zu GPUs are left out: only %d can be numbered",
                           shared->left_out, SAMPLE_GPU_MAX)
               : 0;
}

/* Its units add the samples. */
static int drm_read(void *state, struct batch *batch, struct error *err)
{
    struct drm_shared *shared = state;
    const struct clock *clock = shared->context->clock;
    uint64_t mono_us = clock->monotonic_us(clock);
    struct drm_found cards[DRM_CARDS_MAX];
    size_t count;
    int result = 0;

    (void)batch;
    if (mono_us < shared->next_search_us)
        return report_left_out(shared, err);
    shared->next_search_us = mono_us + SEARCH_US;
    shared->left_out = 0;
    count = drm_find_cards(shared, cards);
    for (size_t i = 0; i < count; i++) {
        uint32_t index = index_of(shared, cards[i].dies[0].pci);
        int r;

        shared->left_out += index == SAMPLE_GPU_MAX;
        rejoin_dies(shared, &cards[i]);
        r = index < SAMPLE_GPU_MAX && !atomic_load(&shared->running[index])
                ? add_card(shared, index, &cards[i], err)
                : 0;
        result = r < 0 ? r : result;
    }
    return result < 0 ? result : report_left_out(shared, err);
}

const struct source_ops drm_source = {
    .name = "drm",
    .flag = "collector.drm",
    .help = "read AMD and Intel GPUs",
    .open = drm_open,
    .read = drm_read,
    .close = drm_shared_unref,
    .check = drm_check,
};
