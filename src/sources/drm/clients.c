#include "sources/drm/clients.h"

#include <errno.h>
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

/* What was seen so long ago tells nothing of now. */
static const uint64_t STALE_US = 3 * USEC_PER_SEC;

/* For the thread of another card, which is looking. */
enum { WAIT_NS = 20000000, NSEC_PER_SEC = 1000000000 };

enum {
    CLIENTS_MAX = 16384,
    UNUSED_MAX = 256, /* clients of a process that have never worked: more are not kept */
    FDINFO_BYTES = 8192,
    PATH_BYTES = 64,
};

/* Processes that are new, have opened files or closed a card are searched at the end of each window
 * of a second, and all of them every so often: one file may have been closed for another. */
static const uint64_t NEW_US = 9 * USEC_PER_SEC / 10, ALL_US = 10 * USEC_PER_SEC;

/* Who has a client last may be found only when all of them are searched: until then its counts are
 * kept. */
static const uint64_t MISSING_US = 15 * USEC_PER_SEC;

/* A descriptor. */
struct place {
    uint32_t pid;
    uint32_t thread; /* by which it is found, if it is not by that of the process; else 0 */
    uint32_t fd;
};

struct client {
    struct table_entry entry;
    char pci[SAMPLE_PCI_BYTES];
    uint64_t id;
    struct place at;   /* where it is read: the youngest process that was seen with it at first */
    struct place heir; /* another one with a copy, which is left with it; pid 0: none */
    uint64_t round;    /* of the last look that found it */
    uint64_t read_us;  /* when that was */
    struct drm_engine engines[DRM_ENGINES_MAX]; /* the most that each has shown */
    size_t engine_count;
    uint64_t counted_us; /* when they were read; 0: never */
    uint64_t since_us;   /* what they show now was done since then */
    double share;        /* of the time between the last two counts */
    double assumed_us;   /* of what was not counted since */
    double busy_us;      /* since it was last visited */
    bool is_untimed;
    bool has_memory;
    uint64_t memory_bytes;
};

struct client_key {
    const char *pci;
    uint64_t id;
};

static bool has_key(const void *entry, const void *key)
{
    const struct client *client = entry;
    const struct client_key *wanted = key;

    return client->id == wanted->id && strcmp(client->pci, wanted->pci) == 0;
}

static uint64_t hash_of(const struct client_key *key)
{
    return map_hash_u64(map_hash_bytes(span_of(key->pci)) + key->id);
}

void drm_clients_init(struct drm_clients *clients, const struct host *host)
{
    *clients = (struct drm_clients){.host = host};
    pthread_mutex_init(&clients->looking, NULL);
    pthread_mutex_init(&clients->lock, NULL);
}

void drm_clients_done(struct drm_clients *clients)
{
    table_done(&clients->clients);
    free(clients->searched);
    pthread_mutex_destroy(&clients->lock);
    pthread_mutex_destroy(&clients->looking);
}

static struct drm_engine *find_engine(struct client *client, const char *name)
{
    for (size_t i = 0; i < client->engine_count; i++)
        if (strcmp(client->engines[i].name, name) == 0)
            return &client->engines[i];
    return NULL;
}

/* How long an engine has worked since it was last read. Counts may go back for a while: then it has
 * not worked until they are past where they were. */
static double engine_us(const struct client *client, struct drm_engine *last,
                        const struct drm_engine *now, uint64_t mono_us)
{
    double most_us = (double)(mono_us - MIN(mono_us, client->since_us)) * now->capacity;
    double busy_us = 0;

    if (now->has_time && last->has_time && now->busy_ns > last->busy_ns)
        busy_us = (double)(now->busy_ns - last->busy_ns) / 1e3;
    else if (now->has_cycles && last->has_cycles && now->cycles > last->cycles &&
             now->total_cycles > last->total_cycles)
        busy_us = (double)(mono_us - MIN(mono_us, client->counted_us)) *
                  (double)(now->cycles - last->cycles) /
                  (double)(now->total_cycles - last->total_cycles);
    last->has_time |= now->has_time;
    last->has_cycles |= now->has_cycles;
    last->busy_ns = MAX(last->busy_ns, now->busy_ns);
    last->cycles = MAX(last->cycles, now->cycles);
    last->total_cycles = now->total_cycles; /* the GPU's own clock, which a deep sleep resets */
    return MIN(busy_us, most_us) / now->capacity;
}

/* An engine that the client has not shown yet: it may be missing before its first use. True: what
 * it shows was done since the last look. Cycles that a new client shows are told by the next one,
 * which knows how fast they pass. */
static bool add_engine(struct client *client, const struct drm_engine *now, bool is_known,
                       bool is_new)
{
    struct drm_engine *engine;

    if (client->engine_count == DRM_ENGINES_MAX)
        return false;
    engine = &client->engines[client->engine_count++];
    *engine = *now;
    if (is_known)
        engine->busy_ns = 0;
    if (is_new)
        engine->cycles = 0;
    return is_known && now->has_time;
}

/* xe leaves the counts out when it cannot wake the GPU: then it is taken to work on as it did. */
static void assume_work(struct client *client, uint64_t mono_us)
{
    double assumed_us = client->share * (double)(mono_us - MIN(mono_us, client->read_us));

    if (mono_us > client->counted_us + STALE_US)
        return;
    client->assumed_us += assumed_us;
    client->busy_us += assumed_us;
}

/* The client was as busy as the busiest of its engines. */
static void take_engines(struct client *client, const struct drm_client *read, bool is_new,
                         uint64_t mono_us)
{
    double elapsed_us = (double)(mono_us - MIN(mono_us, client->counted_us)), busiest_us = 0;
    bool is_known = client->counted_us > 0, has_cycles = false;

    if (read->engine_count == 0 && client->engine_count > 0) {
        assume_work(client, mono_us);
        return;
    }
    for (size_t i = 0; i < read->engine_count; i++) {
        const struct drm_engine *now = &read->engines[i];
        struct drm_engine *last = find_engine(client, now->name);

        has_cycles |= now->has_cycles;
        if (!last && !add_engine(client, now, is_known, is_new))
            continue;
        last = last ? last : &client->engines[client->engine_count - 1];
        busiest_us = MAX(busiest_us, engine_us(client, last, now, mono_us));
    }
    client->share = elapsed_us > 0 && is_known ? MIN(busiest_us / elapsed_us, 1.0) : 0;
    client->busy_us += MAX(busiest_us - client->assumed_us, 0);
    client->assumed_us = 0;
    client->counted_us = mono_us;
    if (!is_new || !has_cycles)
        client->since_us = mono_us;
}

/* "12/fd", "12/task/13/fdinfo/4". */
static void place_path(const struct place *place, const char *what, char path[PATH_BYTES])
{
    if (place->thread > 0)
        snprintf(path, PATH_BYTES, "%u/task/%u/%s", place->pid, place->thread, what);
    else
        snprintf(path, PATH_BYTES, "%u/%s", place->pid, what);
}

/* Reads a descriptor. False: it is no client of a card. */
static bool read_client(const struct host *host, const struct place *place,
                        struct drm_client *ret_client)
{
    char path[PATH_BYTES], what[PATH_BYTES / 2], text[FDINFO_BYTES];
    size_t len;

    snprintf(what, sizeof(what), "fdinfo/%u", place->fd);
    place_path(place, what, path);
    return fs_read_at(host->procfs_fd, path, text, sizeof(text), &len) == 0 &&
           drm_fdinfo_parse((struct span){text, len}, ret_client) == 0 &&
           ret_client->driver != DRM_OTHER && ret_client->pdev[0] != '\0' && ret_client->has_id;
}

static bool has_worked(const struct drm_engine *engines, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (engines[i].busy_ns > 0 || engines[i].cycles > 0)
            return true;
    return false;
}

/* Has it counted less than it did? */
static bool is_lower(const struct client *client, const struct drm_client *read)
{
    bool is_any = false;

    for (size_t i = 0; i < client->engine_count; i++)
        for (size_t k = 0; k < read->engine_count; k++) {
            const struct drm_engine *last = &client->engines[i], *now = &read->engines[k];

            if (strcmp(last->name, now->name) != 0)
                continue;
            if (now->busy_ns > last->busy_ns || now->cycles > last->cycles)
                return false;
            is_any |= now->busy_ns < last->busy_ns || now->cycles < last->cycles;
        }
    return is_any;
}

/* Whoever opens cards without end to hide others crowds out only clients that have done nothing. */
static bool make_room(struct drm_clients *clients)
{
    while (clients->clients.count == CLIENTS_MAX && clients->hand < CLIENTS_MAX) {
        struct client *client = clients->clients.items[clients->hand];

        if (has_worked(client->engines, client->engine_count))
            clients->hand++;
        else
            table_remove(&clients->clients, client);
    }
    return clients->clients.count < CLIENTS_MAX;
}

static void take_client(struct drm_clients *clients, const struct place *place,
                        const struct drm_client *read, uint64_t mono_us)
{
    const struct client_key key = {read->pdev, read->id};
    uint64_t hash = hash_of(&key);
    HOLD_LOCK(&clients->lock);
    struct client *client = table_find(&clients->clients, hash, has_key, &key);
    bool is_new = false;

    if (client && client->round == clients->round) {
        if (place->pid != client->at.pid)
            client->heir = *place;
        return;
    }
    if (!client) {
        clients->is_partial |= clients->clients.count == CLIENTS_MAX;
        if (!make_room(clients) ||
            !(client = table_add(&clients->clients, hash, sizeof(*client)))) {
            clients->is_blind = true;
            return;
        }
        memcpy(client->pci, read->pdev, sizeof(client->pci));
        client->id = read->id;
        /* It was not there when all were searched: all that it shows was done since. */
        client->counted_us = client->since_us = clients->complete_us;
        is_new = clients->complete_us > 0;
    }
    /* It was gone for a while, or is elsewhere, and began anew: the id was used again. */
    if ((place->pid != client->at.pid || client->round + 1 < clients->round) &&
        is_lower(client, read)) {
        client->engine_count = 0;
        client->counted_us = 0;
    }
    client->at = *place;
    client->round = clients->round;
    client->is_untimed = read->is_untimed;
    client->has_memory = read->has_memory;
    client->memory_bytes = read->memory_bytes;
    take_engines(client, read, is_new, mono_us);
    client->read_us = mono_us;
}

static int by_pid(const void *a, const void *b)
{
    const struct drm_searched *x = a, *y = b;

    return (x->pid > y->pid) - (x->pid < y->pid);
}

/* NULL: it was not there. */
static struct drm_searched *find_searched(const struct drm_clients *clients, uint32_t pid)
{
    return clients->searched_count > 0
               ? bsearch(&(struct drm_searched){.pid = pid}, clients->searched,
                         clients->searched_count, sizeof(*clients->searched), by_pid)
               : NULL;
}

/* False: it is not there. Another one may be, which was opened since. */
static bool reread_at(struct drm_clients *clients, const struct client_key *key, struct place place,
                      bool was_there, uint64_t mono_us)
{
    struct drm_searched *searched;
    struct drm_client read;
    bool is_client = read_client(clients->host, &place, &read), is_same;

    is_same = is_client && read.id == key->id && strcmp(read.pdev, key->pci) == 0;
    if (is_client)
        take_client(clients, &place, &read, mono_us);
    searched = is_same || !was_there ? NULL : find_searched(clients, place.pid);
    if (searched)
        searched->has_changed = true;
    return is_same;
}

/* Reads the known clients again, where they were. */
static void reread(struct drm_clients *clients, uint64_t mono_us)
{
    size_t count = clients->clients.count;

    for (size_t i = 0; i < MIN(count, clients->clients.count); i++) {
        const struct client *client = clients->clients.items[i];
        struct place heir = client->heir;
        bool was_there = client->round + 1 >= clients->round;
        char pci[SAMPLE_PCI_BYTES];
        struct client_key key = {pci, client->id};

        memcpy(pci, client->pci, sizeof(pci)); /* another one may take its room */
        if (!reread_at(clients, &key, client->at, was_there, mono_us) && heir.pid > 0)
            (void)reread_at(clients, &key, heir, was_there, mono_us);
    }
}

static bool is_forbidden(int error)
{
    return error == EACCES || error == EPERM;
}

/* Most descriptors need not be read: sockets and pipes have no path, and nobody can make a card's
 * node at these. At any other path a tenant can, and would hide there. */
static bool may_be_card(struct drm_clients *clients, int directory_fd, const char *name)
{
    static const char *const others[] = {"/dev/null", "/dev/urandom"};
    char target[16];
    ssize_t n = readlinkat(directory_fd, name, target, sizeof(target));

    if (n < 0 && is_forbidden(errno))
        clients->is_partial = clients->is_blind = true;
    for (size_t i = 0; i < ARRAY_SIZE(others); i++)
        if (n == (ssize_t)strlen(others[i]) && memcmp(target, others[i], (size_t)n) == 0)
            return false;
    return n > 0 && target[0] == '/';
}

/* The descriptors of a process, or of one of its threads. False: there are none, as of one that has
 * exited. */
static bool search_table(struct drm_clients *clients, struct place place, uint64_t mono_us)
{
    char path[PATH_BYTES];
    const struct dirent *entry;
    size_t unused = 0;
    bool is_empty;
    DIR *directory;

    place_path(&place, "fd", path);
    directory = fs_open_dir(clients->host->procfs_fd, path);
    if (!directory && is_forbidden(errno))
        clients->is_partial = clients->is_blind = true;
    is_empty = directory;
    while (directory && (entry = readdir(directory))) {
        struct drm_client read;
        uint64_t fd;

        if (parse_u64_max(span_of(entry->d_name), UINT32_MAX, &fd) < 0)
            continue;
        is_empty = false;
        place.fd = (uint32_t)fd;
        if (!may_be_card(clients, dirfd(directory), entry->d_name) ||
            !read_client(clients->host, &place, &read))
            continue;
        unused += !has_worked(read.engines, read.engine_count);
        if (unused <= UNUSED_MAX || has_worked(read.engines, read.engine_count))
            take_client(clients, &place, &read, mono_us);
        else
            clients->is_partial = true;
    }
    if (directory)
        closedir(directory);
    return !is_empty;
}

/* If its first thread has exited, the others still have its descriptors. */
static void search_process(struct drm_clients *clients, uint32_t pid, uint64_t mono_us)
{
    struct place place = {.pid = pid};
    const struct dirent *entry;
    char path[PATH_BYTES];
    DIR *directory;
    uint64_t thread;

    if (search_table(clients, place, mono_us))
        return;
    place_path(&place, "task", path);
    directory = fs_open_dir(clients->host->procfs_fd, path);
    while (directory && (entry = readdir(directory))) {
        if (parse_u64_max(span_of(entry->d_name), INT32_MAX, &thread) < 0 || thread == pid)
            continue;
        place.thread = (uint32_t)thread;
        if (search_table(clients, place, mono_us))
            break;
    }
    if (directory)
        closedir(directory);
}

/* How many descriptors a process has open: the kernel's size of their directory. */
static uint64_t count_fds(const struct host *host, uint32_t pid)
{
    char path[PATH_BYTES];
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
                (struct drm_searched){(uint32_t)pid, count_fds(host, (uint32_t)pid), false};
    closedir(directory);
    if (count > 0)
        qsort(processes, count, sizeof(*processes), by_pid);
    *ret_processes = TAKE_PTR(processes);
    *ret_count = count;
    return 0;
}

static void search(struct drm_clients *clients, bool all, uint64_t mono_us)
{
    struct drm_searched *processes = NULL;
    const struct drm_searched *last;
    size_t count = 0;

    if (list_processes(clients->host, &processes, &count) < 0)
        return;
    if (all)
        clients->is_partial = clients->is_blind = false;
    /* The youngest first: what opens cards for others, as logind does for a desktop, is older. */
    for (size_t i = count; i-- > 0;) {
        last = find_searched(clients, processes[i].pid);
        if (all || !last || last->has_changed || last->fd_count != processes[i].fd_count)
            search_process(clients, processes[i].pid, mono_us);
    }
    if (all)
        clients->complete_us = clients->is_blind ? 0 : mono_us;
    free(clients->searched);
    clients->searched = processes;
    clients->searched_count = count;
}

static void finish_look(struct drm_clients *clients, uint64_t mono_us)
{
    HOLD_LOCK(&clients->lock);

    clients->shown = clients->round;
    clients->shown_us = mono_us;
    clients->shown_partial = clients->is_partial;
    for (size_t i = clients->clients.count; i-- > 0;) {
        struct client *client = clients->clients.items[i];

        if (client->round != clients->round && client->read_us + MISSING_US < mono_us)
            table_remove(&clients->clients, client);
    }
}

/* With the lock held. */
static void look(struct drm_clients *clients, uint64_t interval_us, uint64_t mono_us)
{
    bool all = mono_us >= clients->search_all_us;

    if (clients->round > 0 && mono_us < clients->look_us + interval_us)
        return;
    clients->look_us = mono_us;
    clients->round++;
    clients->hand = 0;
    reread(clients, mono_us);
    if (all || mono_us >= clients->search_us) {
        search(clients, all, mono_us);
        clients->search_us = mono_us + NEW_US;
        clients->search_all_us = all ? mono_us + ALL_US : clients->search_all_us;
    }
    finish_look(clients, mono_us);
}

void drm_clients_look(struct drm_clients *clients, uint64_t interval_us, uint64_t mono_us)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += WAIT_NS;
    until.tv_sec += until.tv_nsec / NSEC_PER_SEC;
    until.tv_nsec %= NSEC_PER_SEC;
    if (pthread_mutex_clocklock(&clients->looking, CLOCK_MONOTONIC, &until) != 0)
        return;
    look(clients, interval_us, mono_us);
    pthread_mutex_unlock(&clients->looking);
}

void drm_clients_visit(struct drm_clients *clients, const char *pci, drm_visit *visit,
                       void *context)
{
    HOLD_LOCK(&clients->lock);

    for (size_t i = 0; i < clients->clients.count; i++) {
        struct client *client = clients->clients.items[i];
        uint64_t busy_us = (uint64_t)client->busy_us;
        bool is_present = client->round >= clients->shown;

        if (strcmp(client->pci, pci) != 0 || (!is_present && busy_us == 0))
            continue;
        client->busy_us -= (double)busy_us;
        visit(context, &(struct drm_use){.pid = client->at.pid,
                                         .is_present = is_present,
                                         .is_untimed = client->is_untimed,
                                         .busy_us = busy_us,
                                         .has_memory = client->has_memory,
                                         .memory_bytes = client->memory_bytes});
    }
}

bool drm_clients_are_partial(struct drm_clients *clients, uint64_t mono_us)
{
    HOLD_LOCK(&clients->lock);

    return clients->shown_partial || clients->shown == 0 || mono_us > clients->shown_us + STALE_US;
}
