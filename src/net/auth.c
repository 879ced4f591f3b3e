#include "net/auth.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/lock.h"
#include "core/macros.h"
#include "net/auth_cache.h"
#include "net/credentials.h"

/* One password to check. The thread touches nothing else. */
struct check {
    uint64_t id;
    bool known; /* the user is; else the work is done all the same */
    char hash[PASSWORD_HASH_LEN + 1];
    char password[PASSWORD_MAX_BYTES];
    size_t password_len;
    unsigned char digest[AUTH_CACHE_DIGEST_BYTES];
};

struct result {
    uint64_t id;
    bool ok;
    unsigned char digest[AUTH_CACHE_DIGEST_BYTES];
};

struct user {
    char name[AUTH_USER_MAX_BYTES + 1];
    char hash[PASSWORD_HASH_LEN + 1];
};

struct auth {
    struct user *users;
    size_t user_count;
    struct auth_cache cache;
    uint64_t last_id;
    int result_fds[2]; /* ours, the thread's: results as records */

    pthread_t thread;
    int (*prepare)(void);
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t work;
    bool stopping;
    bool gone; /* the thread */
    struct check waiting[AUTH_WAITING_MAX];
    size_t first, count;
};

static bool take_check(struct auth *auth, struct check *ret_check)
{
    HOLD_LOCK(&auth->lock);
    struct check *next;

    while (auth->count == 0 && !auth->stopping)
        pthread_cond_wait(&auth->work, &auth->lock);
    if (auth->stopping)
        return false;
    next = &auth->waiting[auth->first];
    *ret_check = *next;
    explicit_bzero(next, sizeof(*next));
    auth->first = (auth->first + 1) % AUTH_WAITING_MAX;
    auth->count--;
    return true;
}

static void *run(void *argument)
{
    struct auth *auth = argument;
    struct check check;

    if (auth->prepare && auth->prepare() < 0) {
        pthread_mutex_lock(&auth->lock);
        auth->gone = true;
        pthread_mutex_unlock(&auth->lock);
        return NULL;
    }
    while (take_check(auth, &check)) {
        struct result result = {.id = check.id};
        bool matches =
            password_matches((struct span){check.password, check.password_len}, check.hash);

        result.ok = matches && check.known;
        memcpy(result.digest, check.digest, sizeof(result.digest));
        explicit_bzero(&check, sizeof(check));
        /* There is room: no more than AUTH_WAITING_MAX and one are on their way. */
        (void)!send(auth->result_fds[1], &result, sizeof(result), MSG_NOSIGNAL);
    }
    return NULL;
}

int auth_new(int (*prepare)(void), struct auth **ret_auth)
{
    struct auth *auth = calloc(1, sizeof(*auth));
    int r;

    if (!auth)
        return -ENOMEM;
    auth->prepare = prepare;
    r = auth_cache_init(&auth->cache);
    if (r == 0 && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, auth->result_fds) < 0)
        r = -errno;
    if (r < 0) {
        free(auth);
        return r;
    }
    pthread_mutex_init(&auth->lock, NULL);
    pthread_cond_init(&auth->work, NULL);
    r = -pthread_create(&auth->thread, NULL, run, auth);
    if (r < 0) {
        close(auth->result_fds[0]);
        close(auth->result_fds[1]);
        free(auth);
        return r;
    }
    *ret_auth = auth;
    return 0;
}

void auth_free(struct auth *auth)
{
    if (!auth)
        return;
    pthread_mutex_lock(&auth->lock);
    auth->stopping = true;
    pthread_cond_signal(&auth->work);
    pthread_mutex_unlock(&auth->lock);
    pthread_join(auth->thread, NULL);
    pthread_cond_destroy(&auth->work);
    pthread_mutex_destroy(&auth->lock);
    close(auth->result_fds[0]);
    close(auth->result_fds[1]);
    free(auth->users);
    explicit_bzero(auth, sizeof(*auth));
    free(auth);
}

int auth_set_users(struct auth *auth, const struct auth_user *users, size_t count)
{
    struct user *copies = calloc(MAX(count, (size_t)1), sizeof(*copies));

    if (!copies)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        unsigned ignored;

        if (strlen(users[i].name) > AUTH_USER_MAX_BYTES ||
            !password_is_hash(span_of(users[i].hash), &ignored)) {
            free(copies);
            return -EINVAL;
        }
        snprintf(copies[i].name, sizeof(copies[i].name), "%s", users[i].name);
        snprintf(copies[i].hash, sizeof(copies[i].hash), "%s", users[i].hash);
    }
    free(auth->users);
    auth->users = copies;
    auth->user_count = count;
    return 0;
}

static const struct user *find_user(const struct auth *auth, struct span name)
{
    for (size_t i = 0; i < auth->user_count; i++)
        if (span_equals(name, auth->users[i].name))
            return &auth->users[i];
    return NULL;
}

static bool enqueue(struct auth *auth, const struct check *check)
{
    HOLD_LOCK(&auth->lock);
    bool has_room = auth->count < AUTH_WAITING_MAX && !auth->gone;

    if (has_room) {
        auth->waiting[(auth->first + auth->count++) % AUTH_WAITING_MAX] = *check;
        pthread_cond_signal(&auth->work);
    }
    return has_room;
}

static enum auth_verdict judge(struct auth *auth, const struct basic_auth *given, uint64_t *ret_id)
{
    const struct user *user = find_user(auth, given->user);
    struct check check = {.id = auth->last_id + 1, .known = user != NULL};
    enum auth_verdict verdict = AUTH_BUSY;

    if (given->password.len > PASSWORD_MAX_BYTES)
        return AUTH_NO;
    /* Who is not known costs what the first user does: time must not tell who exists. */
    memcpy(check.hash, user ? user->hash : auth->users[0].hash, sizeof(check.hash));
    memcpy(check.password, given->password.data, given->password.len);
    check.password_len = given->password.len;
    auth_cache_digest(&auth->cache, given->user, check.hash, given->password, check.digest);
    if (user && auth_cache_has(&auth->cache, check.digest)) {
        verdict = AUTH_YES;
    } else if (enqueue(auth, &check)) {
        *ret_id = ++auth->last_id;
        verdict = AUTH_LATER;
    }
    explicit_bzero(&check, sizeof(check));
    return verdict;
}

enum auth_verdict auth_check(struct auth *auth, const char *header, uint64_t *ret_id)
{
    struct basic_auth given;
    enum auth_verdict verdict = AUTH_NO;

    if (auth->user_count == 0)
        return AUTH_YES;
    if (basic_auth_parse(header, &given) == 0)
        verdict = judge(auth, &given, ret_id);
    explicit_bzero(&given, sizeof(given));
    return verdict;
}

int auth_fd(const struct auth *auth)
{
    return auth->result_fds[0];
}

bool auth_next(struct auth *auth, uint64_t *ret_id, bool *ret_ok)
{
    struct result result;

    if (recv(auth->result_fds[0], &result, sizeof(result), MSG_DONTWAIT) != sizeof(result))
        return false;
    if (result.ok)
        auth_cache_add(&auth->cache, result.digest);
    *ret_id = result.id;
    *ret_ok = result.ok;
    return true;
}
