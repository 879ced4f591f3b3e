#include "net/auth.h"

#include <crypt.h>
#include <errno.h>
#include <gnutls/crypto.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "core/macros.h"
#include "core/parse.h"

enum { HASH_LEN = 60, DIGEST_BYTES = 32 };

/* A password to check; it comes back from the thread without the password, and with `ok`. */
struct check {
    uint64_t id;
    bool is_known; /* an unknown user is checked, too, and rejected */
    bool ok;
    char hash[HASH_LEN + 1];
    unsigned char digest[DIGEST_BYTES];
    size_t password_len;
    char password[AUTH_PASSWORD_MAX_BYTES + 1];
};

struct user {
    char name[AUTH_USER_MAX_BYTES + 1];
    char hash[HASH_LEN + 1];
    bool has_digest;
    unsigned char digest[DIGEST_BYTES]; /* of the last password that matched */
};

struct auth {
    struct user *users;
    size_t user_count;
    unsigned char key[32]; /* of the digests */
    uint64_t last_id;
    size_t pending;
    int fds[2]; /* ours, the thread's; checks there and back, one record each */
    int (*prepare)(void);
    pthread_t thread;
};

static int base64_value(char c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = memchr(digits, c, sizeof(digits) - 1);

    return at ? (int)(at - digits) : -1;
}

/* RFC 4648, with its padding and nothing around it. The number of bytes, or -EINVAL. */
static ssize_t base64_decode(struct span text, char *bytes, size_t size)
{
    size_t padding = 0, len = 0;
    uint32_t group = 0;

    if (text.len % 4 != 0 || text.len / 4 * 3 > size)
        return -EINVAL;
    while (padding < 2 && padding < text.len && text.data[text.len - 1 - padding] == '=')
        padding++;
    for (size_t i = 0; i < text.len; i++) {
        int value = i < text.len - padding ? base64_value(text.data[i]) : 0;

        if (value < 0)
            return -EINVAL;
        group = group << 6 | (uint32_t)value;
        if (i % 4 == 3)
            for (int shift = 16; shift >= 0; shift -= 8)
                bytes[len++] = (char)(group >> shift);
    }
    return (ssize_t)(len - padding);
}

int auth_header_parse(const char *text, struct auth_header *ret_header)
{
    static const char scheme[] = "Basic ";
    struct span rest;
    ssize_t len;

    if (!text || strncasecmp(text, scheme, strlen(scheme)) != 0)
        return -EINVAL;
    len = base64_decode(span_of(text + strlen(scheme)), ret_header->bytes, AUTH_HEADER_MAX_BYTES);
    if (len < 0 || !memchr(ret_header->bytes, ':', (size_t)len))
        return -EINVAL;
    rest = (struct span){ret_header->bytes, (size_t)len};
    ret_header->user = span_cut(&rest, ':');
    ret_header->password = rest;
    return 0;
}

bool auth_is_hash(struct span text, unsigned *ret_cost)
{
    const char *t = text.data;

    if (text.len != HASH_LEN || t[0] != '$' || t[1] != '2' || !strchr("aby", t[2]) || t[3] != '$' ||
        !parse_is_digit(t[4]) || !parse_is_digit(t[5]) || t[6] != '$')
        return false;
    for (size_t i = 7; i < text.len; i++)
        if (t[i] != '.' && (t[i] == '+' || base64_value(t[i]) < 0))
            return false;
    *ret_cost = (unsigned)(t[4] - '0') * 10 + (unsigned)(t[5] - '0');
    return true;
}

static bool password_matches(const struct check *check)
{
    struct crypt_data *data; /* 32 KiB */
    const char *hash;
    bool ok;

    /* bcrypt would stop at a NUL and ignore what follows. */
    if (strlen(check->password) != check->password_len)
        return false;
    data = calloc(1, sizeof(*data));
    if (!data)
        return false;
    hash = crypt_rn(check->password, check->hash, data, sizeof(*data));
    ok = hash && strlen(hash) == HASH_LEN && gnutls_memcmp(hash, check->hash, HASH_LEN) == 0;
    explicit_bzero(data, sizeof(*data));
    free(data);
    return ok;
}

static void *check_passwords(void *argument)
{
    struct auth *auth = argument;
    struct check check;

    /* After the shutdown in auth_free either recv or send fails. */
    if (!auth->prepare || auth->prepare() == 0)
        while (recv(auth->fds[1], &check, sizeof(check), 0) == sizeof(check)) {
            check.ok = password_matches(&check) && check.is_known;
            explicit_bzero(check.password, sizeof(check.password));
            if (send(auth->fds[1], &check, sizeof(check), MSG_NOSIGNAL) < 0)
                break;
        }
    shutdown(auth->fds[1], SHUT_RD); /* auth_check then fails to send */
    return NULL;
}

int auth_new(int (*prepare)(void), struct auth **ret_auth)
{
    struct auth *auth = calloc(1, sizeof(*auth));
    int r = 0;

    if (!auth)
        return -ENOMEM;
    auth->prepare = prepare;
    auth->fds[0] = auth->fds[1] = -1;
    if (getrandom(auth->key, sizeof(auth->key), 0) != sizeof(auth->key))
        r = -EIO;
    else if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, auth->fds) < 0)
        r = -errno;
    else
        r = -pthread_create(&auth->thread, NULL, check_passwords, auth);
    if (r < 0) {
        cleanup_close(&auth->fds[0]);
        cleanup_close(&auth->fds[1]);
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
    shutdown(auth->fds[0], SHUT_RDWR);
    pthread_join(auth->thread, NULL);
    close(auth->fds[0]);
    close(auth->fds[1]);
    free(auth->users);
    explicit_bzero(auth, sizeof(*auth));
    free(auth);
}

/* The password that matched a hash matches it for every user who has it. */
static void remember(struct user *users, size_t count, const char *hash,
                     const unsigned char *digest)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(users[i].hash, hash) == 0) {
            memcpy(users[i].digest, digest, DIGEST_BYTES);
            users[i].has_digest = true;
        }
}

int auth_set_users(struct auth *auth, const struct auth_user *users, size_t count)
{
    struct user *copies = calloc(MAX(count, (size_t)1), sizeof(*copies));
    unsigned cost;

    if (!copies)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        if (strlen(users[i].name) > AUTH_USER_MAX_BYTES ||
            !auth_is_hash(span_of(users[i].hash), &cost)) {
            free(copies);
            return -EINVAL;
        }
        snprintf(copies[i].name, sizeof(copies[i].name), "%s", users[i].name);
        snprintf(copies[i].hash, sizeof(copies[i].hash), "%s", users[i].hash);
    }
    for (size_t i = 0; i < auth->user_count; i++)
        if (auth->users[i].has_digest)
            remember(copies, count, auth->users[i].hash, auth->users[i].digest);
    free(auth->users);
    auth->users = copies;
    auth->user_count = count;
    return 0;
}

static enum auth_verdict check_header(struct auth *auth, const struct auth_header *header,
                                      uint64_t *ret_id)
{
    struct check check = {.id = auth->last_id + 1, .password_len = header->password.len};
    enum auth_verdict verdict = AUTH_BUSY;
    const struct user *user = NULL;

    if (check.password_len > AUTH_PASSWORD_MAX_BYTES)
        return AUTH_NO;
    for (size_t i = 0; i < auth->user_count && !user; i++)
        if (span_equals(header->user, auth->users[i].name))
            user = &auth->users[i];
    check.is_known = user != NULL;
    memcpy(check.password, header->password.data, check.password_len);
    /* An unknown user costs what the first one does: time must not reveal which users exist. */
    memcpy(check.hash, user ? user->hash : auth->users[0].hash, sizeof(check.hash));
    if (gnutls_hmac_fast(GNUTLS_MAC_SHA256, auth->key, sizeof(auth->key), check.password,
                         check.password_len, check.digest) == 0 &&
        user && user->has_digest && gnutls_memcmp(user->digest, check.digest, DIGEST_BYTES) == 0) {
        verdict = AUTH_YES;
    } else if (auth->pending <= AUTH_WAITING_MAX && /* one of them is being checked */
               send(auth->fds[0], &check, sizeof(check), MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
        auth->pending++;
        *ret_id = ++auth->last_id;
        verdict = AUTH_PENDING;
    }
    explicit_bzero(&check, sizeof(check));
    return verdict;
}

enum auth_verdict auth_check(struct auth *auth, const char *header, uint64_t *ret_id)
{
    struct auth_header parsed;
    enum auth_verdict verdict = AUTH_NO;

    if (auth->user_count == 0)
        return AUTH_YES;
    if (auth_header_parse(header, &parsed) == 0)
        verdict = check_header(auth, &parsed, ret_id);
    explicit_bzero(&parsed, sizeof(parsed));
    return verdict;
}

int auth_fd(const struct auth *auth)
{
    return auth->fds[0];
}

bool auth_next(struct auth *auth, uint64_t *ret_id, bool *ret_ok)
{
    struct check check;

    if (recv(auth->fds[0], &check, sizeof(check), MSG_DONTWAIT) != sizeof(check))
        return false;
    auth->pending--;
    if (check.ok)
        remember(auth->users, auth->user_count, check.hash, check.digest);
    *ret_id = check.id;
    *ret_ok = check.ok;
    return true;
}
