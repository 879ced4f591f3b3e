#include "identity/asker.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/macros.h"

/* One call, its connection included. */
static const uint64_t TIMEOUT_US = 3 * USEC_PER_SEC;

/* Never more often than this, and less often the longer it fails. */
static const uint64_t PAUSE_MIN_US = USEC_PER_SEC, PAUSE_MAX_US = 60 * USEC_PER_SEC;

struct asker {
    struct asker_options options;
    char *name, *socket_path;
    struct http_client *client;
    pthread_t thread;
    bool started;
    atomic_bool stop;

    pthread_mutex_t lock; /* for what is below */
    ino_t unsuitable;     /* the socket that turned out to be something else; 0: none */
    bool present;
    bool asked, up;
    uint64_t answered_us, duration_us, errors;
    char error[256];
};

int asker_new(const struct asker_options *options, struct asker **ret_asker)
{
    struct asker *asker = calloc(1, sizeof(*asker));
    int r;

    if (!asker)
        return -ENOMEM;
    asker->options = *options;
    pthread_mutex_init(&asker->lock, NULL);
    asker->name = strdup(options->name);
    asker->socket_path = strdup(options->socket_path);
    r = asker->name && asker->socket_path ? http_client_new(&asker->client) : -ENOMEM;
    if (r < 0) {
        asker_free(asker);
        return r;
    }
    *ret_asker = asker;
    return 0;
}

static uint64_t now_us(const struct asker *asker)
{
    return asker->options.clock->monotonic_us(asker->options.clock);
}

static ino_t socket_inode(const struct asker *asker)
{
    struct stat st;

    return stat(asker->socket_path, &st) == 0 && S_ISSOCK(st.st_mode) ? st.st_ino : 0;
}

static void note_result(struct asker *asker, int r, uint64_t began_us, const struct error *err)
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
        asker_look(asker);
}

static int ask(struct asker *asker)
{
    uint64_t began_us = now_us(asker);
    struct error err = {""};
    struct container_list list;
    int r;

    container_list_init(&list);
    r = asker->options.runtime->list(asker->client, asker->socket_path, TIMEOUT_US, &list, &err);
    if (r != -ECANCELED) {
        directory_learn(asker->options.directory, &list, now_us(asker));
        if (r == 0)
            directory_note_asked(asker->options.directory, asker->options.number, began_us);
        note_result(asker, r, began_us, &err);
    }
    container_list_done(&list);
    return r;
}

static bool is_present(struct asker *asker)
{
    bool present;

    pthread_mutex_lock(&asker->lock);
    present = asker->present;
    pthread_mutex_unlock(&asker->lock);
    return present;
}

static void *run(void *argument)
{
    struct asker *asker = argument;
    struct directory *directory = asker->options.directory;
    uint64_t pause_us = PAUSE_MIN_US, earliest_us = 0;

    while (!atomic_load(&asker->stop)) {
        uint64_t generation = directory_generation(directory);
        uint64_t due_us = is_present(asker)
                              ? directory_next_ask_us(directory, asker->options.number)
                              : UINT64_MAX;

        if (due_us != UINT64_MAX)
            due_us = MAX(due_us, earliest_us);
        if (atomic_load(&asker->stop))
            break;
        if (due_us > now_us(asker)) {
            directory_wait(directory, generation, due_us);
            continue;
        }
        pause_us = ask(asker) == 0 ? PAUSE_MIN_US : MIN(pause_us * 2, PAUSE_MAX_US);
        earliest_us = now_us(asker) + pause_us;
    }
    return NULL;
}

void asker_look(struct asker *asker)
{
    ino_t inode = socket_inode(asker);
    bool present, start;

    pthread_mutex_lock(&asker->lock);
    present = asker->present = inode != 0 && inode != asker->unsuitable;
    start = present && !asker->started;
    asker->started |= start;
    pthread_mutex_unlock(&asker->lock);
    if (start && pthread_create(&asker->thread, NULL, run, asker) != 0) {
        asker->started = false; /* tried again at the next look */
        present = false;
    }
    directory_set_present(asker->options.directory, asker->options.number, present);
}

bool asker_get_status(struct asker *asker, struct asker_status *ret_status)
{
    uint64_t now = now_us(asker);
    bool present;

    pthread_mutex_lock(&asker->lock);
    present = asker->present;
    *ret_status = (struct asker_status){
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

void asker_free(struct asker *asker)
{
    if (!asker)
        return;
    if (asker->started) {
        atomic_store(&asker->stop, true);
        http_client_cancel(asker->client);
        directory_wake(asker->options.directory);
        pthread_join(asker->thread, NULL);
    }
    http_client_free(asker->client);
    pthread_mutex_destroy(&asker->lock);
    free(asker->name);
    free(asker->socket_path);
    free(asker);
}
