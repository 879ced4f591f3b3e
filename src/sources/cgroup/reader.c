#include "sources/cgroup/reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "core/array.h"
#include "core/fs.h"
#include "core/macros.h"

enum {
    FILES_FOR_OTHERS = 1024,
    FILES_USUAL_MAX = 1024,
    ENDED_MAX = 4096, /* that wait to be reported; more find no room until then */
    /* Watches are counted by user, and root's are not only ours. */
    WATCHES_SHARE = 8,
    WATCHES_USUAL_MAX = 8192,
};

/* Drops ended workloads: all of them, or those that came and went between two cycles. */
static void drop_ended(struct cgroup_reader *reader, bool only_unread)
{
    size_t kept = 0;

    for (size_t i = 0; i < reader->count; i++) {
        const struct cgroup_workload *workload = &reader->workloads[i];
        struct cgroup_node *node = cgroup_nodes_get(&reader->tree.nodes, workload->node);

        if (reader->items[i].ended && !(only_unread && workload->is_read)) {
            usage_done(&reader->items[i].usage);
            usage_done(&reader->items[i].before);
            continue;
        }
        if (node)
            node->workload = (uint32_t)kept;
        if (kept != i) {
            reader->items[kept] = reader->items[i];
            reader->workloads[kept] = *workload;
        }
        kept++;
    }
    reader->count = kept;
}

static uint32_t find_index(const struct cgroup_reader *reader, uint64_t id)
{
    size_t low = 0, high = reader->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (reader->items[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < reader->count && reader->items[low].id == id ? (uint32_t)low : USAGE_AROUND_NONE;
}

static uint32_t find_around(const struct cgroup_reader *reader,
                            const struct cgroup_workload *workload)
{
    const struct cgroup_nodes *nodes = &reader->tree.nodes;
    const struct cgroup_node *node = cgroup_nodes_get(nodes, workload->node), *around;

    if (!node)
        return find_index(reader, workload->around_id);
    around = cgroup_nodes_find_around(nodes, node);
    return around ? around->workload : USAGE_AROUND_NONE;
}

void cgroup_reader_read(struct cgroup_reader *reader, bool rescan)
{
    rescan |= reader->turn == 0;
    reader->turn += rescan;
    reader->files_failed = reader->unkept = 0;
    cgroup_tree_update(&reader->tree, rescan);
    drop_ended(reader, true);
    for (size_t i = 0; i < reader->count; i++)
        cgroup_workload_read(reader, i, rescan);
    for (size_t i = 0; i < reader->count; i++)
        reader->items[i].around = find_around(reader, &reader->workloads[i]);
    reader->is_started = true;
}

void cgroup_reader_set_reported(struct cgroup_reader *reader)
{
    for (size_t i = 0; i < reader->count; i++) {
        (void)usage_copy_counters(&reader->items[i].before, &reader->items[i].usage);
        reader->items[i].is_older |= !reader->has_reported;
    }
    reader->has_reported = true;
    drop_ended(reader, false);
}

/* From here on: between two cycles. */

/* Times are multiples of the first, so that one wake-up serves all; a cycle comes as soon as the
 * second. */
#define RECENT_STEP_US     (USEC_PER_SEC / 20)
#define RECENT_STEP_MAX_US (5 * USEC_PER_SEC)

/* Where the kernel reports the end, only a race with the removal can be lost: fewer reads do. */
enum { RECENT_PARTS = 8, RECENT_PARTS_REPORTED = 2 };

void recents_add(struct recents *recents, uint64_t id)
{
    if (recents->count == RECENT_MAX)
        return;
    memset(&recents->items[recents->count], 0, sizeof(recents->items[0]));
    recents->items[recents->count++].id = id;
}

void recents_remove(struct recents *recents, uint64_t id)
{
    for (size_t i = 0; i < recents->count; i++)
        if (recents->items[i].id == id) {
            recents->items[i] = recents->items[--recents->count];
            return;
        }
}

uint64_t recents_read(struct recents *recents, uint64_t now_us,
                      bool (*read)(void *context, uint64_t id), void *context)
{
    uint64_t next_us = CGROUP_READER_NEVER;

    for (size_t i = recents->count; i-- > 0;) {
        uint64_t *born_us = &recents->items[i].born_us, *due_us = &recents->items[i].due_us;

        if (*due_us <= now_us) {
            bool is_reported = read(context, recents->items[i].id);
            uint64_t step_us;

            if (*born_us == 0)
                *born_us = now_us;
            step_us = (now_us - MIN(*born_us, now_us)) /
                      (is_reported ? RECENT_PARTS_REPORTED : RECENT_PARTS);
            if (step_us >= RECENT_STEP_MAX_US) {
                recents->items[i] = recents->items[--recents->count];
                continue;
            }
            *due_us = (now_us + MAX(step_us, RECENT_STEP_US)) / RECENT_STEP_US * RECENT_STEP_US;
        }
        next_us = MIN(next_us, *due_us);
    }
    return next_us;
}

static bool read_recent(void *context, uint64_t id)
{
    struct cgroup_reader *reader = context;
    uint32_t index = find_index(reader, id);
    const struct cgroup_node *node;

    if (index == USAGE_AROUND_NONE)
        return true;
    cgroup_workload_read(reader, index, false);
    node = cgroup_nodes_get(&reader->tree.nodes, reader->workloads[index].node);
    return node && node->watches[CGROUP_EVENTS_WATCH] != CGROUP_UNWATCHED;
}

uint64_t cgroup_reader_attend(struct cgroup_reader *reader, uint64_t now_us)
{
    uint64_t next_us;

    if (!reader->is_started)
        return CGROUP_READER_NEVER;
    reader->is_attending = true;
    cgroup_tree_attend(&reader->tree);
    next_us = recents_read(&reader->recents, now_us, read_recent, reader);
    reader->is_attending = false;
    return next_us;
}

/* From here on: the tree's observer. */

static bool workload_appeared(void *context, struct cgroup_node *node,
                              const struct workload_owner *owner)
{
    struct cgroup_reader *reader = context;
    size_t capacity = reader->capacity;
    struct cgroup_workload *workload;

    if (reader->count >= reader->tree.workloads_max + ENDED_MAX ||
        !scopes_have_room(&reader->scopes, owner->id) ||
        !array_reserve(&reader->items, &capacity, reader->count, sizeof(*reader->items)) ||
        !array_reserve(&reader->workloads, &reader->capacity, reader->count,
                       sizeof(*reader->workloads)) ||
        scopes_add(&reader->scopes, owner->id) < 0)
        return false;
    node->workload = (uint32_t)reader->count;
    workload = &reader->workloads[reader->count];
    *workload = (struct cgroup_workload){.node = node->self,
                                         .first_turn = reader->turn,
                                         .must_open = true,
                                         .limits = CGROUP_NO_LIMITS,
                                         .is_late = reader->is_started};
    memset(workload->fds, -1, sizeof(workload->fds));
    reader->items[reader->count++] = (struct usage_owner){.owner = *owner,
                                                          .id = ++reader->last_id,
                                                          .is_older = node->is_older,
                                                          .around = USAGE_AROUND_NONE};
    if (reader->is_started)
        recents_add(&reader->recents, reader->last_id);
    return true;
}

static void workload_joined(void *context, struct cgroup_node *node)
{
    struct cgroup_reader *reader = context;

    reader->workloads[node->workload].must_open = true;
}

/* A cycle reads all of them anyway. */
static void workload_changed(void *context, struct cgroup_node *node)
{
    struct cgroup_reader *reader = context;

    if (reader->is_attending)
        cgroup_workload_read(reader, node->workload, false);
}

static void workload_ended(void *context, struct cgroup_node *node)
{
    struct cgroup_reader *reader = context;
    const struct cgroup_node *around = cgroup_nodes_find_around(&reader->tree.nodes, node);
    struct cgroup_workload *workload = &reader->workloads[node->workload];
    struct usage_owner *item = &reader->items[node->workload];

    cgroup_workload_close(reader, workload);
    recents_remove(&reader->recents, item->id);
    scopes_remove(&reader->scopes, item->owner.id);
    workload->around_id = around ? reader->items[around->workload].id : 0;
    item->ended = true;
}

/* From here on: the reader as a whole. */

static size_t find_files_max(void)
{
    struct rlimit limit;
    size_t files = FILES_USUAL_MAX;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) /* a system call filter may forbid it */
        files = (size_t)limit.rlim_cur;
    return MAX(files / 2, files > FILES_FOR_OTHERS ? files - FILES_FOR_OTHERS : 0);
}

static size_t find_watches_max(const struct host *host)
{
    uint64_t watches;
    char text[32];
    size_t len;

    if (fs_read_at(host->procfs_fd, "sys/fs/inotify/max_user_watches", text, sizeof(text), &len) <
            0 ||
        cgroup_parse_number((struct span){text, len}, &watches) < 0)
        watches = WATCHES_USUAL_MAX;
    return (size_t)watches / WATCHES_SHARE;
}

int cgroup_reader_new(const struct host *host, cgroup_find_owner *find_owner,
                      struct cgroup_reader **ret_reader)
{
    struct cgroup_reader *reader = calloc(1, sizeof(*reader));
    const struct cgroup_observer observer = {.find_owner = find_owner,
                                             .appeared = workload_appeared,
                                             .joined = workload_joined,
                                             .changed = workload_changed,
                                             .ended = workload_ended,
                                             .context = reader};
    int r;

    if (!reader)
        return -ENOMEM;
    r = hierarchies_open(host, &reader->hierarchies);
    if (r == 0)
        r = cgroup_tree_init(&reader->tree, &reader->hierarchies, &observer);
    if (r < 0) {
        hierarchies_close(&reader->hierarchies);
        free(reader);
        return r;
    }
    reader->scopes.workloads_max = reader->tree.workloads_max;
    cgroup_files_choose(&reader->hierarchies, host, &reader->files);
    reader->kept_files_max = find_files_max();
    reader->tree.events_watches_max = find_watches_max(host);
    *ret_reader = reader;
    return 0;
}

void cgroup_reader_free(struct cgroup_reader *reader)
{
    if (!reader)
        return;
    for (size_t i = 0; i < reader->count; i++) {
        cgroup_workload_close(reader, &reader->workloads[i]);
        usage_done(&reader->items[i].usage);
        usage_done(&reader->items[i].before);
    }
    cgroup_tree_done(&reader->tree);
    scopes_done(&reader->scopes);
    hierarchies_close(&reader->hierarchies);
    free(reader->items);
    free(reader->workloads);
    free(reader);
}
