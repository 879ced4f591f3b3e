#include "identity/runtimes/runtime_poller.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/lock.h"
#include "core/macros.h"

/* One call, its connection included. containerd was seen to take more than 3 s for a list while it
 * started 15 pods; the ledger holds a row back for 15 s. */
static const uint64_t LIST_TIMEOUT_US = 10 * USEC_PER_SEC, INSPECT_TIMEOUT_US = 3 * USEC_PER_SEC;

/* Between polls; doubled while the runtime fails. */
static const uint64_t PAUSE_MIN_US = USEC_PER_SEC, PAUSE_MAX_US = 60 * USEC_PER_SEC;

/* A runtime whose socket is gone for less than this is restarting: its names are still expected. */
static const uint64_t RESTART_US = 60 * USEC_PER_SEC;

struct runtime_poller {
    struct runtime_poller_options options;
    char *socket_path;
    struct http_client *client; /* NULL before the thread starts */
    pthread_t thread;
    bool started;
    bool ended_are_many; /* of the thread */
    atomic_bool stop;

    pthread_mutex_t lock; /* for what is below */
    ino_t unsuitable;     /* the socket that turned out to be something else; 0: none */
    bool present;
    uint64_t seen_us; /* when it was last present; 0: never */
    bool list_wanted; /* for attachments */
    struct identity_status status;
};

int runtime_poller_new(const struct runtime_poller_options *options,
                       struct runtime_poller **ret_poller)
{
    struct runtime_poller *poller = calloc(1, sizeof(*poller));

    if (!poller)
        return -ENOMEM;
    poller->options = *options;
    pthread_mutex_init(&poller->lock, NULL);
    snprintf(poller->status.name, sizeof(poller->status.name), "%s", options->name);
    poller->socket_path = strdup(options->socket_path);
    if (!poller->socket_path) {
        runtime_poller_free(poller);
        return -ENOMEM;
    }
    *ret_poller = poller;
    return 0;
}

static uint64_t now_us(const struct runtime_poller *poller)
{
    return poller->options.clock->monotonic_us(poller->options.clock);
}

static struct runtime_call call_of(const struct runtime_poller *poller, uint64_t timeout_us)
{
    return (struct runtime_call){poller->options.runtime, poller->client, poller->socket_path,
                                 timeout_us};
}

static ino_t socket_inode(const struct runtime_poller *poller)
{
    struct stat st;

    return stat(poller->socket_path, &st) == 0 && S_ISSOCK(st.st_mode) ? st.st_ino : 0;
}

static void note_result(struct runtime_poller *poller, int r, uint64_t began_us,
                        const struct error *err)
{
    pthread_mutex_lock(&poller->lock);
    identity_status_note(&poller->status, began_us, now_us(poller), r == 0 ? NULL : err->text);
    if (r == -EOPNOTSUPP) { /* not an error: containerd without CRI, as dockerd starts it, say */
        poller->unsuitable = socket_inode(poller);
        poller->status.errors--;
    }
    pthread_mutex_unlock(&poller->lock);
    if (r == -EOPNOTSUPP)
        runtime_poller_probe(poller);
}

/* False: there is no point in inspecting another one. */
static bool inspect_container(struct runtime_poller *poller, const char *container_id)
{
    const struct runtime_poller_options *options = &poller->options;
    struct runtime_call call = call_of(poller, INSPECT_TIMEOUT_US);
    struct attachment_key key = attachment_container(container_id);
    struct gpu_access_list gpus = {.count = 0};
    struct error err = {""};
    int r = options->runtime->inspect(&call, container_id, &gpus, &err);

    if (r == -ECANCELED)
        return false;
    if (r == 0 || r == -ESRCH) { /* it ended in between, or is a pod's own */
        for (size_t i = 0; i < gpus.count; i++)
            gpus.items[i].source = options->runtime->source;
        attachments_set(options->attachments, options->number, key, &gpus, now_us(poller));
        return true;
    }
    attachments_note_failure(options->attachments, options->number, key, now_us(poller));
    pthread_mutex_lock(&poller->lock);
    poller->status.errors++;
    pthread_mutex_unlock(&poller->lock);
    return r == -EREMOTEIO || r == -EBADMSG || r == -EFBIG;
}

/* Takes the time of one call or a little more, because the next list may be waiting. */
static void update_attachments(struct runtime_poller *poller, const struct container_list *list)
{
    const struct runtime_poller_options *options = &poller->options;
    uint64_t until_us = now_us(poller) + INSPECT_TIMEOUT_US;
    size_t inspected = 0;

    attachments_list(options->attachments, options->number, list, now_us(poller));
    for (size_t i = 0; i < list->count && inspected < RUNTIME_POLLER_INSPECTS_MAX; i++) {
        if (list->items[i].ended || !attachments_is_due(options->attachments, options->number,
                                                        attachment_container(list->items[i].id),
                                                        UINT64_MAX, now_us(poller)))
            continue;
        inspected++;
        if (!inspect_container(poller, list->items[i].id) || now_us(poller) >= until_us)
            break;
    }
}

/* Looks up the names of images that are known by digest only: once for each container. */
static void find_images(struct runtime_poller *poller)
{
    const struct runtime_poller_options *options = &poller->options;
    struct runtime_call call = call_of(poller, INSPECT_TIMEOUT_US);
    uint64_t until_us = now_us(poller) + INSPECT_TIMEOUT_US;
    char id[RUNTIME_ID_BYTES], image[RUNTIME_TEXT_MAX + 1];

    for (int i = 0; i < RUNTIME_POLLER_INSPECTS_MAX && now_us(poller) < until_us; i++) {
        struct error err = {""};
        bool is_answer;
        int r;

        if (!container_cache_next_image(options->container_cache, options->number, now_us(poller),
                                        id))
            return;
        r = options->runtime->find_image(&call, id, image, &err);
        is_answer = r == 0 || r == -ENODATA || r == -ESRCH;
        if (r != -ECANCELED)
            container_cache_note_image(options->container_cache, id,
                                       r == 0      ? image
                                       : is_answer ? ""
                                                   : NULL,
                                       now_us(poller));
        if (!is_answer)
            return;
    }
}

static int list_and_learn(struct runtime_poller *poller, enum runtime_scope scope,
                          struct container_list *list, struct error *err)
{
    const struct runtime_poller_options *options = &poller->options;
    struct runtime_call call = call_of(poller, LIST_TIMEOUT_US);
    int r = options->runtime->list(&call, scope, list, err);

    if (r != -ECANCELED)
        container_cache_learn(options->container_cache, options->number, list, now_us(poller));
    return r;
}

static bool has_many_ended(const struct container_list *list)
{
    size_t ended = 0;

    for (size_t i = 0; i < list->count; i++)
        ended += list->items[i].ended;
    return ended > RUNTIME_POLLER_ENDED_MAX;
}

static bool is_name_missing(const struct runtime_poller *poller)
{
    return container_cache_is_missing(poller->options.container_cache, poller->options.number,
                                      now_us(poller));
}

/*
 * A container of a second may have been created at one poll and have ended at the next, so all are
 * listed while a name is missing. Running ones are never lost to the limit of that list.
 */
static int list_containers(struct runtime_poller *poller, struct container_list *list,
                           struct error *err)
{
    struct container_list all;
    int r = -EFBIG;

    if (is_name_missing(poller) && !poller->ended_are_many) {
        r = list_and_learn(poller, RUNTIME_ALL, list, err);
        poller->ended_are_many = r == -EFBIG || has_many_ended(list);
    }
    if (r != -EFBIG)
        return r;
    r = list_and_learn(poller, RUNTIME_RUNNING, list, err);
    if (r < 0 || !poller->ended_are_many || !is_name_missing(poller))
        return r;
    container_list_init(&all);
    r = list_and_learn(poller, RUNTIME_ALL, &all, err);
    if (r == 0)
        poller->ended_are_many = has_many_ended(&all);
    container_list_done(&all);
    return r == -EFBIG ? 0 : r; /* ended ones stay without a name */
}

static int poll_runtime(struct runtime_poller *poller)
{
    const struct runtime_poller_options *options = &poller->options;
    uint64_t began_us = now_us(poller);
    struct error err = {""};
    struct container_list list;
    int r;

    pthread_mutex_lock(&poller->lock);
    poller->list_wanted = false;
    pthread_mutex_unlock(&poller->lock);
    container_list_init(&list);
    r = list_containers(poller, &list, &err);
    if (r != -ECANCELED) {
        container_cache_note_poll(options->container_cache, options->number, r, began_us);
        note_result(poller, r, began_us, &err);
    }
    if (r == 0 && options->runtime->find_image)
        find_images(poller);
    if (r == 0 && options->attachments)
        update_attachments(poller, &list);
    container_list_done(&list);
    return r;
}

/* UINT64_MAX: nothing to poll for. */
static uint64_t next_poll_us(struct runtime_poller *poller)
{
    bool present, list_wanted;

    pthread_mutex_lock(&poller->lock);
    present = poller->present;
    list_wanted = poller->list_wanted;
    pthread_mutex_unlock(&poller->lock);
    if (!present)
        return UINT64_MAX;
    return list_wanted ? 0
                       : container_cache_next_poll_us(poller->options.container_cache,
                                                      poller->options.number);
}

static void *run(void *argument)
{
    struct runtime_poller *poller = argument;
    struct container_cache *container_cache = poller->options.container_cache;
    uint64_t pause_us = PAUSE_MIN_US, earliest_us = 0;

    while (!atomic_load(&poller->stop)) {
        uint64_t generation = container_cache_generation(container_cache);
        uint64_t due_us = next_poll_us(poller);

        if (due_us != UINT64_MAX)
            due_us = MAX(due_us, earliest_us);
        if (atomic_load(&poller->stop))
            break;
        if (due_us > now_us(poller)) {
            container_cache_wait(container_cache, generation, due_us);
            continue;
        }
        pause_us = poll_runtime(poller) == 0 ? PAUSE_MIN_US : MIN(pause_us * 2, PAUSE_MAX_US);
        earliest_us = now_us(poller) + pause_us;
    }
    return NULL;
}

static int start_thread(struct runtime_poller *poller)
{
    int r = poller->client ? 0 : http_client_new(&poller->client);

    return r < 0 ? r : -pthread_create(&poller->thread, NULL, run, poller);
}

void runtime_poller_probe(struct runtime_poller *poller)
{
    ino_t inode = socket_inode(poller);
    uint64_t now = now_us(poller);
    bool present, start, is_restarting;

    pthread_mutex_lock(&poller->lock);
    present = poller->present = inode != 0 && inode != poller->unsuitable;
    if (present)
        poller->seen_us = now;
    is_restarting = inode == 0 && poller->seen_us > 0 && now < poller->seen_us + RESTART_US;
    poller->list_wanted = poller->options.attachments != NULL;
    start = present && !poller->started;
    poller->started |= start;
    pthread_mutex_unlock(&poller->lock);
    if (start && start_thread(poller) < 0) {
        poller->started = false; /* the next probe tries again */
        present = false;
    }
    container_cache_set_present(poller->options.container_cache, poller->options.number,
                                present || is_restarting);
    if (present && poller->options.attachments)
        container_cache_wake(poller->options.container_cache);
}

bool runtime_poller_get_status(struct runtime_poller *poller, struct identity_status *ret_status)
{
    HOLD_LOCK(&poller->lock);

    *ret_status = poller->status;
    return poller->present;
}

void runtime_poller_free(struct runtime_poller *poller)
{
    if (!poller)
        return;
    if (poller->started) {
        atomic_store(&poller->stop, true);
        http_client_cancel(poller->client);
        container_cache_wake(poller->options.container_cache);
        pthread_join(poller->thread, NULL);
    }
    http_client_free(poller->client);
    pthread_mutex_destroy(&poller->lock);
    free(poller->socket_path);
    free(poller);
}
