/*
 * The tree of cgroups, and the reader over it, while directories are made, removed, renamed, made
 * again and given to others (if root runs this) in up to three hierarchies: between two updates and
 * in the midst of them. The input is
 * the layout and then one operation after the other. The directories are real ones, of a tmpfs, and
 * so are the kernel's events: as in a cgroup file system, no two get the same inode number.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "check_cgroup_tree.h"
#include "core/fs.h"
#include "core/macros.h"
#include "sources/cgroup/reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { STEPS_MAX = 200, AMBUSHES_MAX = 8, LIVE_MAX = 256, PATH_BYTES = 16 };
enum { WATCHES_TEXT_BYTES = 64 << 10 };

#define MOUNT(name, type, options)                                                                 \
    "33 31 0:30 / /sys/fs/cgroup/" name " rw - " type " x rw" options "\n"
#define CPUACCT MOUNT("cpuacct", "cgroup", ",cpuacct")
#define MEMORY  MOUNT("memory", "cgroup", ",memory")
#define PIDS    MOUNT("pids", "cgroup", ",pids")
#define UNIFIED MOUNT("unified", "cgroup2", "")

static const char *const LAYOUTS[] = {
    UNIFIED, CPUACCT, CPUACCT UNIFIED, CPUACCT MEMORY, CPUACCT MEMORY UNIFIED, CPUACCT MEMORY PIDS,
};
static const char *const DIRECTORIES[] = {
    "proc",
    "proc/self",
    "sys",
    "sys/fs",
    "sys/fs/cgroup",
    "sys/fs/cgroup/cpuacct",
    "sys/fs/cgroup/memory",
    "sys/fs/cgroup/pids",
    "sys/fs/cgroup/unified",
};

/* Passages, a holder and a workload. */
static const char NAMES[] = "pqhw";

/* One change of one hierarchy, from two bytes. */
struct change {
    uint8_t what, path;
};

struct world {
    const uint8_t *data;
    size_t size;
    char root[64];
    struct host host;
    struct hierarchies hierarchies;
    struct cgroup_tree tree;
    struct cgroup_reader *reader; /* NULL: not in this input */
    struct cgroup_handle live[LIVE_MAX];
    size_t live_count;
    struct change ambushes[AMBUSHES_MAX]; /* what happens while the tree is looking */
    size_t ambush_count;
    uint8_t refusals;
    uint64_t calls; /* of the observer */
    uint64_t now_us;
    bool is_capped;
    bool is_certain; /* nothing has been hidden from the tree since it was complete */
};

/*
 * The kernel takes milliseconds to close an inotify descriptor that had watches, so that two are
 * kept for all inputs: all watches end with the directories. The tree has one, the reader or a
 * fresh tree the other; others do without.
 */
static int kept_fds[] = {-1, -1};
static size_t handed_out_fds;

int inotify_init1(int flags)
{
    size_t i = handed_out_fds++;

    if (i >= ARRAY_SIZE(kept_fds)) {
        errno = EMFILE;
        return -1;
    }
    if (kept_fds[i] < 0)
        kept_fds[i] = (int)syscall(SYS_inotify_init1, flags);
    check_that(kept_fds[i] >= 0);
    return dup(kept_fds[i]);
}

static void drain_events(int fd)
{
    char buffer[4096];

    while (read(fd, buffer, sizeof(buffer)) > 0)
        ;
}

static uint8_t take_byte(struct world *world)
{
    if (world->size == 0)
        return 0;
    world->size--;
    return *world->data++;
}

/* From here on: the file system. */

static void make_path(uint8_t code, char path[static PATH_BYTES])
{
    unsigned depth = code % 4 == 0 ? 1 : code % 4;

    for (unsigned i = 0; i < depth; i++) {
        path[2 * i] = NAMES[code >> (2 + 2 * i) & 3];
        path[2 * i + 1] = i + 1 < depth ? '/' : '\0';
    }
}

static void make_one(const struct world *world, size_t hierarchy, const char *path)
{
    int root_fd = world->hierarchies.fds[hierarchy];
    char file[PATH_BYTES + sizeof("/cgroup.events")];
    _cleanup_close_ int fd = -1;

    if (mkdirat(root_fd, path, 0755) < 0 || (int)hierarchy != world->hierarchies.unified)
        return;
    snprintf(file, sizeof(file), "%s/cgroup.events", path);
    fd = openat(root_fd, file, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    check_that(fd >= 0);
}

static void make(const struct world *world, size_t hierarchy, const char *path)
{
    char part[PATH_BYTES] = "";

    for (size_t i = 0; path[i]; i++) {
        part[i] = path[i];
        if (path[i + 1] == '/' || path[i + 1] == '\0')
            make_one(world, hierarchy, part);
    }
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *walk)
{
    (void)status;
    (void)type;
    (void)walk;
    return remove(path);
}

static void remove_tree(const char *path)
{
    check_that(nftw(path, remove_entry, 8, FTW_DEPTH | FTW_PHYS) == 0 || errno == ENOENT);
}

static void remove_from(const struct world *world, size_t hierarchy, const char *path)
{
    char whole[64];

    snprintf(whole, sizeof(whole), "/proc/self/fd/%d/%s", world->hierarchies.fds[hierarchy], path);
    remove_tree(whole);
}

/* Within its directory, as v1 has it. */
static void rename_in(const struct world *world, size_t hierarchy, const char *path, char name)
{
    char to[PATH_BYTES];

    snprintf(to, sizeof(to), "%s", path);
    to[strlen(to) - 1] = name;
    remove_from(world, hierarchy, to[strlen(to) - 1] == path[strlen(path) - 1] ? "none" : to);
    (void)renameat(world->hierarchies.fds[hierarchy], path, world->hierarchies.fds[hierarchy], to);
}

static void touch_events(const struct world *world, size_t hierarchy, const char *path)
{
    char file[PATH_BYTES + sizeof("/cgroup.events")];
    _cleanup_close_ int fd = -1;

    snprintf(file, sizeof(file), "%s/cgroup.events", path);
    fd = openat(world->hierarchies.fds[hierarchy], file, O_WRONLY | O_CLOEXEC);
    if (fd >= 0)
        check_that(write(fd, "x", 1) == 1);
}

static bool is_gift(struct change change)
{
    return change.what % 8 == 7 && change.what / 8 >= 6;
}

/* Anybody may write there, or root alone. */
static void give(const struct world *world, size_t hierarchy, const char *path, bool to_all)
{
    (void)!fchmodat(world->hierarchies.fds[hierarchy], path, to_all ? 0757 : 0755, 0);
}

static void apply(const struct world *world, struct change change)
{
    size_t hierarchy = change.what / 8 % world->hierarchies.count;
    char path[PATH_BYTES], top[] = {NAMES[change.path >> 2 & 3], '\0'};

    make_path(change.path, path);
    switch (change.what % 8) {
    case 0:
        make(world, hierarchy, path);
        return;
    case 1:
        for (size_t h = 0; h < world->hierarchies.count; h++)
            make(world, h, path);
        return;
    case 2:
        remove_from(world, hierarchy, path);
        return;
    case 3:
        remove_from(world, hierarchy, top);
        return;
    case 4:
        remove_from(world, hierarchy, path);
        make(world, hierarchy, path);
        return;
    case 5:
        remove_from(world, hierarchy, top);
        make(world, hierarchy, path);
        return;
    case 6:
        rename_in(world, hierarchy, path, NAMES[(change.what >> 3 ^ change.path) & 3]);
        return;
    default:
        if (is_gift(change))
            give(world, hierarchy, path, change.what / 8 % 2);
        else
            touch_events(world, hierarchy, path);
    }
}

/* From here on: the observer. What happens while it is called, happens in the midst of things. */

static void spring(struct world *world)
{
    world->calls++;
    if (world->ambush_count > 0)
        apply(world, world->ambushes[--world->ambush_count]);
}

static enum cgroup_verdict find_owner(void *context, const char *path, struct workload_owner *owner)
{
    struct cgroup_mark mark;

    (void)context;
    owner->kind = WORKLOAD_UNIT;
    if (cgroup_mark_find(span_of(path), &mark))
        snprintf(owner->id, sizeof(owner->id), "%.*s%s%.*s", (int)mark.above.len, mark.above.data,
                 mark.below.len ? "/" : "", (int)mark.below.len, mark.below.data);
    else
        snprintf(owner->id, sizeof(owner->id), "%s", path);
    switch (owner->id[strlen(owner->id) - 1]) {
    case 'h':
        return CGROUP_IS_HOLDER;
    case 'w':
        return CGROUP_IS_WORKLOAD;
    default:
        return CGROUP_IS_PASSAGE;
    }
}

static enum cgroup_verdict find_owner_late(void *context, const char *path,
                                           struct workload_owner *owner)
{
    spring(context);
    return find_owner(NULL, path, owner);
}

static size_t find_live(const struct world *world, struct cgroup_handle handle)
{
    size_t i = 0;

    while (i < world->live_count && world->live[i].generation != handle.generation)
        i++;
    return i;
}

static void check_live(const struct world *world, const struct cgroup_node *node)
{
    char path[CGROUP_PATH_BYTES];

    check_that(find_live(world, node->self) < world->live_count);
    check_that(cgroup_nodes_get(&world->tree.nodes, node->self) == node);
    check_that(cgroup_nodes_get_path(&world->tree.nodes, node, path));
}

static bool take_appeared(void *context, struct cgroup_node *node,
                          const struct workload_owner *owner)
{
    struct world *world = context;

    (void)owner;
    spring(world);
    check_that(find_live(world, node->self) == world->live_count);
    if (world->refusals > 0) {
        world->refusals--;
        world->is_certain = false;
        return false;
    }
    check_that(world->live_count < LIVE_MAX);
    world->live[world->live_count++] = node->self;
    return true;
}

static void take_joined(void *context, struct cgroup_node *node)
{
    check_live(context, node);
    spring(context);
}

static void take_changed(void *context, struct cgroup_node *node)
{
    check_live(context, node);
    spring(context);
}

static void take_ended(void *context, struct cgroup_node *node)
{
    struct world *world = context;
    const struct cgroup_node *around = cgroup_nodes_find_around(&world->tree.nodes, node);

    check_live(world, node);
    if (around)
        check_live(world, around);
    world->live[find_live(world, node->self)] = world->live[world->live_count - 1];
    world->live_count--;
    spring(world);
}

/* From here on: what must be. */

static bool accept_node(void *context, struct cgroup_node *node, const struct workload_owner *owner)
{
    (void)context;
    (void)node;
    (void)owner;
    return true;
}

static void ignore_node(void *context, struct cgroup_node *node)
{
    (void)context;
    (void)node;
}

static void check_reader(const struct world *world, const struct cgroup_tree *fresh)
{
    const struct usage_owner *items;
    size_t count, live = 0;

    items = world->reader->items;
    count = world->reader->count;
    for (size_t i = 0; i < count; i++) {
        live += !items[i].ended;
        check_that(items[i].around == USAGE_AROUND_NONE || items[i].around < count);
        check_that(items[i].ended || items[i].around == USAGE_AROUND_NONE ||
                   !items[items[i].around].ended);
        check_that(items[i].ended || find_by_path(fresh, items[i].owner.id));
    }
    check_that(world->is_capped || live == fresh->workload_count);
}

/* The tree is what one that is made now is. */
static void check_is_complete(const struct world *world)
{
    const struct cgroup_observer observer = {.find_owner = find_owner,
                                             .appeared = accept_node,
                                             .joined = ignore_node,
                                             .changed = ignore_node,
                                             .ended = ignore_node};
    struct cgroup_tree fresh;

    check_that(cgroup_tree_init(&fresh, &world->hierarchies, &observer) == 0);
    cgroup_tree_update(&fresh, true);
    check_cgroup_tree(&fresh);
    check_is_part_of(&world->tree, &fresh);
    check_that(world->is_capped || world->tree.nodes.count == fresh.nodes.count);
    if (world->reader)
        check_reader(world, &fresh);
    cgroup_tree_done(&fresh);
}

static void read_reader(struct world *world, bool rescan)
{
    if (!world->reader)
        return;
    cgroup_reader_read(world->reader, rescan);
    if (rescan)
        cgroup_reader_set_reported(world->reader);
}

/* What the kernel has for this descriptor. */
static size_t count_kernel_watches(int fd)
{
    char path[64], text[WATCHES_TEXT_BYTES];
    size_t count = 0, len;

    snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
    check_that(fs_read_at(AT_FDCWD, path, text, sizeof(text), &len) == 0);
    for (const char *at = text; (at = strstr(at, "inotify wd:")); at++)
        count++;
    return count;
}

/* Nothing else happens meanwhile, so that nothing can be missed; and then there is nothing more. */
static void rescan_in_peace(struct world *world)
{
    uint64_t calls;

    world->ambush_count = 0;
    world->refusals = 0;
    cgroup_tree_update(&world->tree, true);
    check_cgroup_tree(&world->tree);
    read_reader(world, true);
    check_is_complete(world);
    calls = world->calls;
    cgroup_tree_update(&world->tree, false);
    check_that(world->calls == calls || world->is_capped);
    check_that(count_kernel_watches(world->tree.inotify_fd) == world->tree.by_watch.count);
    world->is_certain = !world->is_capped;
}

/* The kernel's word is enough where none was lost. */
static void update(struct world *world)
{
    bool is_certain = world->is_certain && world->ambush_count == 0;

    cgroup_tree_update(&world->tree, false);
    check_cgroup_tree(&world->tree);
    read_reader(world, false);
    if (is_certain && world->is_certain)
        check_is_complete(world);
    world->is_certain &= is_certain;
}

static void attend(struct world *world)
{
    world->is_certain &= world->ambush_count == 0;
    cgroup_tree_attend(&world->tree);
    world->now_us += 30000;
    if (world->reader)
        cgroup_reader_attend(world->reader, world->now_us);
}

/* As the kernel's queue does that overflows. */
static void lose_events(struct world *world)
{
    drain_events(world->tree.inotify_fd);
    world->tree.is_behind = true;
}

static void cap_tree(struct cgroup_tree *tree, uint8_t caps)
{
    tree->workloads_max = caps % 8;
    tree->watches_max = caps / 8 % 8;
    tree->events_watches_max = MIN(tree->watches_max / 2, tree->events_watches_max);
}

static void lower_caps(struct world *world, uint8_t caps)
{
    world->is_capped = true;
    world->is_certain = false;
    cap_tree(&world->tree, caps);
    if (!world->reader)
        return;
    cap_tree(&world->reader->tree, caps);
    world->reader->kept_files_max = MIN((size_t)caps / 64, world->reader->kept_files_max);
}

static void step(struct world *world)
{
    uint8_t what = take_byte(world);
    struct change change;

    switch (what >> 5) {
    case 0:
    case 1:
    case 2:
        change = (struct change){what, take_byte(world)};
        world->is_certain &= !is_gift(change); /* which the kernel does not report */
        apply(world, change);
        break;
    case 3:
        if (world->ambush_count < AMBUSHES_MAX)
            world->ambushes[world->ambush_count++] = (struct change){what, take_byte(world)};
        break;
    case 4:
        update(world);
        break;
    case 5:
        attend(world);
        break;
    case 6:
        rescan_in_peace(world);
        break;
    default:
        if (what & 16)
            lose_events(world);
        else if ((what & 15) == 15)
            lower_caps(world, take_byte(world));
        else
            world->refusals = what & 3;
    }
    check_cgroup_tree(&world->tree);
    check_that(world->live_count == world->tree.workload_count);
}

/* From here on: the beginning and the end. */

static int open_below(const struct world *world, const char *name)
{
    char path[128];

    snprintf(path, sizeof(path), "%s/%s", world->root, name);
    return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static void make_host(struct world *world, const char *mountinfo)
{
    _cleanup_close_ int fd = -1;
    char path[128];

    strcpy(world->root, "/dev/shm/fuzz_cgroup.XXXXXX");
    check_that(mkdtemp(world->root) != NULL);
    for (size_t i = 0; i < ARRAY_SIZE(DIRECTORIES); i++) {
        snprintf(path, sizeof(path), "%s/%s", world->root, DIRECTORIES[i]);
        check_that(mkdir(path, 0755) == 0);
    }
    snprintf(path, sizeof(path), "%s/proc/self/mountinfo", world->root);
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    check_that(fd >= 0 && fs_write_all(fd, mountinfo, strlen(mountinfo)) == 0);
    world->host = (struct host){.procfs_fd = open_below(world, "proc"),
                                .sysfs_fd = open_below(world, "sys"),
                                .rootfs_fd = open_below(world, ".")};
    check_that(hierarchies_open(&world->host, &world->hierarchies) == 0);
}

static void begin(struct world *world)
{
    const struct cgroup_observer observer = {.find_owner = find_owner_late,
                                             .appeared = take_appeared,
                                             .joined = take_joined,
                                             .changed = take_changed,
                                             .ended = take_ended,
                                             .context = world};
    uint8_t first = take_byte(world);

    make_host(world, LAYOUTS[first % ARRAY_SIZE(LAYOUTS)]);
    check_that(cgroup_tree_init(&world->tree, &world->hierarchies, &observer) == 0);
    if (first & 128)
        check_that(cgroup_reader_new(&world->host, find_owner, &world->reader) == 0);
    cgroup_tree_update(&world->tree, true);
    read_reader(world, true);
    world->is_certain = true;
}

/* Nothing is left. */
static void end(struct world *world)
{
    for (size_t h = 0; h < world->hierarchies.count; h++)
        for (const char *name = NAMES; *name; name++)
            remove_from(world, h, (char[]){*name, '\0'});
    rescan_in_peace(world);
    check_that(world->live_count == 0 && world->tree.nodes.count == 1);
    cgroup_tree_done(&world->tree);
    cgroup_reader_free(world->reader);
    hierarchies_close(&world->hierarchies);
    host_close(&world->host);
    remove_tree(world->root);
    for (size_t i = 0; i < ARRAY_SIZE(kept_fds); i++)
        if (kept_fds[i] >= 0)
            drain_events(kept_fds[i]);
    handed_out_fds = 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct world world = {.data = data, .size = size};

    begin(&world);
    for (int i = 0; i < STEPS_MAX && world.size > 0; i++)
        step(&world);
    rescan_in_peace(&world);
    end(&world);
    return 0;
}
