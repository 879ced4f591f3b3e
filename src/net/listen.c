#include "net/listen.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/macros.h"
#include "core/parse.h"

enum { BACKLOG = 512, SYSTEMD_FIRST_FD = 3 };

/* Cuts "host" and "port" out of "host:port" or "[host]:port". */
static int split_port(const char *text, struct span *ret_host, struct span *ret_port)
{
    const char *colon = strrchr(text, ':');
    struct span host;

    if (!colon || colon[1] == '\0')
        return -EINVAL;
    host = (struct span){text, (size_t)(colon - text)};
    if (host.len > 0 && host.data[0] == '[') {
        if (host.len < 3 || host.data[host.len - 1] != ']')
            return -EINVAL;
        host = (struct span){host.data + 1, host.len - 2};
    } else if (host.len > 0 && memchr(host.data, ':', host.len)) {
        return -EINVAL; /* "::1" and "fe80::1:9400": is the last part the port? */
    }
    if (host.len > 0 && memchr(host.data, ']', host.len))
        return -EINVAL;
    *ret_host = host;
    *ret_port = span_of(colon + 1);
    return 0;
}

int listen_parse(const char *text, struct listen_address *ret_address, struct error *err)
{
    struct listen_address address = {0};
    struct span host, port;
    uint64_t number;

    if (strncmp(text, "unix:", 5) == 0) {
        const char *path = text + 5;

        if (path[0] != '/')
            return error_set(err, -EINVAL,
                             "listen address \"%s\": a unix socket needs an absolute path, as in "
                             "unix:/run/wattribute.sock",
                             text);
        if (strlen(path) >= sizeof(address.path))
            return error_set(err, -EINVAL,
                             "listen address \"%s\": the path is longer than the %zu bytes that "
                             "the kernel allows for a unix socket; choose a shorter one",
                             text, sizeof(address.path) - 1);
        memcpy(address.path, path, strlen(path));
        *ret_address = address;
        return 0;
    }
    if (split_port(text, &host, &port) < 0)
        return error_set(err, -EINVAL,
                         "listen address \"%s\" is not HOST:PORT; examples: :9400, 127.0.0.1:9400, "
                         "[::1]:9400, unix:/run/wattribute.sock",
                         text);
    if (parse_u64_max(port, 65535, &number) < 0)
        return error_set(err, -EINVAL,
                         "listen address \"%s\": \"%s\" is not a port; it is a number from 0 to "
                         "65535",
                         text, port.data);
    if (host.len >= sizeof(address.host))
        return error_set(err, -EINVAL, "listen address \"%s\": the host name is too long", text);
    if (host.len > 0)
        memcpy(address.host, host.data, host.len);
    snprintf(address.port, sizeof(address.port), "%u", (unsigned)number);
    *ret_address = address;
    return 0;
}

static int fail(struct error *err, const char *text, int error, bool is_unix)
{
    static const struct {
        int error;
        const char *tcp, *path;
    } remedies[] = {
        {EADDRINUSE,
         "; another process listens there; stop it or choose another port with --listen-address",
         "; another process listens there; stop it or choose another path with --listen-address"},
        {EACCES,
         "; ports below 1024 need CAP_NET_BIND_SERVICE; choose a higher one with --listen-address",
         "; check the permissions of its directory"},
        {EADDRNOTAVAIL, "; no interface of this machine has that address", ""},
        {ENOENT, "", "; create the directory first"},
    };
    const char *remedy = "";

    for (size_t i = 0; i < ARRAY_SIZE(remedies); i++)
        if (remedies[i].error == error)
            remedy = is_unix ? remedies[i].path : remedies[i].tcp;
    return error_set(err, -error, "cannot listen on %s: %s%s", text, strerror(error), remedy);
}

/* A listening socket, or -errno. One of IPv6 for any address takes IPv4, too. */
static int open_socket(const struct sockaddr *address, socklen_t len, bool any)
{
    _cleanup_close_ int fd =
        socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const int on = 1, off = 0;

    if (fd < 0)
        return -errno;
    if (address->sa_family != AF_UNIX &&
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0)
        return -errno;
    if (any && address->sa_family == AF_INET6 &&
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) < 0)
        return -errno;
    if (bind(fd, address, len) < 0 || listen(fd, BACKLOG) < 0)
        return -errno;
    return TAKE_FD(fd);
}

/* The first address of the host that works, IPv4 before IPv6: where "localhost" is both, this is
 * what the exporters written in Go do. For any address IPv4 only where IPv6 is compiled out, or
 * switched off by sysctl. */
static int open_tcp(const char *text, const struct listen_address *address, struct error *err)
{
    const bool any = address->host[0] == '\0';
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_NUMERICSERV | (any ? AI_PASSIVE : 0)};
    const int families[] = {any ? AF_INET6 : AF_INET, any ? AF_INET : AF_INET6};
    struct addrinfo *found = NULL;
    int fd = -EADDRNOTAVAIL;
    int r = getaddrinfo(any ? NULL : address->host, address->port, &hints, &found);

    if (r != 0)
        return error_set(err, -EADDRNOTAVAIL,
                         "cannot listen on %s: cannot resolve \"%s\": %s; give an address of this "
                         "machine, or :%s for all of them",
                         text, address->host, gai_strerror(r), address->port);
    for (size_t i = 0; i < ARRAY_SIZE(families) && fd < 0; i++) {
        if (any && fd != -EAFNOSUPPORT && fd != -EADDRNOTAVAIL)
            break;
        for (const struct addrinfo *a = found; a && fd < 0; a = a->ai_next)
            if (a->ai_family == families[i])
                fd = open_socket(a->ai_addr, a->ai_addrlen, any);
    }
    freeaddrinfo(found);
    return fd < 0 ? fail(err, text, -fd, false) : fd;
}

/* A socket file without a listener: left by a process that was killed. */
static bool is_stale(const struct sockaddr_un *address)
{
    _cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    struct stat st;

    if (fd < 0 || lstat(address->sun_path, &st) < 0 || !S_ISSOCK(st.st_mode))
        return false;
    return connect(fd, (const struct sockaddr *)address, sizeof(*address)) < 0 &&
           errno == ECONNREFUSED;
}

static int open_unix(const char *text, const struct listen_address *address, struct error *err)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int fd;

    memcpy(name.sun_path, address->path, sizeof(name.sun_path));
    fd = open_socket((struct sockaddr *)&name, sizeof(name), false);
    if (fd == -EADDRINUSE && is_stale(&name) && unlink(name.sun_path) == 0)
        fd = open_socket((struct sockaddr *)&name, sizeof(name), false);
    return fd < 0 ? fail(err, text, -fd, true) : fd;
}

/* sd_listen_fds(3): how many sockets wait from descriptor 3 on. The variables are for this process
 * alone, so they go in any case. */
static size_t systemd_socket_count(void)
{
    const char *pid_text = getenv("LISTEN_PID"), *count_text = getenv("LISTEN_FDS");
    uint64_t pid = 0, count = 0;

    if (!pid_text || !count_text || parse_u64(span_of(pid_text), &pid) < 0 ||
        pid != (uint64_t)getpid() || parse_u64_max(span_of(count_text), SIZE_MAX, &count) < 0)
        count = 0;
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_FDNAMES");
    return count;
}

static int adopt_listener(int fd, struct error *err)
{
    int listening = 0, type = 0, flags = fcntl(fd, F_GETFL);
    socklen_t len = sizeof(int);

    if (flags < 0 || getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &len) < 0 ||
        !listening || getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) < 0 || type != SOCK_STREAM)
        return error_set(err, -EINVAL,
                         "LISTEN_FDS: descriptor %d is not a listening stream socket; check that "
                         "the .socket unit has ListenStream= and Accept=no",
                         fd);
    if (fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
        return error_set(err, -errno, "LISTEN_FDS: cannot set up descriptor %d: %s", fd,
                         strerror(errno));
    return fd;
}

void listen_close(int fds[], size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct sockaddr_un name = {0};
        socklen_t len = sizeof(name);
        bool is_unix = getsockname(fds[i], (struct sockaddr *)&name, &len) == 0 &&
                       name.sun_family == AF_UNIX && name.sun_path[0] == '/';

        close(fds[i]);
        /* One from systemd is still open there, so its file is not stale. */
        if (is_unix && is_stale(&name))
            unlink(name.sun_path);
    }
}

int listen_open(const char *const addresses[], size_t count, int fds[], size_t *ret_fd_count,
                struct error *err)
{
    size_t adopted = systemd_socket_count(), total = adopted > 0 ? adopted : count;

    if (total > LISTEN_MAX)
        return error_set(err, -E2BIG, "%zu listen addresses; at most %d are served", total,
                         LISTEN_MAX);
    for (size_t i = 0; i < total; i++) {
        struct listen_address address;
        int fd = adopted > 0 ? adopt_listener(SYSTEMD_FIRST_FD + (int)i, err)
                             : listen_parse(addresses[i], &address, err);

        if (adopted == 0 && fd == 0)
            fd = address.path[0] ? open_unix(addresses[i], &address, err)
                                 : open_tcp(addresses[i], &address, err);
        if (fd < 0) {
            listen_close(fds, i);
            return fd;
        }
        fds[i] = fd;
    }
    *ret_fd_count = total;
    return 0;
}

int listen_describe(int fd, char *buf, size_t size)
{
    struct sockaddr_storage address = {0};
    socklen_t len = sizeof(address);
    char host[NI_MAXHOST], port[NI_MAXSERV];

    if (getsockname(fd, (struct sockaddr *)&address, &len) < 0)
        return -errno;
    if (address.ss_family == AF_UNIX) {
        const struct sockaddr_un *name = (const struct sockaddr_un *)&address;

        snprintf(buf, size, "unix:%.*s", (int)sizeof(name->sun_path), name->sun_path);
        return 0;
    }
    if (getnameinfo((struct sockaddr *)&address, len, host, sizeof(host), port, sizeof(port),
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        return -EAFNOSUPPORT;
    snprintf(buf, size, address.ss_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host, port);
    return 0;
}
