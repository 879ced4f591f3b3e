#include "identity/runtimes/runtime_poller.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/macros.h"

/* One call, its connection included: for a list, and for what is asked of one container. containerd
 * was seen to take more than 3 s for a list while it started 15 pods; the ledger holds a row back
 * for 15 s. */
static const uint64_t LIST_TIMEOUT_US = 10 * USEC_PER_SEC, INSPECT_TIMEOUT_US = 3 * USEC_PER_SEC;

/* Never more often than this, and less often the longer it fails. */
static const uint64_t PAUSE_MIN_US = USEC_PER_SEC, PAUSE_MAX_US = 60 * USEC_PER_SEC;

struct runtime_poller {
    struct runtime_poller_options options;
    char *name, *socket_path;
    struct http_client
        *client; /* NULL before the thread starts: a node without runtimes needs none */
    pthread_t thread;
    bool started;
    bool ended_are_many; /* of the thread */
    atomic_bool stop;

    pthread_mutex_t lock; /* for what is below */
    ino_t unsuitable;     /* the socket that turned out to be something else; 0: none */
    bool present;
    bool list_wanted; /* for attachments */
    bool asked, up;
    uint64_t answered_us, duration_us, errors;
    char error[256];
};

int runtime_poller_new(const struct runtime_poller_options *options,
                       struct runtime_poller **ret_asker)
{
    struct runtime_poller *asker = calloc(1, sizeof(*asker));

    if (!asker)
        return -ENOMEM;
    asker->options = *options;
    pthread_mutex_init(&asker->lock, NULL);
    asker->name = strdup(options->name);
    asker->socket_path = strdup(options->socket_path);
    if (!asker->name || !asker->socket_path) {
        runtime_poller_free(asker);
        return -ENOMEM;
    }
    *ret_asker = asker;
    return 0;
}

static uint64_t now_us(const struct runtime_poller *asker)
{
    return asker->options.clock->monotonic_us(asker->options.clock);
}

static ino_t socket_inode(const struct runtime_poller *asker)
{
    struct stat st;

    return stat(asker->socket_path, &st) == 0 && S_ISSOCK(st.st_mode) ? st.st_ino : 0;
}

static void note_result(struct runtime_poller *asker, int r, uint64_t began_us,
                        const struct error *err)
{
    uint64_t ended_us = now_us(asker);

    pthread_mutex_lock(&asker->lock);
    asker->asked = true;
    asker->up = r == 0;
    asker->duration_us = ended_us - began_us;
    if (r == 0)
        asker->answered_us = ended_us;
    else if (r == -EOPNOTSUPP) /* containerd without CRI, as dockerd starts it, say */
        asker->unsuitable = socket_inode(asker);
    else
        asker->errors++;
    snprintf(asker->error, sizeof(asker->error), "%s", r == 0 ? "" : err->text);
    pthread_mutex_unlock(&asker->lock);
    if (r == -EOPNOTSUPP)
        runtime_poller_look(asker);
}

/* False: there is no point in looking into another one. */
static bool inspect(struct runtime_poller *asker, const char *container_id)
{
    const struct runtime_poller_options *options = &asker->options;
    struct gpu_access_list gpus = {.count = 0};
    struct error err = {""};
    int r = options->runtime->inspect(asker->client, asker->socket_path, INSPECT_TIMEOUT_US,
                                      container_id, &gpus, &err);

    if (r == -ECANCELED)
        return false;
    if (r == 0 || r == -ESRCH) { /* it ended in between, or is a pod's own */
        attachments_set(options->attachments, options->number, container_id, &gpus, now_us(asker));
        return true;
    }
    attachments_note_failure(options->attachments, options->number, container_id, now_us(asker));
    pthread_mutex_lock(&asker->lock);
    asker->errors++;
    pthread_mutex_unlock(&asker->lock);
    return r == -EREMOTEIO || r == -EBADMSG || r == -EFBIG;
}

/* What runs, and the GPUs of what is new in it. The time is that of one call or a little more,
 * because the next list may be waiting. */
static void update_attachments(struct runtime_poller *asker, const struct container_list *list)
{
    const struct runtime_poller_options *options = &asker->options;
    uint64_t until_us = now_us(asker) + INSPECT_TIMEOUT_US;
    size_t asked = 0;

    attachments_list(options->attachments, options->number, list, now_us(asker));
    for (size_t i = 0; i < list->count && asked < RUNTIME_POLLER_INSPECTS_MAX; i++) {
        if (list->items[i].ended ||
            !attachments_is_due(options->attachments, options->number, list->items[i].id,
                                UINT64_MAX, now_us(asker)))
            continue;
        asked++;
        if (!inspect(asker, list->items[i].id) || now_us(asker) >= until_us)
            break;
    }
}

/* False: there is no point in asking for another one. */
static bool find_image(struct runtime_poller *asker, const char *container_id)
{
    const struct runtime_poller_options *options = &asker->options;
    char image[RUNTIME_TEXT_MAX + 1];
    struct error err = {""};
    int r = options->runtime->find_image(asker->client, asker->socket_path, INSPECT_TIMEOUT_US,
                                         container_id, image, &err);

    if (r == 0 || r == -ENODATA || r == -ESRCH)
        container_cache_set_image(options->container_cache, container_id, r == 0 ? image : NULL);
    else if (r != -ECANCELED)
        container_cache_note_image_failure(options->container_cache, container_id, now_us(asker));
    return r == 0 || r == -ENODATA || r == -ESRCH;
}

/* The names of images that are known by their digests alone: once for each container. */
static void find_images(struct runtime_poller *asker)
{
    const struct runtime_poller_options *options = &asker->options;
    uint64_t until_us = now_us(asker) + INSPECT_TIMEOUT_US;
    char id[RUNTIME_ID_BYTES];

    for (int i = 0; i < RUNTIME_POLLER_INSPECTS_MAX && now_us(asker) < until_us; i++)
        if (!container_cache_next_image(options->container_cache, options->number, now_us(asker),
                                        id) ||
            !find_image(asker, id))
            return;
}

static int list_and_learn(struct runtime_poller *asker, enum runtime_scope scope,
                          struct container_list *list, struct error *err)
{
    const struct runtime_poller_options *options = &asker->options;
    int r = options->runtime->list(asker->client, asker->socket_path, LIST_TIMEOUT_US, scope, list,
                                   err);

    if (r != -ECANCELED)
        container_cache_learn(options->container_cache, options->number, list, now_us(asker));
    return r;
}

static bool are_many_ended(const struct container_list *list)
{
    size_t ended = 0;

    for (size_t i = 0; i < list->count; i++)
        ended += list->items[i].ended;
    return ended > RUNTIME_POLLER_ENDED_MAX;
}

static bool is_missing(const struct runtime_poller *asker)
{
    return container_cache_is_missing(asker->options.container_cache, asker->options.number,
                                      now_us(asker));
}

/* Where a name is missing after those that run were listed. */
static int list_ended(struct runtime_poller *asker, struct error *err)
{
    struct container_list list;
    int r;

    container_list_init(&list);
    r = list_and_learn(asker, RUNTIME_ALL, &list, err);
    if (r == 0)
        asker->ended_are_many = are_many_ended(&list);
    container_list_done(&list);
    return r == -EFBIG ? 0 : r; /* who has ended stays without a name */
}

/*
 * A container of a second may have been made at one question and have ended at the next, so all are
 * listed while a name is missing. What runs is never lost to the limit of that list.
 */
static int list_containers(struct runtime_poller *asker, struct container_list *list,
                           struct error *err)
{
    int r = -EFBIG;

    if (is_missing(asker) && !asker->ended_are_many) {
        r = list_and_learn(asker, RUNTIME_ALL, list, err);
        asker->ended_are_many = r == -EFBIG || are_many_ended(list);
    }
    if (r != -EFBIG)
        return r;
    r = list_and_learn(asker, RUNTIME_RUNNING, list, err);
    return r == 0 && asker->ended_are_many && is_missing(asker) ? list_ended(asker, err) : r;
}

static int ask(struct runtime_poller *asker)
{
    uint64_t began_us = now_us(asker);
    struct error err = {""};
    struct container_list list;
    int r;

    pthread_mutex_lock(&asker->lock);
    asker->list_wanted = false;
    pthread_mutex_unlock(&asker->lock);
    container_list_init(&list);
    r = list_containers(asker, &list, &err);
    if (r != -ECANCELED) {
        if (r == 0)
            container_cache_note_asked(asker->options.container_cache, asker->options.number,
                                       began_us);
        else
            container_cache_note_failure(asker->options.container_cache, asker->options.number);
        note_result(asker, r, began_us, &err);
    }
    if (r == 0 && asker->options.runtime->find_image)
        find_images(asker);
    if (r == 0 && asker->options.attachments)
        update_attachments(asker, &list);
    container_list_done(&list);
    return r;
}

/* When there is something to ask for; UINT64_MAX: nothing is known of. */
static uint64_t next_ask_us(struct runtime_poller *asker)
{
    bool present, list_wanted;

    pthread_mutex_lock(&asker->lock);
    present = asker->present;
    list_wanted = asker->list_wanted;
    pthread_mutex_unlock(&asker->lock);
    if (!present)
        return UINT64_MAX;
    return list_wanted
               ? 0
               : container_cache_next_ask_us(asker->options.container_cache, asker->options.number);
}

static void *run(void *argument)
{
    struct runtime_poller *asker = argument;
    struct container_cache *container_cache = asker->options.container_cache;
    uint64_t pause_us = PAUSE_MIN_US, earliest_us = 0;

    while (!atomic_load(&asker->stop)) {
        uint64_t generation = container_cache_generation(container_cache);
        uint64_t due_us = next_ask_us(asker);

        if (due_us != UINT64_MAX)
            due_us = MAX(due_us, earliest_us);
        if (atomic_load(&asker->stop))
            break;
        if (due_us > now_us(asker)) {
            container_cache_wait(container_cache, generation, due_us);
            continue;
        }
        pause_us = ask(asker) == 0 ? PAUSE_MIN_US : MIN(pause_us * 2, PAUSE_MAX_US);
        earliest_us = now_us(asker) + pause_us;
    }
    return NULL;
}

static int start_thread(struct runtime_poller *asker)
{
    int r = asker->client ? 0 : http_client_new(&asker->client);

    return r < 0 ? r : -pthread_create(&asker->thread, NULL, run, asker);
}

void runtime_poller_look(struct runtime_poller *asker)
{
    ino_t inode = socket_inode(asker);
    bool present, start;

    pthread_mutex_lock(&asker->lock);
    present = asker->present = inode != 0 && inode != asker->unsuitable;
    asker->list_wanted = asker->options.attachments != NULL;
    start = present && !asker->started;
    asker->started |= start;
    pthread_mutex_unlock(&asker->lock);
    if (start && start_thread(asker) < 0) {
        asker->started = false; /* tried again at the next look */
        present = false;
    }
    container_cache_set_present(asker->options.container_cache, asker->options.number, present);
    if (present && asker->options.attachments)
        container_cache_wake(asker->options.container_cache);
}

bool runtime_poller_get_status(struct runtime_poller *asker,
                               struct runtime_poller_status *ret_status)
{
    uint64_t now = now_us(asker);
    bool present;

    pthread_mutex_lock(&asker->lock);
    present = asker->present;
    *ret_status = (struct runtime_poller_status){
        .name = asker->name,
        .asked = asker->asked,
        .up = asker->up,
        .age_us = asker->answered_us > 0 ? now - MIN(now, asker->answered_us) : 0,
        .duration_us = asker->duration_us,
        .errors = asker->errors,
    };
    memcpy(ret_status->error, asker->error, sizeof(asker->error));
    pthread_mutex_unlock(&asker->lock);
    return present;
}

void runtime_poller_free(struct runtime_poller *asker)
{
    if (!asker)
        return;
    if (asker->started) {
        atomic_store(&asker->stop, true);
        http_client_cancel(asker->client);
        container_cache_wake(asker->options.container_cache);
        pthread_join(asker->thread, NULL);
    }
    http_client_free(asker->client);
    pthread_mutex_destroy(&asker->lock);
    free(asker->name);
    free(asker->socket_path);
    free(asker);
}
