#include "sources/drm/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/array.h"
#include "core/fs.h"
#include "core/lock.h"
#include "core/macros.h"
#include "core/parse.h"
#include "sources/amd/kfd.h"

/* For another thread, which is searching. */
enum { WAIT_NS = 20000000, NSEC_PER_SEC = 1000000000 };

enum {
    FILES_MAX = 1 << 20, /* 16 MiB: copies of descriptors cost who has them little */
    CARD_UNKNOWN = DRM_FILES_CARDS_MAX,
    DRM_MAJOR = 226,
    TARGET_BYTES = 256,
};

/* Processes that are new, have opened files or closed a card are searched at the end of each window
 * of a second, and all of them every so often: one file may have been closed for another. */
static const uint64_t NEW_US = 9 * USEC_PER_SEC / 10, ALL_US = 10 * USEC_PER_SEC;

/* A search in progress. */
struct search {
    const struct host *host;
    bool is_partial;
    struct drm_file *files;
    size_t file_count, file_capacity;
    char cards[DRM_FILES_CARDS_MAX][SAMPLE_PCI_BYTES];
    size_t card_count;
    bool has_topology;
    struct kfd_topology topology;
    struct drm_nodes *nodes;
};

void drm_files_init(struct drm_files *files, const struct host *host)
{
    *files = (struct drm_files){.host = host};
    pthread_mutex_init(&files->searching, NULL);
    pthread_mutex_init(&files->lock, NULL);
}

void drm_files_done(struct drm_files *files)
{
    free(files->searched);
    free(files->files);
    pthread_mutex_destroy(&files->lock);
    pthread_mutex_destroy(&files->searching);
}

void drm_place_path(const struct drm_place *place, const char *what, char path[DRM_PLACE_BYTES])
{
    if (place->thread > 0)
        snprintf(path, DRM_PLACE_BYTES, "%u/task/%u/%s", place->pid, place->thread, what);
    else
        snprintf(path, DRM_PLACE_BYTES, "%u/%s", place->pid, what);
}

static bool is_forbidden(int error)
{
    return error == EACCES || error == EPERM;
}

/* From here on: which card a file is of. */

static uint32_t add_card(struct search *search, const char *pci)
{
    if (strlen(pci) >= SAMPLE_PCI_BYTES)
        return CARD_UNKNOWN;
    for (size_t i = 0; i < search->card_count; i++)
        if (strcmp(search->cards[i], pci) == 0)
            return (uint32_t)i;
    if (search->card_count == DRM_FILES_CARDS_MAX)
        return CARD_UNKNOWN;
    memcpy(search->cards[search->card_count], pci, strlen(pci) + 1);
    return (uint32_t)search->card_count++;
}

/* A partition of AMD's is a platform device: only KFD knows its board. */
static uint32_t find_board(struct search *search, uint64_t render_minor)
{
    if (!search->has_topology && kfd_read_topology(search->host->sysfs_fd, &search->topology) < 0)
        search->topology.count = 0;
    search->has_topology = true;
    for (size_t i = 0; i < search->topology.count; i++)
        if (search->topology.nodes[i].has_render &&
            search->topology.nodes[i].render_minor == render_minor)
            return add_card(search, search->topology.nodes[i].pci);
    return CARD_UNKNOWN;
}

/* Where it is among them, or their count. */
static size_t find_node(const struct drm_nodes *nodes, uint32_t minor)
{
    size_t i = 0;

    while (i < nodes->count && nodes->items[i].minor != minor)
        i++;
    return i;
}

static void remember_node(struct drm_nodes *nodes, uint32_t minor, const char *pci)
{
    size_t at = find_node(nodes, minor);

    if (at == DRM_FILES_NODES_MAX || strlen(pci) >= SAMPLE_PCI_BYTES)
        return;
    nodes->count = MAX(nodes->count, at + 1);
    nodes->items[at].minor = minor;
    memcpy(nodes->items[at].pci, pci, strlen(pci) + 1);
}

/* A card that was removed has no device any more, but whoever holds it may hang in its driver: no
 * other card's thread may read what it says. */
static uint32_t find_card(struct search *search, uint64_t minor)
{
    size_t at;
    char path[DRM_PLACE_BYTES], target[TARGET_BYTES];
    const char *name;
    ssize_t n;

    snprintf(path, sizeof(path), "dev/char/%d:%u/device", DRM_MAJOR, (uint32_t)minor);
    n = readlinkat(search->host->sysfs_fd, path, target, sizeof(target) - 1);
    target[MAX(n, 0)] = '\0';
    name = strrchr(target, '/');
    if (name && strchr(name, ':')) {
        remember_node(search->nodes, (uint32_t)minor, name + 1);
        return add_card(search, name + 1);
    }
    at = n < 0 ? find_node(search->nodes, (uint32_t)minor) : search->nodes->count;
    return at < search->nodes->count ? add_card(search, search->nodes->items[at].pci)
                                     : find_board(search, minor);
}

/* By the name of its node: what it leads to is not there, as in a copy of procfs. */
static bool find_named_minor(const char *target, uint64_t *ret_minor)
{
    static const char *const nodes[] = {"/dev/dri/renderD", "/dev/dri/card"};

    for (size_t i = 0; i < ARRAY_SIZE(nodes); i++) {
        struct span number = span_of(target);

        if (span_strip_prefix(&number, nodes[i]) &&
            parse_u64_max(number, UINT32_MAX, ret_minor) == 0)
            return true;
    }
    return false;
}

/* Whatever its name is: anybody can make another node of a card. Sockets and pipes have no path,
 * and file systems are not asked: theirs may hang. */
static bool is_card(struct search *search, int directory_fd, const char *name, uint32_t *ret_card)
{
    char target[TARGET_BYTES];
    ssize_t n = readlinkat(directory_fd, name, target, sizeof(target) - 1);
    struct statx status;
    uint64_t minor;

    search->is_partial |= n < 0 && is_forbidden(errno);
    target[MAX(n, 0)] = '\0';
    if (target[0] != '/')
        return false;
    if (statx(directory_fd, name, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_TYPE, &status) == 0) {
        if (!S_ISCHR(status.stx_mode) || status.stx_rdev_major != DRM_MAJOR)
            return false;
        minor = status.stx_rdev_minor;
    } else if (!find_named_minor(target, &minor)) {
        *ret_card = CARD_UNKNOWN;
        return true;
    }
    *ret_card = find_card(search, minor);
    return true;
}

/* From here on: processes. */

/* The descriptors of a process, or of one of its threads. False: there are none, as of one that has
 * exited. */
static bool search_table(struct search *search, struct drm_place place)
{
    char path[DRM_PLACE_BYTES];
    const struct dirent *entry;
    bool is_empty;
    DIR *directory;

    drm_place_path(&place, "fd", path);
    directory = fs_open_dir(search->host->procfs_fd, path);
    search->is_partial |= !directory && is_forbidden(errno);
    is_empty = directory;
    while (directory && (entry = readdir(directory))) {
        uint32_t card;
        uint64_t fd;

        if (parse_u64_max(span_of(entry->d_name), UINT32_MAX, &fd) < 0)
            continue;
        is_empty = false;
        place.fd = (uint32_t)fd;
        if (!is_card(search, dirfd(directory), entry->d_name, &card))
            continue;
        if (search->file_count < FILES_MAX &&
            array_reserve(&search->files, &search->file_capacity, search->file_count,
                          sizeof(*search->files)))
            search->files[search->file_count++] = (struct drm_file){place, card};
        else
            search->is_partial = true;
    }
    if (directory)
        closedir(directory);
    return !is_empty;
}

/* If its first thread has exited, the others still have its descriptors. */
static void search_process(struct search *search, uint32_t pid)
{
    struct drm_place place = {.pid = pid};
    const struct dirent *entry;
    char path[DRM_PLACE_BYTES];
    DIR *directory;
    uint64_t thread;

    if (search_table(search, place))
        return;
    drm_place_path(&place, "task", path);
    directory = fs_open_dir(search->host->procfs_fd, path);
    while (directory && (entry = readdir(directory))) {
        if (parse_u64_max(span_of(entry->d_name), INT32_MAX, &thread) < 0 || thread == pid)
            continue;
        place.thread = (uint32_t)thread;
        if (search_table(search, place))
            break;
    }
    if (directory)
        closedir(directory);
}

static int by_pid(const void *a, const void *b)
{
    const struct drm_searched *x = a, *y = b;

    return (x->pid > y->pid) - (x->pid < y->pid);
}

/* How many descriptors a process has open: the kernel's size of their directory. */
static uint64_t count_fds(const struct host *host, uint32_t pid)
{
    char path[DRM_PLACE_BYTES];
    struct stat status;

    snprintf(path, sizeof(path), "%u/fd", pid);
    return fstatat(host->procfs_fd, path, &status, 0) == 0 ? (uint64_t)status.st_size : 0;
}

/* All processes, in the order of their pids. 0 or -errno. */
static int list_processes(const struct host *host, struct drm_searched **ret_processes,
                          size_t *ret_count)
{
    _cleanup_free_ struct drm_searched *processes = NULL;
    DIR *directory = fs_open_dir(host->procfs_fd, ".");
    size_t count = 0, capacity = 0;
    const struct dirent *entry;
    uint64_t pid;

    if (!directory)
        return -errno;
    while ((entry = readdir(directory)))
        if (parse_u64_max(span_of(entry->d_name), INT32_MAX, &pid) == 0 &&
            array_reserve(&processes, &capacity, count, sizeof(*processes)))
            processes[count++] =
                (struct drm_searched){(uint32_t)pid, count_fds(host, (uint32_t)pid)};
    closedir(directory);
    if (count > 0)
        qsort(processes, count, sizeof(*processes), by_pid);
    *ret_processes = TAKE_PTR(processes);
    *ret_count = count;
    return 0;
}

/* Takes over what was found. */
static void keep(struct drm_files *files, struct search *search, bool all, uint64_t mono_us)
{
    uint32_t cards[DRM_FILES_CARDS_MAX + 1];
    HOLD_LOCK(&files->lock);

    if (all) {
        files->files_before += files->file_count;
        files->file_count = 0;
        files->card_count = 0;
        files->is_partial = false;
        files->complete_us = search->is_partial ? 0 : mono_us;
    }
    /* The numbers of cards are those of a search: give them its own here. */
    cards[CARD_UNKNOWN] = CARD_UNKNOWN;
    for (size_t i = 0; i < search->card_count; i++) {
        size_t k = 0;

        while (k < files->card_count && strcmp(files->cards[k], search->cards[i]) != 0)
            k++;
        cards[i] = (uint32_t)k;
        if (k == DRM_FILES_CARDS_MAX)
            continue;
        if (k == files->card_count)
            memcpy(files->cards[files->card_count++], search->cards[i], SAMPLE_PCI_BYTES);
    }
    for (size_t i = 0; i < search->file_count; i++) {
        if (files->file_count == FILES_MAX ||
            !array_reserve(&files->files, &files->file_capacity, files->file_count,
                           sizeof(*files->files))) {
            search->is_partial = true;
            files->complete_us = 0;
            break;
        }
        files->files[files->file_count] = search->files[i];
        files->files[files->file_count++].card = cards[search->files[i].card];
    }
    files->is_partial |= search->is_partial;
    files->searched_us = mono_us;
    files->changed_count = 0;
}

static bool has_changed(const uint32_t *changed, size_t count, uint32_t pid)
{
    for (size_t i = 0; i < count; i++)
        if (changed[i] == pid)
            return true;
    return false;
}

static size_t copy_changed(struct drm_files *files, uint32_t changed[static DRM_FILES_CHANGED_MAX])
{
    HOLD_LOCK(&files->lock);

    memcpy(changed, files->changed, sizeof(files->changed));
    return files->changed_count;
}

/* With `searching` held. */
static void search(struct drm_files *files, bool all, uint64_t mono_us)
{
    _cleanup_free_ struct search *search = calloc(1, sizeof(*search));
    uint32_t changed[DRM_FILES_CHANGED_MAX];
    size_t count = 0, changed_count = copy_changed(files, changed);
    struct drm_searched *processes = NULL;

    if (!search || list_processes(files->host, &processes, &count) < 0)
        return;
    search->host = files->host;
    search->nodes = &files->nodes;
    for (size_t i = count; i-- > 0;) {
        const struct drm_searched *last =
            files->searched_count > 0 ? bsearch(&processes[i], files->searched,
                                                files->searched_count, sizeof(*processes), by_pid)
                                      : NULL;

        if (all || !last || last->fd_count != processes[i].fd_count ||
            has_changed(changed, changed_count, processes[i].pid))
            search_process(search, processes[i].pid);
    }
    keep(files, search, all, mono_us);
    free(search->files);
    free(files->searched);
    files->searched = processes;
    files->searched_count = count;
}

void drm_files_search(struct drm_files *files, uint64_t mono_us)
{
    struct timespec until;
    bool all;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += WAIT_NS;
    until.tv_sec += until.tv_nsec / NSEC_PER_SEC;
    until.tv_nsec %= NSEC_PER_SEC;
    if (pthread_mutex_clocklock(&files->searching, CLOCK_MONOTONIC, &until) != 0)
        return;
    all = mono_us >= files->all_us;
    if (all || mono_us >= files->search_us) {
        search(files, all, mono_us);
        files->search_us = mono_us + NEW_US;
        files->all_us = all ? mono_us + ALL_US : files->all_us;
    }
    pthread_mutex_unlock(&files->searching);
}

void drm_files_suspect(struct drm_files *files, uint32_t pid)
{
    HOLD_LOCK(&files->lock);

    if (files->changed_count < DRM_FILES_CHANGED_MAX &&
        !has_changed(files->changed, files->changed_count, pid))
        files->changed[files->changed_count++] = pid;
}

static bool is_of(const struct drm_files *files, const struct drm_file *file,
                  const char *const *cards, size_t card_count)
{
    if (file->card >= DRM_FILES_CARDS_MAX)
        return true;
    for (size_t i = 0; i < card_count; i++)
        if (strcmp(files->cards[file->card], cards[i]) == 0)
            return true;
    return false;
}

void drm_files_take(struct drm_files *files, const char *const *cards, size_t card_count,
                    struct drm_files_taken *taken)
{
    HOLD_LOCK(&files->lock);

    taken->count = 0;
    taken->is_whole = taken->next <= files->files_before;
    taken->is_partial = files->is_partial;
    taken->searched_us = files->searched_us;
    taken->complete_us = files->complete_us;
    for (size_t i = MAX(taken->next, files->files_before) - files->files_before;
         i < files->file_count; i++) {
        if (!is_of(files, &files->files[i], cards, card_count))
            continue;
        if (array_reserve(&taken->places, &taken->capacity, taken->count, sizeof(*taken->places)))
            taken->places[taken->count++] = files->files[i].place;
        else
            taken->is_partial = true;
    }
    taken->next = files->files_before + files->file_count;
}
