#include "sources/drm/clients.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/fs.h"
#include "core/macros.h"

/* What was seen so long ago tells nothing of now. */
static const uint64_t STALE_US = 3 * USEC_PER_SEC;

enum {
    CLIENTS_MAX = 16384,
    UNUSED_MAX = 256, /* clients of a process that have never worked: more are not kept */
    FDINFO_BYTES = 8192,
};

/* Who has a client last may be found only when all of them are searched: until then its counts are
 * kept. */
static const uint64_t MISSING_US = 15 * USEC_PER_SEC;

struct client {
    struct table_entry entry;
    char pci[SAMPLE_PCI_BYTES];
    uint64_t id;
    struct drm_place at; /* where it is read: the youngest process that was seen with it at first */
    struct drm_place heir; /* another one with a copy, which is left with it; pid 0: none */
    uint64_t round;        /* of the last look that found it */
    uint64_t read_us;      /* when that was */
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

void drm_clients_init(struct drm_clients *clients, struct drm_files *files)
{
    *clients = (struct drm_clients){.files = files};
}

void drm_clients_add_card(struct drm_clients *clients, const char *pci)
{
    if (clients->card_count < DRM_DIES_MAX)
        clients->cards[clients->card_count++] = pci;
}

void drm_clients_done(struct drm_clients *clients)
{
    table_done(&clients->clients);
    free(clients->taken.places);
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

/* Reads a descriptor. False: it is no client of the card. */
static bool read_client(const struct drm_clients *clients, const struct drm_place *place,
                        struct drm_client *ret_client)
{
    char path[DRM_PLACE_BYTES], what[DRM_PLACE_BYTES / 2], text[FDINFO_BYTES];
    size_t len;

    snprintf(what, sizeof(what), "fdinfo/%u", place->fd);
    drm_place_path(place, what, path);
    if (fs_read_at(clients->files->host->procfs_fd, path, text, sizeof(text), &len) < 0 ||
        drm_fdinfo_parse((struct span){text, len}, ret_client) < 0 ||
        ret_client->driver == DRM_OTHER || !ret_client->has_id)
        return false;
    for (size_t i = 0; i < clients->card_count; i++)
        if (strcmp(ret_client->pdev, clients->cards[i]) == 0)
            return true;
    return false;
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

static void take_client(struct drm_clients *clients, const struct drm_place *place,
                        const struct drm_client *read, uint64_t mono_us)
{
    const struct client_key key = {read->pdev, read->id};
    uint64_t hash = hash_of(&key);
    struct client *client = table_find(&clients->clients, hash, has_key, &key);
    bool is_new = false;

    if (client && client->round == clients->round) {
        if (place->pid != client->at.pid)
            client->heir = *place;
        return;
    }
    if (!client) {
        clients->is_crowded |= clients->clients.count == CLIENTS_MAX;
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

/* False: it is not there. Another one may be, which was opened since. */
static bool reread_at(struct drm_clients *clients, const struct client_key *key,
                      struct drm_place place, bool was_there, uint64_t mono_us)
{
    struct drm_client read;
    bool is_client = read_client(clients, &place, &read), is_same;

    is_same = is_client && read.id == key->id && strcmp(read.pdev, key->pci) == 0;
    if (is_client)
        take_client(clients, &place, &read, mono_us);
    if (!is_same && was_there)
        drm_files_suspect(clients->files, place.pid);
    return is_same;
}

/* Reads the known clients again, where they were. */
static void reread(struct drm_clients *clients, uint64_t mono_us)
{
    size_t count = clients->clients.count;

    for (size_t i = 0; i < MIN(count, clients->clients.count); i++) {
        const struct client *client = clients->clients.items[i];
        struct drm_place heir = client->heir;
        bool was_there = client->round + 1 >= clients->round;
        char pci[SAMPLE_PCI_BYTES];
        struct client_key key = {pci, client->id};

        memcpy(pci, client->pci, sizeof(pci)); /* another one may take its room */
        if (!reread_at(clients, &key, client->at, was_there, mono_us) && heir.pid > 0)
            (void)reread_at(clients, &key, heir, was_there, mono_us);
    }
}

/* Reads those that were found since. */
static void read_new(struct drm_clients *clients, uint64_t mono_us)
{
    const struct drm_files_taken *taken = &clients->taken;
    uint32_t pid = 0;
    size_t unused = 0;

    for (size_t i = 0; i < taken->count; i++) {
        const struct drm_place *place = &taken->places[i];
        struct drm_client read;

        if (place->pid != pid)
            unused = 0;
        pid = place->pid;
        if (!read_client(clients, place, &read))
            continue;
        unused += !has_worked(read.engines, read.engine_count);
        if (unused <= UNUSED_MAX || has_worked(read.engines, read.engine_count))
            take_client(clients, place, &read, mono_us);
        else
            clients->is_crowded = true;
    }
}

static void forget_missing(struct drm_clients *clients, uint64_t mono_us)
{
    for (size_t i = clients->clients.count; i-- > 0;) {
        struct client *client = clients->clients.items[i];

        if (client->round != clients->round && client->read_us + MISSING_US < mono_us)
            table_remove(&clients->clients, client);
    }
}

void drm_clients_look(struct drm_clients *clients, uint64_t interval_us, uint64_t mono_us)
{
    if (clients->round > 0 && mono_us < clients->look_us + interval_us)
        return;
    clients->look_us = mono_us;
    clients->round++;
    clients->hand = 0;
    reread(clients, mono_us);
    drm_files_search(clients->files, mono_us);
    drm_files_take(clients->files, clients->cards, clients->card_count, &clients->taken);
    if (clients->taken.is_whole)
        clients->is_crowded = clients->is_blind = false;
    read_new(clients, mono_us);
    clients->complete_us = clients->is_blind ? 0 : clients->taken.complete_us;
    forget_missing(clients, mono_us);
}

void drm_clients_visit(struct drm_clients *clients, const char *pci, drm_visit *visit,
                       void *context)
{
    for (size_t i = 0; i < clients->clients.count; i++) {
        struct client *client = clients->clients.items[i];
        uint64_t busy_us = (uint64_t)client->busy_us;
        bool is_present = client->round == clients->round;

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

bool drm_clients_are_partial(const struct drm_clients *clients, uint64_t mono_us)
{
    const struct drm_files_taken *taken = &clients->taken;

    return clients->is_crowded || taken->is_partial || taken->searched_us == 0 ||
           mono_us > taken->searched_us + STALE_US;
}

bool drm_clients_are_untimed(const struct drm_clients *clients)
{
    for (size_t i = 0; i < clients->clients.count; i++) {
        const struct client *client = clients->clients.items[i];

        if (client->is_untimed)
            return true;
    }
    return false;
}
