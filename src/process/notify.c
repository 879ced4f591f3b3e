#include "process/notify.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "core/macros.h"
#include "core/parse.h"

/* Half of the limit, as sd_watchdog_enabled(3) recommends. The variables are for another process if
 * they were inherited from a wrapper. */
static uint64_t beat_interval_us(const char *usec, const char *pid)
{
    uint64_t limit_us, number;

    if (!usec || parse_u64(span_of(usec), &limit_us) < 0)
        return 0;
    if (pid && (parse_u64(span_of(pid), &number) < 0 || number != (uint64_t)getpid()))
        return 0;
    return limit_us / 2;
}

static int set_address(struct notify *notify, const char *name)
{
    size_t len = strlen(name);

    if (name[0] != '/' && name[0] != '@')
        return -EAFNOSUPPORT; /* vsock: of a whole virtual machine */
    if (len >= sizeof(notify->address.sun_path))
        return -ENAMETOOLONG;
    notify->address.sun_family = AF_UNIX;
    memcpy(notify->address.sun_path, name, len);
    if (name[0] == '@')
        notify->address.sun_path[0] = '\0'; /* and its length is what counts */
    notify->address_len =
        (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len + (name[0] != '@'));
    return 0;
}

int notify_open(struct notify *notify, const char *socket_name, const char *watchdog_usec,
                const char *watchdog_pid)
{
    int r;

    *notify = (struct notify){.fd = -1};
    if (!socket_name || socket_name[0] == '\0')
        return 0;
    r = set_address(notify, socket_name);
    if (r < 0)
        return r;
    notify->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (notify->fd < 0)
        return -errno;
    notify->beat_us = beat_interval_us(watchdog_usec, watchdog_pid);
    return 0;
}

void notify_close(struct notify *notify)
{
    cleanup_close(&notify->fd);
    notify->fd = -1;
}

bool notify_send(const struct notify *notify, const char *state)
{
    return notify->fd < 0 ||
           sendto(notify->fd, state, strlen(state), MSG_NOSIGNAL | MSG_DONTWAIT,
                  (const struct sockaddr *)&notify->address, notify->address_len) >= 0 ||
           errno != EAGAIN;
}
