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
    uint64_t round; /* the last one that saw it */
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
    bool is_failed; /* in this round: too many of something, or no memory */
};

/* What a group's files say, by domain. */
struct values {
    bool valid[RESCTRL_DOMAINS_MAX];
    uint64_t bytes[RESCTRL_DOMAINS_MAX];
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

static void forget_groups(struct resctrl *resctrl)
{
    for (size_t i = 0; i < resctrl->group_count; i++)
        free(resctrl->groups[i]);
    resctrl->group_count = 0;
}

void resctrl_free(struct resctrl *resctrl)
{
    if (resctrl)
        forget_groups(resctrl);
    free(resctrl);
}

static int ascending(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

/* The domains of the machine; -EFBIG if there are too many. */
static int list_domains(int root_fd, uint32_t domains[static RESCTRL_DOMAINS_MAX],
                        size_t *ret_count)
{
    DIR *directory = fs_open_dir(root_fd, "mon_data");
    const struct dirent *entry;
    size_t count = 0;
    uint32_t id;
    int r = 0;

    while (directory && r == 0 && (entry = readdir(directory)))
        if (resctrl_parse_domain(span_of(entry->d_name), &id) == 0) {
            if (count < RESCTRL_DOMAINS_MAX)
                domains[count++] = id;
            else
                r = -EFBIG;
        }
    if (directory)
        closedir(directory);
    qsort(domains, count, sizeof(domains[0]), ascending);
    *ret_count = count;
    return r;
}

/* With a CPU that comes or goes a domain may: then all counts begin anew. */
static bool find_domains(struct resctrl *resctrl, int root_fd)
{
    uint32_t domains[RESCTRL_DOMAINS_MAX] = {0};
    size_t count;
    int r = list_domains(root_fd, domains, &count);

    if (r < 0 || count != resctrl->domain_count ||
        memcmp(domains, resctrl->domains, sizeof(domains)) != 0)
        forget_groups(resctrl);
    memcpy(resctrl->domains, domains, sizeof(domains));
    resctrl->domain_count = count;
    return r == 0 && count > 0;
}

static void read_values(const struct resctrl *resctrl, int group_fd, struct values *ret_values)
{
    for (size_t i = 0; i < resctrl->domain_count; i++) {
        char path[PATH_BYTES], text[TEXT_BYTES];
        struct span said = {text, 0};

        snprintf(path, sizeof(path), "mon_data/mon_L3_%02u/mbm_total_bytes", resctrl->domains[i]);
        ret_values->valid[i] = fs_read_at(group_fd, path, text, sizeof(text), &said.len) == 0 &&
                               resctrl_parse_bytes(said, &ret_values->bytes[i]) == 0;
    }
}

static struct group *add_group(struct resctrl *resctrl, uint64_t inode)
{
    struct group *group = NULL;

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

static struct group *find_group(struct resctrl *resctrl, uint64_t inode)
{
    for (size_t i = 0; i < resctrl->group_count; i++)
        if (resctrl->groups[i]->inode == inode)
            return resctrl->groups[i];
    return add_group(resctrl, inode);
}

/* A difference may seem to go back a little. If a counter does, what it counted is lost. */
static bool is_lost(enum resctrl_step step, bool is_difference)
{
    return step == RESCTRL_ABSURD || (step == RESCTRL_LOWER && !is_difference);
}

/* A container runs on some of the L3 caches: where it never ran, AMD's say "Unavailable". */
static void count(struct resctrl *resctrl, struct group *group, const struct values *values,
                  bool is_difference)
{
    bool has_some = false, has_lost = false;
    uint64_t sum = 0;

    for (size_t i = 0; i < resctrl->domain_count; i++) {
        struct resctrl_counter *counter = &group->counters[i];
        enum resctrl_step step;
        uint64_t bytes = 0;

        if (!values->valid[i]) {
            counter->has_last = false;
            continue;
        }
        step = resctrl_counter_take(counter, resctrl->now_us, values->bytes[i], &bytes);
        has_some |= step != RESCTRL_FIRST;
        has_lost |= is_lost(step, is_difference);
        sum += bytes;
    }
    group->round = resctrl->round;
    group->is_known = has_some && !has_lost;
    group->bytes = group->is_known ? sum : 0;
}

static void add_valid(struct values *sum, const struct values *values)
{
    for (size_t i = 0; i < RESCTRL_DOMAINS_MAX; i++)
        if (values->valid[i])
            sum->bytes[i] += values->bytes[i];
}

static void take_out(struct values *from, const struct values *inner)
{
    for (size_t i = 0; i < RESCTRL_DOMAINS_MAX; i++)
        from->bytes[i] -= MIN(from->bytes[i], inner->bytes[i]);
}

static void name_group(struct group *group, const char *name, const char *class_container_id)
{
    if (!resctrl_parse_container(span_of(name), group->container_id))
        snprintf(group->container_id, sizeof(group->container_id), "%s", class_container_id);
}

static bool may_be_group(const struct dirent *entry)
{
    return entry->d_name[0] != '.' && (entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN);
}

/* The monitoring groups in a class, and their sum. Returns how many there are. */
static size_t read_inner(struct resctrl *resctrl, int class_fd, const char *class_container_id,
                         struct values *sum)
{
    DIR *directory = fs_open_dir(class_fd, "mon_groups");
    const struct dirent *entry;
    size_t seen = 0;

    while (directory && !resctrl->is_failed && (entry = readdir(directory))) {
        _cleanup_close_ int fd = -1;
        struct values values = {0};
        struct group *group;

        if (!may_be_group(entry))
            continue;
        fd = openat(dirfd(directory), entry->d_name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 || !(group = find_group(resctrl, entry->d_ino)))
            continue;
        read_values(resctrl, fd, &values);
        name_group(group, entry->d_name, class_container_id);
        count(resctrl, group, &values, false);
        add_valid(sum, &values);
        seen++;
    }
    if (directory)
        closedir(directory);
    return seen;
}

/* The groups in it are read first: one that goes meanwhile makes the class look smaller for once,
 * which is not believed. The other way round its whole count would look like the class's own. */
static struct group *read_class(struct resctrl *resctrl, int fd, uint64_t inode, const char *name)
{
    struct group *group = find_group(resctrl, inode);
    struct values inner = {0}, values = {0};
    size_t inner_count;

    if (!group)
        return NULL;
    name_group(group, name, "");
    inner_count = read_inner(resctrl, fd, group->container_id, &inner);
    read_values(resctrl, fd, &values);
    take_out(&values, &inner);
    count(resctrl, group, &values, inner_count > 0);
    return group;
}

static bool is_part_of_root(const char *name)
{
    return strcmp(name, "info") == 0 || strcmp(name, "mon_groups") == 0 ||
           strcmp(name, "mon_data") == 0;
}

static void read_classes(struct resctrl *resctrl, int root_fd)
{
    DIR *directory = fs_open_dir(root_fd, ".");
    const struct dirent *entry;

    while (directory && !resctrl->is_failed && (entry = readdir(directory))) {
        _cleanup_close_ int fd = -1;

        if (!may_be_group(entry) || is_part_of_root(entry->d_name))
            continue;
        fd = openat(root_fd, entry->d_name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0)
            (void)read_class(resctrl, fd, entry->d_ino, entry->d_name);
    }
    if (directory)
        closedir(directory);
}

static void forget_unseen(struct resctrl *resctrl)
{
    size_t kept = 0;

    for (size_t i = 0; i < resctrl->group_count; i++)
        if (resctrl->groups[i]->round == resctrl->round)
            resctrl->groups[kept++] = resctrl->groups[i];
        else
            free(resctrl->groups[i]);
    resctrl->group_count = kept;
}

static bool read_all(struct resctrl *resctrl, int root_fd)
{
    struct group *root;
    struct stat status;

    if (fstat(root_fd, &status) < 0 || !find_domains(resctrl, root_fd))
        return false;
    root = read_class(resctrl, root_fd, status.st_ino, "");
    read_classes(resctrl, root_fd);
    return root && root->is_known && !resctrl->is_failed;
}

bool resctrl_read(struct resctrl *resctrl, uint64_t now_us)
{
    _cleanup_close_ int root_fd = openat(resctrl->host->sysfs_fd, "fs/resctrl",
                                         O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    bool is_known;

    resctrl->round++;
    resctrl->now_us = now_us;
    resctrl->is_failed = false;
    is_known = root_fd >= 0 && read_all(resctrl, root_fd);
    if (resctrl->is_failed) /* who was left out changes: nothing can be compared */
        forget_groups(resctrl);
    forget_unseen(resctrl);
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

/* From here on: one counter. */

typedef unsigned __int128 u128;

/* No memory behind one L3 cache moves as much: an MI300A's has 5.3 TB/s. */
static const uint64_t BYTES_PER_SECOND_MAX = (uint64_t)8 * 1000 * 1000 * 1000 * 1000;

static bool is_plausible(uint64_t bytes, uint64_t elapsed_us)
{
    return (u128)bytes * USEC_PER_SEC <= (u128)BYTES_PER_SECOND_MAX * elapsed_us;
}

enum resctrl_step resctrl_counter_take(struct resctrl_counter *counter, uint64_t t_us,
                                       uint64_t value, uint64_t *ret_bytes)
{
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
    if (!is_plausible(value - before.last, t_us - before.last_us))
        return RESCTRL_ABSURD;
    *ret_bytes = value - before.last;
    return RESCTRL_KNOWN;
}

/* From here on: names and texts. */

enum { ID_LEN = WORKLOAD_CONTAINER_BYTES - 1 };

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
    static const char *const words[] = {"Unavailable", "Unassigned", "Error"};

    (void)span_strip_suffix(&text, "\n");
    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        if (span_equals(text, words[i]))
            return -ENODATA;
    return parse_u64(text, ret_bytes) < 0 ? -EINVAL : 0;
}

static bool is_mark(char c)
{
    return c == '.' || c == '-' || c == '_' || c == ':';
}

bool resctrl_parse_container(struct span name, char ret_id[static WORKLOAD_CONTAINER_BYTES])
{
    const char *id = name.data + name.len - MIN(name.len, (size_t)ID_LEN);

    if (name.len < ID_LEN || (name.len > ID_LEN && !is_mark(id[-1])))
        return false;
    for (size_t i = 0; i < ID_LEN; i++)
        if (!parse_is_hex(id[i]))
            return false;
    memcpy(ret_id, id, ID_LEN);
    ret_id[ID_LEN] = '\0';
    return true;
}
