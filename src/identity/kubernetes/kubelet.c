#include "identity/kubernetes/kubelet.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/lock.h"
#include "core/macros.h"

static const uint64_t TIMEOUT_US = 3 * USEC_PER_SEC;

/* Older answers are not shown: pods come and go. */
static const uint64_t STALE_US = 120 * USEC_PER_SEC;

struct kubelet {
    char *socket_path;
    const struct clock *clock;
    struct http_client *client; /* NULL before the thread starts */
    pthread_t thread;
    bool started;

    pthread_mutex_t lock; /* for what is below */
    pthread_cond_t wake;
    bool wanted, stop, present;
    struct allocation_list answer;
    struct identity_status status;
};

int kubelet_new(const char *socket_path, const struct clock *clock, struct kubelet **ret_kubelet)
{
    struct kubelet *kubelet = calloc(1, sizeof(*kubelet));

    if (!kubelet)
        return -ENOMEM;
    kubelet->clock = clock;
    allocation_list_init(&kubelet->answer);
    pthread_mutex_init(&kubelet->lock, NULL);
    pthread_cond_init(&kubelet->wake, NULL);
    kubelet->status = (struct identity_status){.name = "kubelet"};
    kubelet->socket_path = strdup(socket_path);
    if (!kubelet->socket_path) {
        kubelet_free(kubelet);
        return -ENOMEM;
    }
    *ret_kubelet = kubelet;
    return 0;
}

static void poll_kubelet(struct kubelet *kubelet)
{
    uint64_t began_us = kubelet->clock->monotonic_us(kubelet->clock), ended_us;
    struct error err = {""};
    struct allocation_list list;
    int r;

    allocation_list_init(&list);
    r = pod_resources_list(kubelet->client, kubelet->socket_path, TIMEOUT_US, &list, &err);
    ended_us = kubelet->clock->monotonic_us(kubelet->clock);
    pthread_mutex_lock(&kubelet->lock);
    identity_status_note(&kubelet->status, began_us, ended_us, r == 0 ? NULL : err.text);
    if (r == 0) {
        struct allocation_list old = kubelet->answer;

        kubelet->answer = list;
        list = old;
    }
    pthread_mutex_unlock(&kubelet->lock);
    allocation_list_done(&list);
}

static void *run(void *argument)
{
    struct kubelet *kubelet = argument;
    bool stop;

    do {
        pthread_mutex_lock(&kubelet->lock);
        while (!kubelet->wanted && !kubelet->stop)
            pthread_cond_wait(&kubelet->wake, &kubelet->lock);
        kubelet->wanted = false;
        stop = kubelet->stop;
        pthread_mutex_unlock(&kubelet->lock);
        if (!stop)
            poll_kubelet(kubelet);
    } while (!stop);
    return NULL;
}

static bool start_thread(struct kubelet *kubelet)
{
    return (kubelet->client || http_client_new(&kubelet->client) == 0) &&
           pthread_create(&kubelet->thread, NULL, run, kubelet) == 0;
}

void kubelet_poll(struct kubelet *kubelet)
{
    struct stat st;
    bool present = stat(kubelet->socket_path, &st) == 0 && S_ISSOCK(st.st_mode);

    if (present && !kubelet->started)
        kubelet->started = start_thread(kubelet);
    pthread_mutex_lock(&kubelet->lock);
    kubelet->present = present;
    kubelet->wanted = present;
    pthread_cond_signal(&kubelet->wake);
    pthread_mutex_unlock(&kubelet->lock);
}

void kubelet_each(struct kubelet *kubelet,
                  void (*visit)(void *context, const struct allocation *allocation), void *context)
{
    HOLD_LOCK(&kubelet->lock);
    uint64_t now_us = kubelet->clock->monotonic_us(kubelet->clock);

    if (!kubelet->present || kubelet->status.answered_us + STALE_US <= now_us)
        return;
    for (size_t i = 0; i < kubelet->answer.count; i++)
        visit(context, &kubelet->answer.items[i]);
}

bool kubelet_get_status(struct kubelet *kubelet, struct identity_status *ret_status)
{
    HOLD_LOCK(&kubelet->lock);

    *ret_status = kubelet->status;
    return kubelet->present;
}

void kubelet_free(struct kubelet *kubelet)
{
    if (!kubelet)
        return;
    if (kubelet->started) {
        pthread_mutex_lock(&kubelet->lock);
        kubelet->stop = true;
        pthread_cond_signal(&kubelet->wake);
        pthread_mutex_unlock(&kubelet->lock);
        http_client_cancel(kubelet->client);
        pthread_join(kubelet->thread, NULL);
    }
    http_client_free(kubelet->client);
    allocation_list_done(&kubelet->answer);
    pthread_cond_destroy(&kubelet->wake);
    pthread_mutex_destroy(&kubelet->lock);
    free(kubelet->socket_path);
    free(kubelet);
}
