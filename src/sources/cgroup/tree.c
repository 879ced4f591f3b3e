#include "sources/cgroup/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdalign.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include "core/macros.h"

/* More reads than the kernel's queue fills: it holds 16384 events by default
 * (max_queued_events). */
enum { EVENT_BUFFER_BYTES = 32 << 10, EVENT_READS_MAX = 256 };

static const struct cgroup_dir no_dir = {.delegated_to = CGROUP_NOT_DELEGATED};

static struct cgroup_dir dir_of(const struct cgroup_tree *tree, size_t hierarchy,
                                const struct stat *st)
{
    return (struct cgroup_dir){.inode = st->st_ino,
                               .delegated_to = tree->sees_owners[hierarchy]
                                                   ? cgroup_delegated_to(st)
                                                   : CGROUP_NOT_DELEGATED};
}

/* As cgroup_tree_open; `ret_dir` is the directory as it is now. */
static int open_dir(const struct cgroup_tree *tree, const struct cgroup_node *node,
                    size_t hierarchy, struct cgroup_dir *ret_dir)
{
    _cleanup_close_ int fd = -1;
    char path[CGROUP_PATH_BYTES];
    struct stat st;

    if (node->dirs[hierarchy].inode == 0)
        return -ENOENT;
    if (!cgroup_nodes_get_path(&tree->nodes, node, path))
        return -ENAMETOOLONG;
    fd = openat(tree->hierarchies->fds[hierarchy], path[1] ? path + 1 : ".",
                O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        return -errno;
    if (node->depth > 0 && st.st_ino != node->dirs[hierarchy].inode)
        return -ENOENT;
    *ret_dir = node->depth > 0 ? dir_of(tree, hierarchy, &st) : node->dirs[hierarchy];
    return TAKE_FD(fd);
}

int cgroup_tree_open(const struct cgroup_tree *tree, const struct cgroup_node *node,
                     size_t hierarchy)
{
    struct cgroup_dir ignored;

    return open_dir(tree, node, hierarchy, &ignored);
}

static struct cgroup_dir dir_at(const struct cgroup_tree *tree, size_t hierarchy, int dir_fd,
                                const char *name)
{
    struct stat st;

    return fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode)
               ? dir_of(tree, hierarchy, &st)
               : no_dir;
}

static struct cgroup_dir child_dir(const struct cgroup_tree *tree, const struct cgroup_node *parent,
                                   const char *name, size_t hierarchy)
{
    _cleanup_close_ int fd = cgroup_tree_open(tree, parent, hierarchy);

    return fd >= 0 ? dir_at(tree, hierarchy, fd, name) : no_dir;
}

static bool has_dir(const struct cgroup_node *node, size_t hierarchy, const struct cgroup_dir *dir)
{
    return node->dirs[hierarchy].inode == dir->inode &&
           node->dirs[hierarchy].delegated_to == dir->delegated_to;
}

/*
 * From here on: nodes that come and go. Functions that may remove nodes take handles, all others
 * pointers, which are valid until one of the former is called.
 */

static void node_leave(struct cgroup_tree *tree, struct cgroup_handle handle, size_t hierarchy);

/* One node more or less inside the workloads around it. */
static void count_inside(struct cgroup_tree *tree, const struct cgroup_node *node, int change)
{
    for (struct cgroup_node *outer = cgroup_nodes_find_around(&tree->nodes, node); outer;
         outer = cgroup_nodes_find_around(&tree->nodes, outer))
        outer->inner_count += (uint32_t)change;
}

/* Nothing is below it in that hierarchy any more. */
static void node_detach(struct cgroup_tree *tree, struct cgroup_node *node, size_t hierarchy)
{
    const struct cgroup_observer *observer = &tree->observer;
    bool is_last = true;

    node->dirs[hierarchy] = no_dir;
    for (size_t i = 0; i < tree->hierarchies->count; i++)
        is_last &= node->dirs[i].inode == 0;
    if (node->is_open)
        cgroup_watches_remove(tree, node, hierarchy);
    /* On v2 cgroup.events has reported it before. */
    if (!is_last && node->is_workload && !node->is_leaving &&
        node->watches[CGROUP_EVENTS_WATCH] == CGROUP_UNWATCHED)
        observer->changed(observer->context, node);
    node->is_leaving = true;
    if ((int)hierarchy == tree->hierarchies->unified)
        cgroup_watches_remove(tree, node, CGROUP_EVENTS_WATCH);
    if (!is_last)
        return;
    count_inside(tree, node, -1);
    if (node->is_workload) {
        tree->workload_count--;
        observer->ended(observer->context, node);
    }
    cgroup_nodes_remove(&tree->nodes, node);
}

/* The children that the listing did not show. */
static void leave_unlisted(struct cgroup_tree *tree, struct cgroup_handle parent, size_t hierarchy,
                           uint64_t listing)
{
    const struct cgroup_node *node = cgroup_nodes_get(&tree->nodes, parent);
    const struct cgroup_node *child =
        node ? cgroup_nodes_get(&tree->nodes, node->first_child) : NULL;

    while (child) {
        struct cgroup_handle next = child->next;

        if (child->listing != listing)
            node_leave(tree, child->self, hierarchy);
        child = cgroup_nodes_get(&tree->nodes, next);
    }
}

/* With everything below it. */
static void node_leave(struct cgroup_tree *tree, struct cgroup_handle handle, size_t hierarchy)
{
    struct cgroup_node *node = cgroup_nodes_get(&tree->nodes, handle);

    if (!node || node->dirs[hierarchy].inode == 0)
        return;
    leave_unlisted(tree, handle, hierarchy, ++tree->listings); /* which showed no child */
    node = cgroup_nodes_get(&tree->nodes, handle);
    if (node)
        node_detach(tree, node, hierarchy);
}

/* False: no room for it. */
static bool node_classify(struct cgroup_tree *tree, struct cgroup_node *node)
{
    struct cgroup_observer *observer = &tree->observer;
    const struct cgroup_node *around = cgroup_nodes_find_around(&tree->nodes, node);
    struct workload_owner owner = {0};
    enum cgroup_verdict verdict;
    char path[CGROUP_MARKED_BYTES];

    if (!cgroup_nodes_get_marked_path(&tree->nodes, node, path))
        return false;
    verdict = observer->find_owner(observer->context, path, &owner);
    node->is_open = verdict == CGROUP_IS_PASSAGE || verdict == CGROUP_IS_HOLDER;
    if (verdict != CGROUP_IS_WORKLOAD && verdict != CGROUP_IS_HOLDER)
        return true;
    node->owner_hash = map_hash_bytes(span_of(owner.id)) ^ map_hash_u64(owner.kind + 1);
    if (around && around->owner_hash == node->owner_hash)
        return true;
    node->is_workload = tree->workload_count < tree->workloads_max &&
                        observer->appeared(observer->context, node, &owner);
    tree->workload_count += node->is_workload;
    return node->is_workload;
}

static bool has_room_inside(const struct cgroup_tree *tree, const struct cgroup_node *outer)
{
    for (; outer; outer = cgroup_nodes_find_around(&tree->nodes, outer))
        if (outer->is_workload && outer->inner_count >= CGROUP_INNER_MAX)
            return false;
    return true;
}

/* NULL: no room for it. */
static struct cgroup_node *node_add(struct cgroup_tree *tree, struct cgroup_node *parent,
                                    const char *name,
                                    const struct cgroup_dir dirs[static HIERARCHIES_MAX],
                                    bool is_older)
{
    struct cgroup_node *node =
        has_room_inside(tree, parent) ? cgroup_nodes_add(&tree->nodes, parent, name) : NULL;

    if (node) {
        node->is_older = is_older;
        node->update = tree->updates;
        for (size_t i = 0; i < tree->hierarchies->count; i++)
            node->dirs[i].delegated_to = dirs[i].delegated_to;
        if (node_classify(tree, node)) {
            count_inside(tree, node, 1);
            return node;
        }
        cgroup_nodes_remove(&tree->nodes, node);
    }
    tree->left_out++;
    tree->misses_workloads |=
        (tree->workload_count >= tree->workloads_max || cgroup_nodes_are_full(&tree->nodes)) &&
        !parent->is_workload && !cgroup_nodes_find_around(&tree->nodes, parent);
    return NULL;
}

static bool list_directory(struct cgroup_tree *tree, struct cgroup_handle handle, size_t hierarchy);

static void node_join(struct cgroup_tree *tree, struct cgroup_handle handle, size_t hierarchy,
                      struct cgroup_dir dir)
{
    struct cgroup_node *node = cgroup_nodes_get(&tree->nodes, handle);

    if (!node)
        return;
    node->dirs[hierarchy] = dir;
    node->is_leaving = false;
    if (node->is_workload) {
        if ((int)hierarchy == tree->hierarchies->unified)
            cgroup_watches_add_events(tree, node);
        tree->observer.joined(tree->observer.context, node);
    }
    if (!node->is_open)
        return;
    tree->unwatched_count++;
    (void)list_directory(tree, handle, hierarchy);
}

/* A new one, in the hierarchies where it has an inode: at least one, and its parent is there. */
static void node_enter(struct cgroup_tree *tree, struct cgroup_handle parent, const char *name,
                       const struct cgroup_dir dirs[static HIERARCHIES_MAX], bool is_older)
{
    struct cgroup_node *above = cgroup_nodes_get(&tree->nodes, parent);
    const struct cgroup_node *node = above ? node_add(tree, above, name, dirs, is_older) : NULL;
    struct cgroup_handle handle = node ? node->self : (struct cgroup_handle){0};

    for (size_t i = 0; i < tree->hierarchies->count; i++)
        if (dirs[i].inode != 0)
            node_join(tree, handle, i, dirs[i]);
}

static void find_dirs(const struct cgroup_tree *tree, const struct cgroup_node *parent,
                      const char *name, size_t hierarchy, struct cgroup_dir dir, bool in_all,
                      struct cgroup_dir ret_dirs[static HIERARCHIES_MAX])
{
    for (size_t i = 0; i < HIERARCHIES_MAX; i++)
        ret_dirs[i] = i == hierarchy                           ? dir
                      : in_all && i < tree->hierarchies->count ? child_dir(tree, parent, name, i)
                                                               : no_dir;
}

/* One hierarchy has another directory by this name, or the directory has another owner: the node
 * ends, and a new one takes its place in every hierarchy that has a directory. Where that is the
 * old one, it has counted before. */
static void node_replace(struct cgroup_tree *tree, struct cgroup_handle handle, size_t hierarchy,
                         struct cgroup_dir dir)
{
    const struct cgroup_node *node = cgroup_nodes_get(&tree->nodes, handle);
    const struct cgroup_node *above = node ? cgroup_nodes_get(&tree->nodes, node->parent) : NULL;
    struct cgroup_dir dirs[HIERARCHIES_MAX];
    bool is_older = tree->is_moving;
    struct cgroup_handle parent;
    char name[NAME_MAX + 1];

    if (!above)
        return;
    parent = above->self;
    snprintf(name, sizeof(name), "%s", node->name);
    find_dirs(tree, above, name, hierarchy, dir, true, dirs);
    for (size_t i = 0; i < tree->hierarchies->count; i++)
        is_older |= dirs[i].inode != 0 && dirs[i].inode == node->dirs[i].inode;
    for (size_t i = 0; i < tree->hierarchies->count; i++)
        node_leave(tree, handle, i);
    node_enter(tree, parent, name, dirs, is_older);
}

/* Its directory has got another owner, who may be another workload, and so may be those below. */
static void node_change_hands(struct cgroup_tree *tree, struct cgroup_handle handle)
{
    const struct cgroup_observer *observer = &tree->observer;
    struct cgroup_node *node = cgroup_nodes_get(&tree->nodes, handle);

    if (node->is_workload)
        observer->changed(observer->context, node);
    tree->is_moving = true;
    node_replace(tree, handle, HIERARCHIES_MAX, no_dir);
    tree->is_moving = false;
}

/* The directory that this name has now, if any. */
static void node_observe(struct cgroup_tree *tree, struct cgroup_handle parent, const char *name,
                         size_t hierarchy, struct cgroup_dir dir)
{
    const struct cgroup_node *above = cgroup_nodes_get(&tree->nodes, parent);
    const struct cgroup_node *node = cgroup_nodes_find(&tree->nodes, parent, name);
    struct cgroup_dir dirs[HIERARCHIES_MAX];

    if (!above || above->dirs[hierarchy].inode == 0)
        return;
    if (!node && dir.inode != 0) {
        /* It may have been left out in a hierarchy that was listed before, and have room only
         * now. */
        find_dirs(tree, above, name, hierarchy, dir, tree->left_out > 0, dirs);
        node_enter(tree, parent, name, dirs, tree->is_moving);
    } else if (node && dir.inode == 0) {
        node_leave(tree, node->self, hierarchy);
    } else if (node && node->dirs[hierarchy].inode == 0) {
        node_join(tree, node->self, hierarchy, dir);
    } else if (node && !has_dir(node, hierarchy, &dir)) {
        node_replace(tree, node->self, hierarchy, dir);
    }
}

/* From here on: directories and events. */

static void observe_entry(struct cgroup_tree *tree, struct cgroup_handle parent, int dir_fd,
                          const struct dirent *entry, size_t hierarchy, uint64_t listing)
{
    struct cgroup_node *node;

    /* Names in cgroup file systems may begin with a dot, too. */
    if ((entry->d_type != DT_DIR && entry->d_type != DT_UNKNOWN) ||
        strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
        return;
    node = cgroup_nodes_find(&tree->nodes, parent, entry->d_name);
    /* Where the listing shows other inodes than stat does, as overlayfs may, stat decides. */
    if (!node || node->dirs[hierarchy].inode != entry->d_ino)
        node_observe(tree, parent, entry->d_name, hierarchy,
                     dir_at(tree, hierarchy, dir_fd, entry->d_name));
    node = cgroup_nodes_find(&tree->nodes, parent, entry->d_name);
    if (node)
        node->listing = listing;
}

/* Never removes the node itself: its parent's listing does. False: it has another owner than
 * before, and was not listed. */
static bool list_directory(struct cgroup_tree *tree, struct cgroup_handle handle, size_t hierarchy)
{
    struct cgroup_node *node = cgroup_nodes_get(&tree->nodes, handle);
    struct cgroup_dir now = no_dir;
    int fd = node ? open_dir(tree, node, hierarchy, &now) : -ENOENT;
    bool is_same = fd < 0 || has_dir(node, hierarchy, &now);
    DIR *dir = fd >= 0 && is_same ? fdopendir(fd) : NULL;
    uint64_t listing = ++tree->listings;
    const struct dirent *entry;

    if (!dir) {
        cleanup_close(&fd);
        return is_same;
    }
    cgroup_watches_add_dir(tree, node, hierarchy, fd);
    errno = 0;
    while ((entry = readdir(dir))) {
        observe_entry(tree, handle, fd, entry, hierarchy, listing);
        errno = 0;
    }
    if (errno == 0)
        leave_unlisted(tree, handle, hierarchy, listing);
    closedir(dir);
    return true;
}

static void list_all(struct cgroup_tree *tree, bool only_unwatched)
{
    tree->updates++;
    for (size_t i = 0; i < tree->nodes.capacity; i++)
        for (size_t h = 0; h < tree->hierarchies->count; h++) {
            const struct cgroup_node *node = tree->nodes.items[i];
            struct cgroup_handle handle = node ? node->self : (struct cgroup_handle){0};

            /* Nodes that this update added were listed when they joined. */
            if (node && node->is_open && node->dirs[h].inode != 0 &&
                node->update != tree->updates &&
                (!only_unwatched || node->watches[h] == CGROUP_UNWATCHED) &&
                !list_directory(tree, handle, h))
                node_change_hands(tree, handle);
        }
}

static void observe_event(struct cgroup_tree *tree, const struct cgroup_node *parent,
                          const char *name, size_t hierarchy)
{
    struct cgroup_dir now = no_dir;
    _cleanup_close_ int fd = open_dir(tree, parent, hierarchy, &now);

    if (fd >= 0 && !has_dir(parent, hierarchy, &now))
        node_change_hands(tree, parent->self); /* and is listed anew */
    else
        node_observe(tree, parent->self, name, hierarchy,
                     fd >= 0 ? dir_at(tree, hierarchy, fd, name) : no_dir);
}

static void handle_event(struct cgroup_tree *tree, const struct inotify_event *event)
{
    size_t slot;
    struct cgroup_node *node = cgroup_watches_find(tree, event->wd, &slot);

    if (!node)
        return;
    if (event->mask & IN_IGNORED) {
        cgroup_watches_forget(tree, node, slot);
    } else if (slot == CGROUP_EVENTS_WATCH) {
        if (event->mask & IN_MODIFY)
            tree->observer.changed(tree->observer.context, node);
    } else if ((event->mask & IN_ISDIR) && event->len > 0) {
        tree->is_moving = event->mask & IN_MOVED_TO;
        observe_event(tree, node, event->name, slot);
        tree->is_moving = false;
    }
}

/* False: the queue may hold more. */
static bool handle_events(struct cgroup_tree *tree, unsigned reads_max)
{
    alignas(struct inotify_event) char buffer[EVENT_BUFFER_BYTES];

    for (unsigned i = 0; tree->inotify_fd >= 0 && i < reads_max; i++) {
        ssize_t len = read(tree->inotify_fd, buffer, sizeof(buffer));

        if (len <= 0) {
            tree->is_behind |= len < 0 && errno != EAGAIN;
            return true;
        }
        for (const char *at = buffer; at < buffer + len;) {
            const struct inotify_event *event = (const struct inotify_event *)at;

            if (event->mask & IN_Q_OVERFLOW)
                tree->is_behind = true;
            else
                handle_event(tree, event);
            at += sizeof(*event) + event->len;
        }
    }
    return tree->inotify_fd < 0;
}

void cgroup_tree_update(struct cgroup_tree *tree, bool rescan)
{
    rescan |= !handle_events(tree, EVENT_READS_MAX);
    if (rescan || tree->is_behind) {
        tree->left_out = 0;
        tree->is_behind = tree->misses_workloads = false;
        list_all(tree, false);
    } else if (tree->unwatched_count > 0) {
        list_all(tree, true);
    }
}

void cgroup_tree_attend(struct cgroup_tree *tree)
{
    (void)handle_events(tree, 1);
}

int cgroup_tree_init(struct cgroup_tree *tree, const struct hierarchies *hierarchies,
                     const struct cgroup_observer *observer)
{
    struct cgroup_node *root;

    *tree = (struct cgroup_tree){.hierarchies = hierarchies,
                                 .observer = *observer,
                                 .inotify_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC),
                                 .watches_max = SIZE_MAX,
                                 .events_watches_max = SIZE_MAX,
                                 .workloads_max = CGROUP_WORKLOADS_MAX};
    root = cgroup_nodes_add(&tree->nodes, NULL, "");
    if (!root) {
        cgroup_tree_done(tree);
        return -ENOMEM;
    }
    root->is_open = true;
    for (size_t i = 0; i < hierarchies->count; i++) {
        struct stat st;

        root->dirs[i].inode = 1; /* it does not go */
        /* In a user namespace without the node's root, all strangers look alike. */
        tree->sees_owners[i] = fstat(hierarchies->fds[i], &st) == 0 && st.st_uid == 0;
    }
    tree->unwatched_count = hierarchies->count;
    return 0;
}

void cgroup_tree_done(struct cgroup_tree *tree)
{
    cgroup_nodes_done(&tree->nodes);
    cleanup_close(&tree->inotify_fd);
    map_done(&tree->by_watch);
}
