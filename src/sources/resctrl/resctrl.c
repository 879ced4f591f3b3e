#include "sources/resctrl/resctrl.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/fs.h"
#include "core/macros.h"
#include "core/parse.h"

enum { TEXT_BYTES = 32, PATH_BYTES = 64 };

/* A class without the groups in it, or one of those. */
struct group {
    uint64_t inode; /* of its directory; one of the same name that is made later has another */
    uint64_t round; /* the last that saw it */
    char container_id[WORKLOAD_CONTAINER_BYTES]; /* "": of none */
    bool is_known;
    uint64_t bytes; /* since the last reading, if known */
    struct resctrl_counter counters[];
};

struct resctrl {
    const struct host *host;
    uint64_t round, now_us;
    uint32_t domains[RESCTRL_DOMAINS_MAX];
    size_t domain_count;
    struct group *groups[RESCTRL_GROUPS_MAX];
    size_t group_count;
    bool is_failed; /* in this round: a cap was hit, or out of memory */
};

int resctrl_new(const struct host *host, struct resctrl **ret_resctrl)
{
    struct resctrl *resctrl = calloc(1, sizeof(*resctrl));

    if (!resctrl)
        return -ENOMEM;
    resctrl->host = host;
    *ret_resctrl = resctrl;
    return 0;
}

/* Forgets the groups that a round did not see; no round is 0. */
static void forget_groups(struct resctrl *resctrl, uint64_t round)
{
    size_t kept = 0;

    for (size_t i = 0; i < resctrl->group_count; i++)
        if (resctrl->groups[i]->round == round)
            resctrl->groups[kept++] = resctrl->groups[i];
        else
            free(resctrl->groups[i]);
    resctrl->group_count = kept;
}

void resctrl_free(struct resctrl *resctrl)
{
    if (resctrl)
        forget_groups(resctrl, UINT64_MAX);
    free(resctrl);
}

static int ascending(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

/* Lists the L3 caches. When one comes or goes, with its CPUs, all counts begin anew. */
static bool find_domains(struct resctrl *resctrl, int root_fd)
{
    DIR *directory = fs_open_dir(root_fd, "mon_data");
    uint32_t domains[RESCTRL_DOMAINS_MAX] = {0}, id;
    const struct dirent *entry;
    bool has_too_many = false;
    size_t count = 0;

    while (directory && !has_too_many && (entry = readdir(directory))) {
        if (resctrl_parse_domain(span_of(entry->d_name), &id) < 0)
            continue;
        has_too_many = count == RESCTRL_DOMAINS_MAX;
        if (!has_too_many)
            domains[count++] = id;
    }
    if (directory)
        closedir(directory);
    qsort(domains, count, sizeof(domains[0]), ascending);
    if (has_too_many || count != resctrl->domain_count ||
        memcmp(domains, resctrl->domains, sizeof(domains)) != 0)
        forget_groups(resctrl, UINT64_MAX);
    memcpy(resctrl->domains, domains, sizeof(domains));
    resctrl->domain_count = count;
    return !has_too_many && count > 0;
}

static struct group *find_group(struct resctrl *resctrl, uint64_t inode)
{
    struct group *group = NULL;

    for (size_t i = 0; i < resctrl->group_count; i++)
        if (resctrl->groups[i]->inode == inode)
            return resctrl->groups[i];
    if (resctrl->group_count < RESCTRL_GROUPS_MAX &&
        (resctrl->group_count + 1) * resctrl->domain_count <= RESCTRL_COUNTERS_MAX)
        group = calloc(1, sizeof(*group) + resctrl->domain_count * sizeof(group->counters[0]));
    if (!group) {
        resctrl->is_failed = true;
        return NULL;
    }
    group->inode = inode;
    resctrl->groups[resctrl->group_count++] = group;
    return group;
}

/* False: there is no count. Where a container never ran, AMD's caches report "Unavailable". */
static bool read_count(int group_fd, uint32_t domain, uint64_t *ret_bytes)
{
    char path[PATH_BYTES], buffer[TEXT_BYTES];
    struct span text = {buffer, 0};

    snprintf(path, sizeof(path), "mon_data/mon_L3_%02u/mbm_total_bytes", domain);
    return fs_read_at(group_fd, path, buffer, sizeof(buffer), &text.len) == 0 &&
           resctrl_parse_bytes(text, ret_bytes) == 0;
}

static size_t read_groups(struct resctrl *resctrl, int dir_fd, const char *path,
                          const struct group *class, uint64_t *class_bytes);

/*
 * Reads a class, or a group of `class`, whose counts are added to `class_bytes`, by domain.
 *
 * The groups in a class are read before it: one that goes meanwhile makes the class look smaller
 * once, which is ignored. The other way round its whole count would look like the class's own.
 */
static struct group *read_group(struct resctrl *resctrl, int fd, uint64_t inode, const char *name,
                                const struct group *class, uint64_t *class_bytes)
{
    struct group *group = find_group(resctrl, inode);
    bool has_inner = false, has_some = false, has_lost = false;
    uint64_t inner[RESCTRL_DOMAINS_MAX] = {0}, sum = 0;

    if (!group)
        return NULL;
    if (!resctrl_parse_container(span_of(name), group->container_id))
        snprintf(group->container_id, sizeof(group->container_id), "%s",
                 class ? class->container_id : "");
    if (!class)
        has_inner = read_groups(resctrl, fd, "mon_groups", group, inner) > 0;
    for (size_t i = 0; i < resctrl->domain_count; i++) {
        struct resctrl_counter *counter = &group->counters[i];
        uint64_t count, bytes = 0;
        enum resctrl_step step;

        if (!read_count(fd, resctrl->domains[i], &count)) {
            counter->has_last = false;
            continue;
        }
        if (class)
            class_bytes[i] += count;
        step =
            resctrl_counter_update(counter, resctrl->now_us, count - MIN(count, inner[i]), &bytes);
        has_some |= step != RESCTRL_FIRST;
        /* A difference may go back a little. When a counter does, its count is lost. */
        has_lost |= step == RESCTRL_ABSURD || (step == RESCTRL_LOWER && !has_inner);
        sum += bytes;
    }
    group->round = resctrl->round;
    group->is_known = has_some && !has_lost;
    group->bytes = group->is_known ? sum : 0;
    return group;
}

/* All classes, or the groups of `class`. Returns how many there are. */
static size_t read_groups(struct resctrl *resctrl, int dir_fd, const char *path,
                          const struct group *class, uint64_t *class_bytes)
{
    DIR *directory = fs_open_dir(dir_fd, path);
    const struct dirent *entry;
    size_t count = 0;

    while (directory && !resctrl->is_failed && (entry = readdir(directory))) {
        const char *name = entry->d_name;
        _cleanup_close_ int fd = -1;

        if (name[0] == '.' || (entry->d_type != DT_DIR && entry->d_type != DT_UNKNOWN) ||
            (!class && (strcmp(name, "info") == 0 || strcmp(name, "mon_groups") == 0 ||
                        strcmp(name, "mon_data") == 0)))
            continue;
        fd = openat(dirfd(directory), name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0 && read_group(resctrl, fd, entry->d_ino, name, class, class_bytes))
            count++;
    }
    if (directory)
        closedir(directory);
    return count;
}

bool resctrl_read(struct resctrl *resctrl, uint64_t now_us)
{
    _cleanup_close_ int root_fd = openat(resctrl->host->sysfs_fd, "fs/resctrl",
                                         O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    const struct group *root = NULL;
    bool is_known = false;
    struct stat status;

    resctrl->round++;
    resctrl->now_us = now_us;
    resctrl->is_failed = false;
    if (root_fd >= 0 && fstat(root_fd, &status) == 0 && find_domains(resctrl, root_fd)) {
        root = read_group(resctrl, root_fd, status.st_ino, "", NULL, NULL);
        read_groups(resctrl, root_fd, ".", NULL, NULL);
        is_known = root && root->is_known && !resctrl->is_failed;
    }
    /* After a failure nothing can be compared: other groups may be left out next time. */
    forget_groups(resctrl, resctrl->is_failed ? UINT64_MAX : resctrl->round);
    return is_known;
}

uint64_t resctrl_total_bytes(const struct resctrl *resctrl)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < resctrl->group_count; i++)
        bytes += resctrl->groups[i]->bytes;
    return bytes;
}

bool resctrl_find(const struct resctrl *resctrl, const char *container_id, uint64_t *ret_bytes)
{
    uint64_t bytes = 0;
    bool is_known = false;

    if (!container_id[0])
        return false;
    for (size_t i = 0; i < resctrl->group_count; i++)
        if (strcmp(resctrl->groups[i]->container_id, container_id) == 0) {
            bytes += resctrl->groups[i]->bytes;
            is_known |= resctrl->groups[i]->is_known;
        }
    if (is_known)
        *ret_bytes = bytes;
    return is_known;
}

size_t resctrl_container_count(const struct resctrl *resctrl)
{
    size_t count = 0;

    for (size_t i = 0; i < resctrl->group_count; i++)
        count += resctrl->groups[i]->container_id[0] != '\0';
    return count;
}

enum resctrl_step resctrl_counter_update(struct resctrl_counter *counter, uint64_t t_us,
                                         uint64_t value, uint64_t *ret_bytes)
{
    /* No memory behind one L3 cache moves as much: an MI300A's has 5.3 TB/s. */
    static const uint64_t bytes_per_us_max = 8000000;
    struct resctrl_counter before = *counter;

    if (before.has_last && value < before.last && !before.was_lower) {
        counter->was_lower = true;
        return RESCTRL_LOWER;
    }
    *counter = (struct resctrl_counter){.has_last = true, .last = value, .last_us = t_us};
    if (!before.has_last)
        return RESCTRL_FIRST;
    if (value < before.last)
        return RESCTRL_LOWER;
    if (value - before.last > (unsigned __int128)bytes_per_us_max * (t_us - before.last_us))
        return RESCTRL_ABSURD;
    *ret_bytes = value - before.last;
    return RESCTRL_KNOWN;
}

int resctrl_parse_domain(struct span name, uint32_t *ret_id)
{
    uint64_t id;

    if (!span_strip_prefix(&name, "mon_L3_") || name.len < 2 || /* printed with two digits */
        (name.len > 2 && name.data[0] == '0') || parse_u64_max(name, RESCTRL_DOMAIN_MAX, &id) < 0)
        return -EINVAL;
    *ret_id = (uint32_t)id;
    return 0;
}

int resctrl_parse_bytes(struct span text, uint64_t *ret_bytes)
{
    (void)span_strip_suffix(&text, "\n");
    return parse_u64(text, ret_bytes) < 0 ? -EINVAL : 0;
}

bool resctrl_parse_container(struct span name, char ret_id[static WORKLOAD_CONTAINER_BYTES])
{
    enum { ID_LEN = WORKLOAD_CONTAINER_BYTES - 1 };
    const char *id = name.data + name.len - MIN(name.len, (size_t)ID_LEN);

    if (name.len < ID_LEN || (name.len > ID_LEN && (!id[-1] || !strchr(".-_:", id[-1]))))
        return false;
    for (size_t i = 0; i < ID_LEN; i++)
        if (!parse_is_hex(id[i]))
            return false;
    memcpy(ret_id, id, ID_LEN);
    ret_id[ID_LEN] = '\0';
    return true;
}
