/*
 * Notify: tells the service manager that started this process (systemd, or Podman with --sdnotify)
 * how it is, by the protocol of sd_notify(3). Without one nothing is sent.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

struct notify {
    int fd; /* -1: there is no service manager */
    struct sockaddr_un address;
    socklen_t address_len;
    uint64_t beat_us; /* how often the watchdog is to be told; 0: it is not wanted */
};

/*
 * By the values of $NOTIFY_SOCKET (a path, or @NAME for an abstract socket), $WATCHDOG_USEC and
 * $WATCHDOG_PID; NULL: not set. 0, -EAFNOSUPPORT (another kind of socket), -ENAMETOOLONG or -errno;
 * then, too, it can be used, and tells nobody.
 */
int notify_open(struct notify *notify, const char *socket_name, const char *watchdog_usec,
                const char *watchdog_pid);
void notify_close(struct notify *notify);

/* "READY=1", "WATCHDOG=1", ... False: the manager has no room for it now. */
bool notify_send(const struct notify *notify, const char *state);
