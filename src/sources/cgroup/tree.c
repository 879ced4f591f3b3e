#include "sources/cgroup/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/macros.h"

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

    if (!cgroup_node_path(node, path))
        return -ENAMETOOLONG;
    fd = openat(tree->hierarchies->fds[hierarchy], relative(path),
                O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        return -errno;
    if (node->parent && st.st_ino != node->inodes[hierarchy])
        return -ENOENT;
    return TAKE_FD(fd);
}

/* 0: it is not there. */
static uint64_t inode_at(int dir_fd, const char *path)
{
    struct stat st;

    return fstatat(dir_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode) ? st.st_ino
                                                                                       : 0;
}

static uint64_t child_inode(const struct cgroup_tree *tree, const struct cgroup_node *parent,
                            const char *name, size_t hierarchy)
{
    char path[CGROUP_PATH_BYTES];
    size_t len, name_len = strlen(name);

    if (!cgroup_node_path(parent, path))
        return 0;
    len = strlen(path);
    if (len + 1 + name_len >= sizeof(path))
        return 0;
    path[len] = '/';
    memcpy(path + len + 1, name, name_len + 1);
    return inode_at(tree->hierarchies->fds[hierarchy], path + (len == 1 ? 2 : 1));
}

/* From here on: watches. A directory is watched before it is listed, so that nothing comes between.
 */

static bool is_same_watch(const void *context, uint32_t value, const void *key)
{
    const struct cgroup_tree *tree = context;
    int number = *(const int *)key;

    for (size_t i = 0; i < tree->hierarchies->count; i++)
        if (tree->nodes.items[value]->watches[i] == number)
            return true;
    return tree->nodes.items[value]->events_watch == number;
}

static struct cgroup_node *find_watched(const struct cgroup_tree *tree, int number)
{
    uint32_t index;

    return map_find(&tree->by_watch, map_hash_u64((uint64_t)number), is_same_watch, tree, &number,
                    &index)
               ? tree->nodes.items[index]
               : NULL;
}

/* False: it has none of that number. */
static bool find_hierarchy(const struct cgroup_tree *tree, const struct cgroup_node *node,
                           int number, size_t *ret_hierarchy)
{
    for (size_t i = 0; i < tree->hierarchies->count; i++)
        if (node->watches[i] == number) {
            *ret_hierarchy = i;
            return true;
        }
    return false;
}

/* True: `number` leads to the node from now on. */
static bool keep_watch(struct cgroup_tree *tree, const struct cgroup_node *node, int number)
{
    /* The kernel has one watch for a directory, also where we see it twice. */
    if (number < 0 || find_watched(tree, number))
        return false;
    if (map_insert(&tree->by_watch, map_hash_u64((uint64_t)number), node->index) == 0)
        return true;
    watch_remove(&tree->watch, number);
    return false;
}

static void forget_watch(struct cgroup_tree *tree, struct cgroup_node *node, size_t hierarchy)
{
    if (node->watches[hierarchy] == CGROUP_UNWATCHED)
        return;
    map_remove(&tree->by_watch, map_hash_u64((uint64_t)node->watches[hierarchy]), node->index);
    node->watches[hierarchy] = CGROUP_UNWATCHED;
    tree->watch_count--;
    tree->unwatched_count++;
}

static void try_watch(struct cgroup_tree *tree, struct cgroup_node *node, size_t hierarchy,
                      int dir_fd)
{
    int number;

    if (node->watches[hierarchy] != CGROUP_UNWATCHED ||
        tree->watch_count + tree->events_watch_count >= tree->watches_max)
        return;
    number = watch_add(&tree->watch, dir_fd);
    if (!keep_watch(tree, node, number))
        return;
    node->watches[hierarchy] = number;
    tree->watch_count++;
    tree->unwatched_count--;
}

static void try_watch_events(struct cgroup_tree *tree, struct cgroup_node *node, size_t hierarchy)
{
    char path[CGROUP_PATH_BYTES], name[CGROUP_PATH_BYTES + sizeof("/cgroup.events")];
    int number;

    if ((int)hierarchy != tree->hierarchies->unified ||
        tree->events_watch_count >= tree->events_watches_max ||
        tree->watch_count + tree->events_watch_count >= tree->watches_max ||
        !cgroup_node_path(node, path))
        return;
    snprintf(name, sizeof(name), "%s/cgroup.events", path + 1);
    number = watch_add_file(&tree->watch, tree->hierarchies->fds[hierarchy], name);
    if (!keep_watch(tree, node, number))
        return;
    node->events_watch = number;
    tree->events_watch_count++;
}

/* The kernel does not end it by itself: the file lives as long as the watch. */
static void stop_watching_events(struct cgroup_tree *tree, struct cgroup_node *node)
{
    int number = node->events_watch;

    if (number == CGROUP_UNWATCHED)
        return;
    map_remove(&tree->by_watch, map_hash_u64((uint64_t)number), node->index);
    node->events_watch = CGROUP_UNWATCHED;
    tree->events_watch_count--;
    watch_remove(&tree->watch, number);
}

/* From here on: nodes that come and go. */

static void remove_node(struct cgroup_tree *tree, struct cgroup_node *node);

static void stop_watching(struct cgroup_tree *tree, struct cgroup_node *node, size_t hierarchy)
{
    int number = node->watches[hierarchy];

    forget_watch(tree, node, hierarchy);
    if (number != CGROUP_UNWATCHED)
        watch_remove(&tree->watch, number);
    tree->unwatched_count--; /* nobody has to list it either */
}

/* On v2 the kernel has said so before (cgroup.events). */
static void tell_leaving(struct cgroup_tree *tree, struct cgroup_node *node)
{
    if (node->is_workload && !node->is_leaving && node->events_watch == CGROUP_UNWATCHED)
        tree->observer.stirred(tree->observer.context, node);
    node->is_leaving = true;
}

/* May remove the node. */
static void leave(struct cgroup_tree *tree, struct cgroup_node *node, size_t hierarchy)
{
    struct cgroup_node *next;

    if (node->inodes[hierarchy] == 0)
        return;
    for (struct cgroup_node *child = node->children; child; child = next) {
        next = child->next;
        leave(tree, child, hierarchy);
    }
    node->inodes[hierarchy] = 0;
    if (node->is_open)
        stop_watching(tree, node, hierarchy);
    for (size_t i = 0; i < tree->hierarchies->count; i++)
        if (node->inodes[i] != 0) {
            tell_leaving(tree, node);
            return;
        }
    remove_node(tree, node);
}

/* It is in no hierarchy any more, and so nothing is below it. */
static void remove_node(struct cgroup_tree *tree, struct cgroup_node *node)
{
    for (struct cgroup_node *outer = node->around; outer; outer = outer->around)
        outer->inner_count--;
    stop_watching_events(tree, node);
    if (node->is_workload) {
        tree->workload_count--;
        tree->observer.ended(tree->observer.context, node);
    }
    cgroup_nodes_remove(&tree->nodes, node);
}

static void leave_all(struct cgroup_tree *tree, struct cgroup_node *node)
{
    size_t present = 0;

    for (size_t i = 0; i < tree->hierarchies->count; i++)
        present += node->inodes[i] != 0;
    for (size_t i = 0; present > 0; i++)
        if (node->inodes[i] != 0) {
            present--;
            leave(tree, node, i); /* the last one frees it */
        }
}

static uint64_t hash_owner(const struct workload_owner *owner)
{
    return map_hash_bytes(span_of(owner->id)) ^ map_hash_u64(owner->kind + 1);
}

static bool has_room_inside(const struct cgroup_node *around)
{
    for (; around; around = around->around)
        if (around->inner_count >= CGROUP_INNER_MAX)
            return false;
    return true;
}

/* Says what the new node is. False: there is no room for it. */
static bool judge(struct cgroup_tree *tree, struct cgroup_node *node)
{
    struct cgroup_observer *observer = &tree->observer;
    struct workload_owner owner = {0};
    enum cgroup_verdict verdict;
    char path[CGROUP_PATH_BYTES];

    if (!cgroup_node_path(node, path))
        return false;
    verdict = observer->find_owner(observer->owner_context, path, &owner);
    node->is_open = verdict == CGROUP_IS_PASSAGE || verdict == CGROUP_IS_HOLDER;
    if (verdict != CGROUP_IS_WORKLOAD && verdict != CGROUP_IS_HOLDER)
        return true;
    node->owner_hash = hash_owner(&owner);
    if (node->around && node->around->owner_hash == node->owner_hash)
        return true;
    node->is_workload = tree->workload_count < tree->workloads_max &&
                        observer->appeared(observer->context, node, &owner);
    tree->workload_count += node->is_workload;
    return node->is_workload;
}

static struct cgroup_node *add_node(struct cgroup_tree *tree, struct cgroup_node *parent,
                                    const char *name)
{
    struct cgroup_node *around = parent->is_workload ? parent : parent->around;
    struct cgroup_node *node =
        has_room_inside(around) ? cgroup_nodes_add(&tree->nodes, parent, name) : NULL;

    if (node) {
        node->around = around;
        node->update = tree->updates;
        if (judge(tree, node)) {
            for (; around; around = around->around)
                around->inner_count++;
            return node;
        }
        cgroup_nodes_remove(&tree->nodes, node);
    }
    tree->left_out++;
    return NULL;
}

static void list(struct cgroup_tree *tree, struct cgroup_node *node, size_t hierarchy);

static void join(struct cgroup_tree *tree, struct cgroup_node *node, size_t hierarchy,
                 uint64_t inode)
{
    node->inodes[hierarchy] = inode;
    node->is_leaving = false;
    if (node->is_workload) {
        try_watch_events(tree, node, hierarchy);
        tree->observer.joined(tree->observer.context, node);
    }
    if (!node->is_open)
        return;
    tree->unwatched_count++;
    list(tree, node, hierarchy);
}

static void replace(struct cgroup_tree *tree, struct cgroup_node *node)
{
    struct cgroup_node *parent = node->parent;
    char name[NAME_MAX + 1];

    snprintf(name, sizeof(name), "%s", node->name);
    leave_all(tree, node);
    node = add_node(tree, parent, name);
    for (size_t i = 0; node && i < tree->hierarchies->count; i++) {
        uint64_t inode = child_inode(tree, parent, name, i);

        if (inode != 0)
            join(tree, node, i, inode);
    }
}

/* What is there now by this name; 0: nothing. */
static void see(struct cgroup_tree *tree, struct cgroup_node *parent, const char *name,
                size_t hierarchy, uint64_t inode)
{
    struct cgroup_node *node = cgroup_nodes_find(&tree->nodes, parent, name);

    if (!node && inode == 0)
        return;
    if (!node) {
        node = add_node(tree, parent, name);
        if (node)
            join(tree, node, hierarchy, inode);
    } else if (inode == 0) {
        leave(tree, node, hierarchy);
    } else if (node->inodes[hierarchy] == 0) {
        join(tree, node, hierarchy, inode);
    } else if (node->inodes[hierarchy] != inode) {
        replace(tree, node);
    }
}

/* From here on: looking at directories. */

static void see_entry(struct cgroup_tree *tree, struct cgroup_node *parent, int dir_fd,
                      const struct dirent *entry, size_t hierarchy, uint64_t listing)
{
    struct cgroup_node *node;

    /* Names in cgroup file systems may begin with a dot, too. */
    if ((entry->d_type != DT_DIR && entry->d_type != DT_UNKNOWN) ||
        strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
        return;
    node = cgroup_nodes_find(&tree->nodes, parent, entry->d_name);
    /* Where the listing shows other inodes than stat does, as overlayfs may, stat decides. */
    if (!node || node->inodes[hierarchy] != entry->d_ino)
        see(tree, parent, entry->d_name, hierarchy, inode_at(dir_fd, entry->d_name));
    node = cgroup_nodes_find(&tree->nodes, parent, entry->d_name);
    if (node)
        node->listing = listing;
}

static void leave_unlisted(struct cgroup_tree *tree, struct cgroup_node *parent, size_t hierarchy,
                           uint64_t listing)
{
    struct cgroup_node *next;

    for (struct cgroup_node *child = parent->children; child; child = next) {
        next = child->next;
        if (child->listing != listing)
            leave(tree, child, hierarchy);
    }
}

/* Never removes the node itself: its parent's listing does. */
static void list(struct cgroup_tree *tree, struct cgroup_node *node, size_t hierarchy)
{
    int fd = cgroup_tree_open(tree, node, hierarchy);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    uint64_t listing = ++tree->listings;
    const struct dirent *entry;

    if (!dir) {
        cleanup_close(&fd);
        return;
    }
    try_watch(tree, node, hierarchy, fd);
    errno = 0;
    while ((entry = readdir(dir))) {
        see_entry(tree, node, fd, entry, hierarchy, listing);
        errno = 0;
    }
    if (errno == 0)
        leave_unlisted(tree, node, hierarchy, listing);
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
    for (size_t i = 0; i < tree->nodes.capacity; i++)
        for (size_t h = 0; h < tree->hierarchies->count; h++)
            if (must_list(tree, tree->nodes.items[i], h, only_unwatched))
                list(tree, tree->nodes.items[i], h);
}

static void take_event(void *context, const struct watch_event *event)
{
    struct cgroup_tree *tree = context;
    struct cgroup_node *node = find_watched(tree, event->number);
    size_t hierarchy;

    if (!node)
        return;
    if (event->number == node->events_watch) {
        if (!event->is_over)
            tree->observer.stirred(tree->observer.context, node);
    } else if (!find_hierarchy(tree, node, event->number, &hierarchy)) {
        return;
    } else if (event->is_over) {
        forget_watch(tree, node, hierarchy);
    } else if (event->name) {
        see(tree, node, event->name, hierarchy, child_inode(tree, node, event->name, hierarchy));
    }
}

void cgroup_tree_update(struct cgroup_tree *tree, bool rescan)
{
    tree->updates++;
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
    *tree = (struct cgroup_tree){
        .hierarchies = hierarchies, .observer = *observer, .events_watches_max = SIZE_MAX};
    cgroup_tree_set_caps(tree, CGROUP_WORKLOADS_MAX, SIZE_MAX);
    watch_init(&tree->watch);
    tree->root = cgroup_nodes_add(&tree->nodes, NULL, "");
    if (!tree->root) {
        cgroup_tree_done(tree);
        return -ENOMEM;
    }
    tree->root->is_open = true;
    for (size_t i = 0; i < hierarchies->count; i++)
        tree->root->inodes[i] = 1; /* it does not go */
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
