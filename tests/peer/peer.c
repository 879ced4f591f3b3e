#include "peer.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/macros.h"
#include "core/parse.h"

enum { REQUEST_MAX = 16 << 20 };

static void must(bool ok, const char *what)
{
    if (ok)
        return;
    perror(what);
    abort();
}

/* Waits for `events` at `fd`. False when stopped. Without events it only waits. */
static bool wait_for(const struct peer *peer, int fd, short events, int timeout_ms)
{
    struct pollfd polled[] = {{.fd = peer->stop_fd, .events = POLLIN},
                              {.fd = events ? fd : -1, .events = events}};

    must(poll(polled, ARRAY_SIZE(polled), timeout_ms) >= 0 || errno == EINTR, "poll");
    return !(polled[0].revents & POLLIN);
}

/* HTTP/2: the preface, then frames, up to one that ends a stream. */
static bool http2_request_is_whole(struct span text)
{
    enum { PREFACE = 24, FRAME = 9, DATA = 0, HEADERS = 1, END_STREAM = 1 };
    const unsigned char *data = (const unsigned char *)text.data;
    size_t at = PREFACE;

    while (at + FRAME <= text.len) {
        size_t len = (size_t)data[at] << 16 | (size_t)data[at + 1] << 8 | data[at + 2];
        bool ends = data[at + 3] <= HEADERS && (data[at + 4] & END_STREAM);

        at += FRAME + len;
        if (ends && at <= text.len)
            return true;
    }
    return false;
}

static bool request_is_whole(struct span text)
{
    static const char length[] = "Content-Length: ";
    const char *end, *at;
    struct span value;
    uint64_t body_len = 0;

    if (text.len < 4)
        return false;
    if (memcmp(text.data, "PRI ", 4) == 0)
        return http2_request_is_whole(text);
    end = memmem(text.data, text.len, "\r\n\r\n", 4);
    if (!end)
        return false;
    at = memmem(text.data, (size_t)(end + 2 - text.data), length, sizeof(length) - 1);
    if (at) {
        value = (struct span){at + sizeof(length) - 1, (size_t)(end + 2 - at) - sizeof(length) + 1};
        value = span_cut(&value, '\r');
        must(parse_u64(value, &body_len) == 0, "Content-Length");
    }
    return text.len >= (size_t)(end + 4 - text.data) + body_len;
}

/* False when the client is gone, or the peer stopped. */
static bool hear(struct peer *peer, int fd)
{
    struct buffer *request = &peer->request;
    char piece[4096];
    bool begun = false;
    ssize_t n;

    do {
        if (!wait_for(peer, fd, POLLIN, -1))
            return false;
        n = recv(fd, piece, sizeof(piece), MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EAGAIN))
            return false;
        if (!begun)
            request->len = 0; /* the last one is kept until the next one comes */
        begun = true;
        buffer_bytes(request, piece, (size_t)MAX(n, 0));
        must(!buffer_failed(request), "request");
    } while (!request_is_whole((struct span){request->data, request->len}));
    peer->requests++;
    return true;
}

static bool say(const struct peer *peer, int fd, struct span text)
{
    while (text.len > 0) {
        ssize_t n;

        if (!wait_for(peer, fd, POLLOUT, -1))
            return false;
        n = send(fd, text.data, text.len, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN)
            return false;
        if (n > 0)
            text = (struct span){text.data + n, text.len - (size_t)n};
    }
    return true;
}

static void repeat(const struct peer *peer, int fd)
{
    int pause_ms = peer->script.pause_ms;

    while ((pause_ms == 0 || wait_for(peer, fd, 0, pause_ms)) && say(peer, fd, peer->script.repeat))
        ;
}

/* Reads and drops until the client is gone. */
static void hold(const struct peer *peer, int fd)
{
    char piece[4096];
    ssize_t n;

    while (wait_for(peer, fd, POLLIN, -1)) {
        n = recv(fd, piece, sizeof(piece), MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EAGAIN))
            return;
    }
}

static void serve(struct peer *peer, int fd)
{
    const struct peer_script *script = &peer->script;
    const struct linger at_once = {.l_onoff = 1};

    do {
        if (!script->ignores_request && !hear(peer, fd))
            return;
        if (!say(peer, fd, script->reply))
            return;
    } while (script->end == PEER_SERVES_ON);
    if (script->repeat.len > 0)
        repeat(peer, fd);
    if (script->end == PEER_CLOSES)
        shutdown(fd, SHUT_WR);
    if (script->end == PEER_RESETS)
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    else
        hold(peer, fd);
}

static void *run(void *arg)
{
    struct peer *peer = arg;

    while (wait_for(peer, peer->listener_fd, POLLIN, -1)) {
        _cleanup_close_ int fd = accept4(peer->listener_fd, NULL, NULL, SOCK_CLOEXEC);

        if (fd < 0)
            continue;
        peer->connections++;
        serve(peer, fd);
    }
    return NULL;
}

static struct peer *start(const struct peer_script *script, const struct sockaddr *address,
                          socklen_t address_len)
{
    struct peer *peer = calloc(1, sizeof(*peer));

    must(peer, "calloc");
    peer->script = *script;
    buffer_init(&peer->request, REQUEST_MAX);
    peer->stop_fd = eventfd(0, EFD_CLOEXEC);
    peer->listener_fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    must(peer->stop_fd >= 0 && peer->listener_fd >= 0, "socket");
    must(bind(peer->listener_fd, address, address_len) == 0, "bind");
    must(listen(peer->listener_fd, SOMAXCONN) == 0, "listen");
    return peer;
}

struct peer *peer_start(const struct peer_script *script)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char directory[] = "/tmp/peer.XXXXXX";
    struct peer *peer;

    must(mkdtemp(directory), "mkdtemp");
    snprintf(address.sun_path, sizeof(address.sun_path), "%s/socket", directory);
    peer = start(script, (struct sockaddr *)&address, sizeof(address));
    snprintf(peer->directory, sizeof(peer->directory), "%s", directory);
    snprintf(peer->path, sizeof(peer->path), "%s/socket", directory);
    snprintf(peer->url, sizeof(peer->url), "http://localhost");
    must(pthread_create(&peer->thread, NULL, run, peer) == 0, "pthread_create");
    return peer;
}

struct peer *peer_start_tcp(const struct peer_script *script)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    struct peer *peer = start(script, (struct sockaddr *)&address, len);

    must(getsockname(peer->listener_fd, (struct sockaddr *)&address, &len) == 0, "getsockname");
    snprintf(peer->url, sizeof(peer->url), "http://127.0.0.1:%u", ntohs(address.sin_port));
    must(pthread_create(&peer->thread, NULL, run, peer) == 0, "pthread_create");
    return peer;
}

void peer_stop(struct peer *peer)
{
    static const uint64_t one = 1;

    if (peer->stopped)
        return;
    must(write(peer->stop_fd, &one, sizeof(one)) == sizeof(one), "write");
    must(pthread_join(peer->thread, NULL) == 0, "pthread_join");
    peer->stopped = true;
}

void peer_free(struct peer *peer)
{
    peer_stop(peer);
    close(peer->listener_fd);
    close(peer->stop_fd);
    if (peer->path[0]) {
        unlink(peer->path);
        rmdir(peer->directory);
    }
    buffer_done(&peer->request);
    free(peer);
}
