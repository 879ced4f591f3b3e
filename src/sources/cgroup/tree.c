#include "sources/cgroup/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/macros.h"
#include "sources/cgroup/tree_watches.h"

/* Relative to a hierarchy's root. */
static const char *relative(const char *path)
{
    return path[1] ? path + 1 : ".";
}

int cgroup_tree_open(const struct cgroup_tree *tree, const struct cgroup_node *node,
                     size_t hierarchy)
{
    _cleanup_close_ int fd = -1;
    char path[CGROUP_PATH_BYTES];
    struct stat st;

    if (node->inodes[hierarchy] == 0)
        return -ENOENT;
    if (!cgroup_nodes_get_path(&tree->nodes, node, path))
        return -ENAMETOOLONG;
    fd = openat(tree->hierarchies->fds[hierarchy], relative(path),
                O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        return -errno;
    if (node->depth > 0 && st.st_ino != node->inodes[hierarchy])
        return -ENOENT;
    return TAKE_FD(fd);
}

/* 0: it is not there. */
static uint64_t inode_at(int dir_fd, const char *name)
{
    struct stat st;

    return fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode) ? st.st_ino
                                                                                       : 0;
}

/* Another one may have the parent's path by now: what is in that is no child of this one. */
static uint64_t child_inode(const struct cgroup_tree *tree, const struct cgroup_node *parent,
                            const char *name, size_t hierarchy)
{
    _cleanup_close_ int fd = cgroup_tree_open(tree, parent, hierarchy);

    return fd >= 0 ? inode_at(fd, name) : 0;
}

/*
 * From here on: nodes that come and go. Functions that may remove nodes take handles, all others
 * pointers: those are good until one of the former is called.
 */

static void leave(struct cgroup_tree *tree, struct cgroup_handle handle, size_t hierarchy);

static bool is_anywhere(const struct cgroup_tree *tree, const struct cgroup_node *node)
{
    for (size_t i = 0; i < tree->hierarchies->count; i++)
        if (node->inodes[i] != 0)
            return true;
    return false;
}

/* One more node is inside of these workloads, or one less. */
static void count_inside(struct cgroup_tree *tree, const struct cgroup_node *node, int change)
{
    for (struct cgroup_node *outer = cgroup_nodes_find_around(&tree->nodes, node); outer;
         outer = cgroup_nodes_find_around(&tree->nodes, outer))
        outer->inner_count += (uint32_t)change;
}

/* On v2 the kernel has said so before (cgroup.events). */
static void tell_leaving(struct cgroup_tree *tree, struct cgroup_node *node)
{
    if (node->is_workload && !node->is_leaving && node->events_watch == CGROUP_UNWATCHED)
        tree->observer.stirred(tree->observer.context, node);
    node->is_leaving = true;
}

static void remove_node(struct cgroup_tree *tree, struct cgroup_node *node)
{
    count_inside(tree, node, -1);
    if (node->is_workload) {
        tree->workload_count--;
        tree->observer.ended(tree->observer.context, node);
    }
    cgroup_nodes_remove(&tree->nodes, node);
}

/* Nothing is below it in that hierarchy any more. */
static void leave_alone(struct cgroup_tree *tree, struct cgroup_node *node, size_t hierarchy)
{
    node->inodes[hierarchy] = 0;
    if (node->is_open)
        tree_watches_stop(tree, node, hierarchy);
    if (is_anywhere(tree, node))
        tell_leaving(tree, node);
    if ((int)hierarchy == tree->hierarchies->unified)
        tree_watches_stop_events(tree, node);
    if (!is_anywhere(tree, node))
        remove_node(tree, node);
}

/* What is below that the listing has not shown. */
static void leave_unlisted(struct cgroup_tree *tree, struct cgroup_handle parent, size_t hierarchy,
                           uint64_t listing)
{
    const struct cgroup_node *node = cgroup_nodes_get(&tree->nodes, parent);
    const struct cgroup_node *child =
        node ? cgroup_nodes_get(&tree->nodes, node->first_child) : NULL;

    while (child) {
        struct cgroup_handle next = child->next;

        if (child->listing != listing)
            leave(tree, child->self, hierarchy);
        child = cgroup_nodes_get(&tree->nodes, next);
    }
}

/* With all that is below it. */
static void leave(struct cgroup_tree *tree, struct cgroup_handle handle, size_t hierarchy)
{
    struct cgroup_node *node = cgroup_nodes_get(&tree->nodes, handle);

    if (!node || node->inodes[hierarchy] == 0)
        return;
    leave_unlisted(tree, handle, hierarchy, ++tree->listings); /* which nobody has seen */
    node = cgroup_nodes_get(&tree->nodes, handle);
    if (node)
        leave_alone(tree, node, hierarchy);
}

static void leave_all(struct cgroup_tree *tree, struct cgroup_handle handle)
{
    for (size_t i = 0; i < tree->hierarchies->count; i++)
        leave(tree, handle, i);
}

static uint64_t hash_owner(const struct workload_owner *owner)
{
    return map_hash_bytes(span_of(owner->id)) ^ map_hash_u64(owner->kind + 1);
}

static bool has_room_inside(const struct cgroup_tree *tree, const struct cgroup_node *outer)
{
    for (; outer; outer = cgroup_nodes_find_around(&tree->nodes, outer))
        if (outer->is_workload && outer->inner_count >= CGROUP_INNER_MAX)
            return false;
    return true;
}

/* Says what the new node is. False: there is no room for it. */
static bool judge(struct cgroup_tree *tree, struct cgroup_node *node)
{
    struct cgroup_observer *observer = &tree->observer;
    const struct cgroup_node *around = cgroup_nodes_find_around(&tree->nodes, node);
    struct workload_owner owner = {0};
    enum cgroup_verdict verdict;
    char path[CGROUP_PATH_BYTES];

    if (!cgroup_nodes_get_path(&tree->nodes, node, path))
        return false;
    verdict = observer->find_owner(observer->owner_context, path, &owner);
    node->is_open = verdict == CGROUP_IS_PASSAGE || verdict == CGROUP_IS_HOLDER;
    if (verdict != CGROUP_IS_WORKLOAD && verdict != CGROUP_IS_HOLDER)
        return true;
    node->owner_hash = hash_owner(&owner);
    if (around && around->owner_hash == node->owner_hash)
        return true;
    node->is_workload = tree->workload_count < tree->workloads_max &&
                        observer->appeared(observer->context, node, &owner);
    tree->workload_count += node->is_workload;
    return node->is_workload;
}

/* NULL: there is no room for it. */
static struct cgroup_node *add_node(struct cgroup_tree *tree, struct cgroup_node *parent,
                                    const char *name, bool is_older)
{
    struct cgroup_node *node =
        has_room_inside(tree, parent) ? cgroup_nodes_add(&tree->nodes, parent, name) : NULL;

    if (node) {
        node->is_older = is_older;
        node->update = tree->updates;
        if (judge(tree, node)) {
            count_inside(tree, node, 1);
            return node;
        }
        cgroup_nodes_remove(&tree->nodes, node);
    }
    tree->left_out++;
    return NULL;
}

static void list(struct cgroup_tree *tree, struct cgroup_handle handle, size_t hierarchy);

static void join(struct cgroup_tree *tree, struct cgroup_handle handle, size_t hierarchy,
                 uint64_t inode)
{
    struct cgroup_node *node = cgroup_nodes_get(&tree->nodes, handle);

    if (!node)
        return;
    node->inodes[hierarchy] = inode;
    node->is_leaving = false;
    if (node->is_workload) {
        tree_watches_try_events(tree, node, hierarchy);
        tree->observer.joined(tree->observer.context, node);
    }
    if (!node->is_open)
        return;
    tree->unwatched_count++;
    list(tree, handle, hierarchy);
}

/* A new one, in those hierarchies where it has an inode: in one at least, and its parent is there,
 * too. */
static void enter(struct cgroup_tree *tree, struct cgroup_handle parent, const char *name,
                  const uint64_t inodes[static HIERARCHIES_MAX], bool is_older)
{
    struct cgroup_node *above = cgroup_nodes_get(&tree->nodes, parent);
    const struct cgroup_node *node = above ? add_node(tree, above, name, is_older) : NULL;
    struct cgroup_handle handle = node ? node->self : (struct cgroup_handle){0};

    for (size_t i = 0; i < tree->hierarchies->count; i++)
        if (inodes[i] != 0)
            join(tree, handle, i, inodes[i]);
}

/* One hierarchy has another directory by this name: the old node has ended, and there is a new one
 * in all hierarchies where a directory is. Where that is still the old one, it has counted before.
 */
static void replace(struct cgroup_tree *tree, struct cgroup_handle handle, size_t hierarchy,
                    uint64_t inode)
{
    const struct cgroup_node *node = cgroup_nodes_get(&tree->nodes, handle);
    const struct cgroup_node *above = node ? cgroup_nodes_get(&tree->nodes, node->parent) : NULL;
    uint64_t inodes[HIERARCHIES_MAX] = {0};
    bool is_older = tree->is_moving;
    struct cgroup_handle parent;
    char name[NAME_MAX + 1];

    if (!above)
        return;
    parent = above->self;
    snprintf(name, sizeof(name), "%s", node->name);
    for (size_t i = 0; i < tree->hierarchies->count; i++) {
        inodes[i] = i == hierarchy ? inode : child_inode(tree, above, name, i);
        is_older |= inodes[i] != 0 && inodes[i] == node->inodes[i];
    }
    leave_all(tree, handle);
    enter(tree, parent, name, inodes, is_older);
}

/* What is there now by this name; 0: nothing. */
static void see(struct cgroup_tree *tree, struct cgroup_handle parent, const char *name,
                size_t hierarchy, uint64_t inode)
{
    const struct cgroup_node *above = cgroup_nodes_get(&tree->nodes, parent);
    const struct cgroup_node *node = above ? cgroup_nodes_find(&tree->nodes, above, name) : NULL;
    uint64_t inodes[HIERARCHIES_MAX] = {0};

    if (!above || above->inodes[hierarchy] == 0)
        return;
    inodes[hierarchy] = inode;
    if (!node && inode != 0)
        enter(tree, parent, name, inodes, tree->is_moving);
    else if (node && inode == 0)
        leave(tree, node->self, hierarchy);
    else if (node && node->inodes[hierarchy] == 0)
        join(tree, node->self, hierarchy, inode);
    else if (node && node->inodes[hierarchy] != inode)
        replace(tree, node->self, hierarchy, inode);
}

/* From here on: looking at directories. */

static struct cgroup_node *find_child(const struct cgroup_tree *tree, struct cgroup_handle parent,
                                      const char *name)
{
    const struct cgroup_node *above = cgroup_nodes_get(&tree->nodes, parent);

    return above ? cgroup_nodes_find(&tree->nodes, above, name) : NULL;
}

static void see_entry(struct cgroup_tree *tree, struct cgroup_handle parent, int dir_fd,
                      const struct dirent *entry, size_t hierarchy, uint64_t listing)
{
    struct cgroup_node *node;

    /* Names in cgroup file systems may begin with a dot, too. */
    if ((entry->d_type != DT_DIR && entry->d_type != DT_UNKNOWN) ||
        strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
        return;
    node = find_child(tree, parent, entry->d_name);
    /* Where the listing shows other inodes than stat does, as overlayfs may, stat decides. */
    if (!node || node->inodes[hierarchy] != entry->d_ino)
        see(tree, parent, entry->d_name, hierarchy, inode_at(dir_fd, entry->d_name));
    node = find_child(tree, parent, entry->d_name);
    if (node)
        node->listing = listing;
}

/* Never removes the node itself: its parent's listing does. */
static void list(struct cgroup_tree *tree, struct cgroup_handle handle, size_t hierarchy)
{
    struct cgroup_node *node = cgroup_nodes_get(&tree->nodes, handle);
    int fd = node ? cgroup_tree_open(tree, node, hierarchy) : -ENOENT;
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    uint64_t listing = ++tree->listings;
    const struct dirent *entry;

    if (!dir) {
        cleanup_close(&fd);
        return;
    }
    tree_watches_try(tree, node, hierarchy, fd);
    errno = 0;
    while ((entry = readdir(dir))) {
        see_entry(tree, handle, fd, entry, hierarchy, listing);
        errno = 0;
    }
    if (errno == 0)
        leave_unlisted(tree, handle, hierarchy, listing);
    closedir(dir);
}

/* Those that are new have been listed when they joined. */
static bool must_list(const struct cgroup_tree *tree, const struct cgroup_node *node,
                      size_t hierarchy, bool only_unwatched)
{
    return node && node->is_open && node->inodes[hierarchy] != 0 && node->update != tree->updates &&
           (!only_unwatched || node->watches[hierarchy] == CGROUP_UNWATCHED);
}

static void list_all(struct cgroup_tree *tree, bool only_unwatched)
{
    tree->updates++;
    for (size_t i = 0; i < tree->nodes.capacity; i++)
        for (size_t h = 0; h < tree->hierarchies->count; h++)
            if (must_list(tree, tree->nodes.items[i], h, only_unwatched))
                list(tree, tree->nodes.items[i]->self, h);
}

static void take_event(void *context, const struct watch_event *event)
{
    struct cgroup_tree *tree = context;
    struct cgroup_node *node = tree_watches_find(tree, event->number);
    size_t hierarchy;

    if (!node)
        return;
    if (event->number == node->events_watch) {
        if (event->is_over)
            tree_watches_stop_events(tree, node);
        else
            tree->observer.stirred(tree->observer.context, node);
    } else if (!tree_watches_hierarchy(tree, node, event->number, &hierarchy)) {
        return;
    } else if (event->is_over) {
        tree_watches_forget(tree, node, hierarchy);
    } else if (event->name) {
        tree->is_moving = event->is_move;
        see(tree, node->self, event->name, hierarchy,
            child_inode(tree, node, event->name, hierarchy));
        tree->is_moving = false;
    }
}

void cgroup_tree_update(struct cgroup_tree *tree, bool rescan)
{
    tree->is_behind |= watch_read(&tree->watch, WATCH_READS_MAX, take_event, tree) != WATCH_DONE;
    if (rescan || tree->is_behind) {
        tree->left_out = 0;
        tree->is_behind = false;
        list_all(tree, false);
    } else if (tree->unwatched_count > 0) {
        list_all(tree, true);
    }
}

void cgroup_tree_attend(struct cgroup_tree *tree)
{
    tree->is_behind |= watch_read(&tree->watch, 1, take_event, tree) == WATCH_LOST;
}

int cgroup_tree_init(struct cgroup_tree *tree, const struct hierarchies *hierarchies,
                     const struct cgroup_observer *observer)
{
    struct cgroup_node *root;

    *tree = (struct cgroup_tree){
        .hierarchies = hierarchies, .observer = *observer, .events_watches_max = SIZE_MAX};
    cgroup_tree_set_caps(tree, CGROUP_WORKLOADS_MAX, SIZE_MAX);
    watch_init(&tree->watch);
    root = cgroup_nodes_add(&tree->nodes, NULL, "");
    if (!root) {
        cgroup_tree_done(tree);
        return -ENOMEM;
    }
    root->is_open = true;
    for (size_t i = 0; i < hierarchies->count; i++)
        root->inodes[i] = 1; /* it does not go */
    tree->unwatched_count = hierarchies->count;
    return 0;
}

void cgroup_tree_done(struct cgroup_tree *tree)
{
    cgroup_nodes_done(&tree->nodes);
    watch_done(&tree->watch);
    map_done(&tree->by_watch);
}

void cgroup_tree_set_caps(struct cgroup_tree *tree, size_t workloads, size_t watches)
{
    tree->workloads_max = MIN(workloads, (size_t)CGROUP_WORKLOADS_MAX);
    tree->watches_max = watches;
    cgroup_tree_set_events_cap(tree, watches / 2);
}

void cgroup_tree_set_events_cap(struct cgroup_tree *tree, size_t watches)
{
    tree->events_watches_max = MIN(watches, tree->events_watches_max);
}
