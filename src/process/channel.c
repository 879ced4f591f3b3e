#include "process/channel.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

#include "core/error.h"
#include "core/fs.h"
#include "core/macros.h"
#include "emissions/choice.h"
#include "emissions/factor.h"

int channel_open(int *ret_collector_fd, int *ret_child_fd)
{
    int fds[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) < 0)
        return -errno;
    *ret_collector_fd = fds[0];
    *ret_child_fd = fds[1];
    return 0;
}

/* The kernel has several errors for a peer that is gone. */
static int peer_error(int error)
{
    return error == EPIPE || error == ECONNRESET || error == ENOTCONN ? -ENOTCONN : -error;
}

int channel_send(int fd, const void *record, size_t len, int body_fd)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {0};
    struct iovec part = {(void *)record, len};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

    if (body_fd >= 0) {
        struct cmsghdr *header;

        message.msg_control = control.bytes;
        message.msg_controllen = sizeof(control.bytes);
        header = CMSG_FIRSTHDR(&message);
        *header = (struct cmsghdr){
            .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(header), &body_fd, sizeof(body_fd));
    }
    return sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? peer_error(errno) : 0;
}

/* The length of one record, or -errno. With ret_fd NULL a descriptor is not allowed. */
static ssize_t receive_record(int fd, void *record, size_t size, int *ret_fd)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec part = {record, size};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    _cleanup_close_ int received_fd = -1;
    const struct cmsghdr *header;
    ssize_t n;

    /* The kernel drops descriptors for which there is no room, and sets MSG_CTRUNC. With its
     * padding, CMSG_SPACE would have room for two. */
    if (ret_fd) {
        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_LEN(sizeof(int));
    }
    n = recvmsg(fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    /* Once, if the peer has ended without reading all, such as a ping: what it sent is still there.
     */
    if (n < 0 && errno == ECONNRESET)
        n = recvmsg(fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (n < 0)
        return peer_error(errno);
    header = CMSG_FIRSTHDR(&message);
    if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS)
        memcpy(&received_fd, CMSG_DATA(header), sizeof(received_fd));
    if (n == 0)
        return -ENOTCONN;
    if (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC))
        return -EPROTO;
    if (ret_fd)
        *ret_fd = TAKE_FD(received_fd);
    return n;
}

/* The first bytes of a record that is as long as a ping: 1 or -EPROTO. No other one is. */
static int take_ping(const void *record, struct channel_ping *ret_ping)
{
    struct channel_ping ping;

    memcpy(&ping, record, sizeof(ping));
    if (ping.number == 0)
        return -EPROTO;
    *ret_ping = ping;
    return 1;
}

/* 0, or 1 for a ping. */
static int receive_exactly(int fd, void *record, size_t len, int *ret_fd,
                           struct channel_ping *ret_ping)
{
    ssize_t n = receive_record(fd, record, len, ret_fd);

    if (n < 0)
        return (int)n;
    if (n == sizeof(*ret_ping))
        return ret_fd && *ret_fd >= 0 ? -EPROTO : take_ping(record, ret_ping);
    return (size_t)n == len ? 0 : -EPROTO;
}

int channel_receive_ping(int fd, struct channel_ping *ret_ping)
{
    struct channel_ping ping = {0};
    ssize_t n = receive_record(fd, &ping, sizeof(ping), NULL);

    if (n < 0)
        return (int)n;
    return n == sizeof(ping) && take_ping(&ping, ret_ping) > 0 ? 0 : -EPROTO;
}

int channel_receive_request(int fd, struct channel_request *ret_request,
                            struct channel_ping *ret_ping)
{
    struct channel_request request = {0};
    int r = receive_exactly(fd, &request, sizeof(request), NULL, ret_ping);

    if (r != 0)
        return r;
    if (request.format >= PAGE_FORMATS || request.encoding >= PAGE_ENCODINGS)
        return -EPROTO;
    *ret_request = request;
    return 0;
}

#define IS_TERMINATED(array) (memchr((array), '\0', sizeof(array)) != NULL)

/* Harmless in a log and on a terminal. */
static bool is_printable(const char *text)
{
    while (*text >= ' ' && *text <= '~')
        text++;
    return *text == '\0';
}

static bool is_valid_container(const struct channel_container *container)
{
    if (!IS_TERMINATED(container->id) || !IS_TERMINATED(container->namespace) ||
        !IS_TERMINATED(container->pod) || !IS_TERMINATED(container->container) ||
        !IS_TERMINATED(container->pod_uid) || !IS_TERMINATED(container->image))
        return false;
    if (container->id[0] == '\0')
        return container->container[0] == '\0' && container->pod_uid[0] != '\0';
    return strspn(container->id, "0123456789abcdef") == sizeof(container->id) - 1;
}

static bool is_valid_state(const struct channel_names_state *state)
{
    return error_is_result(state->result) && state->pad == 0 && IS_TERMINATED(state->why) &&
           is_printable(state->why) && (state->result == 0) == (state->why[0] == '\0');
}

int channel_receive_names(int fd, struct channel_names *ret_names, struct channel_ping *ret_ping)
{
    struct channel_names names = {0};
    ssize_t n = receive_record(fd, &names.container, sizeof(names.container), NULL);

    if (n < 0)
        return (int)n;
    if (n == sizeof(*ret_ping))
        return take_ping(&names.container, ret_ping);
    names.is_state = n == sizeof(names.state);
    if (names.is_state ? !is_valid_state(&names.state)
                       : n != sizeof(names.container) || !is_valid_container(&names.container))
        return -EPROTO;
    *ret_names = names;
    return 0;
}

/* There is a value, or a reason for none. */
static bool is_valid_factor(const struct channel_factor *factor)
{
    if (factor->index >= CHOICE_MAX || factor->is_estimated > 1 || factor->basis >= PRICE_BASES ||
        !IS_TERMINATED(factor->why) || !is_printable(factor->why))
        return false;
    if (factor->result == 0)
        return factor->mg_per_kwh <= FACTOR_MAX_MG && factor->why[0] == '\0';
    return error_is_result(factor->result) && factor->mg_per_kwh == 0 && factor->time_us == 0 &&
           factor->is_estimated == 0 && factor->why[0] != '\0';
}

int channel_receive_factor(int fd, struct channel_factor *ret_factor, struct channel_ping *ret_ping)
{
    struct channel_factor factor = {0};
    int r = receive_exactly(fd, &factor, sizeof(factor), NULL, ret_ping);

    if (r != 0)
        return r;
    if (!is_valid_factor(&factor))
        return -EPROTO;
    *ret_factor = factor;
    return 0;
}

int channel_receive_reply(int fd, struct channel_reply *ret_reply, int *ret_body_fd,
                          struct channel_ping *ret_ping)
{
    _cleanup_close_ int body_fd = -1;
    struct channel_reply reply = {0};
    int r = receive_exactly(fd, &reply, sizeof(reply), &body_fd, ret_ping);

    if (r != 0)
        return r;
    if (reply.status >= CHANNEL_STATUS_COUNT || reply.format >= PAGE_FORMATS ||
        reply.encoding >= PAGE_ENCODINGS || reply.pad != 0)
        return -EPROTO;
    if ((body_fd >= 0) != (reply.status == CHANNEL_BODY || reply.status == CHANNEL_JOB))
        return -EPROTO;
    if (body_fd >= 0) {
        r = fs_check_sealed(body_fd, reply.body_bytes);
        if (r < 0)
            return r;
    }
    *ret_reply = reply;
    *ret_body_fd = TAKE_FD(body_fd);
    return 0;
}
