#include "process/channel.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

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

/* The many ways in which the kernel says that nobody is at the other end. */
static int peer_error(int error)
{
    return error == EPIPE || error == ECONNRESET || error == ENOTCONN ? -ENOTCONN : -error;
}

static int send_record(int fd, const void *record, size_t len, int body_fd)
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

/*
 * Takes the first descriptor and closes the others: room for one has, by its padding, room for two.
 * Returns how many came.
 */
static size_t take_descriptors(struct msghdr *message, int *ret_fd)
{
    size_t count = 0;

    for (struct cmsghdr *h = CMSG_FIRSTHDR(message); h; h = CMSG_NXTHDR(message, h)) {
        size_t here;

        if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
            continue;
        here = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < here; i++) {
            int fd;

            memcpy(&fd, CMSG_DATA(h) + i * sizeof(fd), sizeof(fd));
            if (count++ == 0)
                *ret_fd = fd;
            else
                close(fd);
        }
    }
    return count;
}

/* One record of exactly `len` bytes. With ret_fd NULL a message with a descriptor is a breach. */
static int receive_record(int fd, void *record, size_t len, int *ret_fd)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec part = {record, len};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    _cleanup_close_ int received_fd = -1;
    size_t fd_count;
    ssize_t n;

    /* Without room for it the kernel itself drops a descriptor, and says so with MSG_CTRUNC. */
    if (ret_fd) {
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof(control.bytes);
    }
    n = recvmsg(fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (n < 0)
        return peer_error(errno);
    fd_count = take_descriptors(&message, &received_fd);
    if (n == 0)
        return -ENOTCONN;
    if ((size_t)n != len || (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) || fd_count > 1)
        return -EPROTO;
    if (ret_fd)
        *ret_fd = TAKE_FD(received_fd);
    return 0;
}

int channel_send_request(int fd, const struct channel_request *request)
{
    return send_record(fd, request, sizeof(*request), -1);
}

int channel_receive_request(int fd, struct channel_request *ret_request)
{
    struct channel_request request = {0};
    int r = receive_record(fd, &request, sizeof(request), NULL);

    if (r < 0)
        return r;
    if (request.format >= PAGE_FORMATS || request.encoding >= PAGE_ENCODINGS)
        return -EPROTO;
    *ret_request = request;
    return 0;
}

int channel_send_container(int fd, const struct channel_container *container)
{
    return send_record(fd, container, sizeof(*container), -1);
}

static bool is_terminated(const char *text, size_t size_bytes)
{
    return memchr(text, '\0', size_bytes) != NULL;
}

#define IS_TERMINATED(array) is_terminated((array), sizeof(array))

static bool is_container_or_pod(const struct channel_container *container)
{
    if (container->id[0] == '\0')
        return container->container[0] == '\0' && container->pod_uid[0] != '\0';
    return strspn(container->id, "0123456789abcdef") == sizeof(container->id) - 1;
}

int channel_receive_container(int fd, struct channel_container *ret_container)
{
    struct channel_container container = {0};
    int r = receive_record(fd, &container, sizeof(container), NULL);

    if (r < 0)
        return r;
    if (!IS_TERMINATED(container.id) || !IS_TERMINATED(container.namespace) ||
        !IS_TERMINATED(container.pod) || !IS_TERMINATED(container.container) ||
        !IS_TERMINATED(container.pod_uid) || !IS_TERMINATED(container.image) ||
        !is_container_or_pod(&container))
        return -EPROTO;
    *ret_container = container;
    return 0;
}

int channel_peek_names_state(int fd, bool *ret_is_state)
{
    char byte;
    ssize_t n = recv(fd, &byte, sizeof(byte), MSG_PEEK | MSG_TRUNC | MSG_DONTWAIT);

    if (n < 0)
        return peer_error(errno);
    *ret_is_state = n == sizeof(struct channel_names_state);
    return 0;
}

int channel_send_names_state(int fd, const struct channel_names_state *state)
{
    return send_record(fd, state, sizeof(*state), -1);
}

int channel_receive_names_state(int fd, struct channel_names_state *ret_state)
{
    struct channel_names_state state = {0};
    int r = receive_record(fd, &state, sizeof(state), NULL);

    if (r < 0)
        return r;
    if (state.result > 0 || state.pad != 0)
        return -EPROTO;
    *ret_state = state;
    return 0;
}

int channel_send_factor(int fd, const struct channel_factor *factor)
{
    return send_record(fd, factor, sizeof(*factor), -1);
}

/* A text that nothing can come of in a log or on a terminal. */
static bool is_printable(const char *text)
{
    while (*text >= ' ' && *text <= '~')
        text++;
    return *text == '\0';
}

/* There is a value, or there is a reason for none. */
static bool is_whole(const struct channel_factor *factor)
{
    if (factor->result == 0)
        return factor->mg_per_kwh <= FACTOR_MAX_MG && factor->why[0] == '\0';
    return factor->result < 0 && factor->mg_per_kwh == 0 && factor->time_us == 0 &&
           factor->is_estimated == 0 && factor->why[0] != '\0';
}

int channel_receive_factor(int fd, struct channel_factor *ret_factor)
{
    struct channel_factor factor = {0};
    int r = receive_record(fd, &factor, sizeof(factor), NULL);

    if (r < 0)
        return r;
    if (factor.index >= CHOICE_MAX || factor.is_estimated > 1 || factor.basis >= PRICE_BASES ||
        !IS_TERMINATED(factor.why) || !is_printable(factor.why) || !is_whole(&factor))
        return -EPROTO;
    *ret_factor = factor;
    return 0;
}

int channel_send_reply(int fd, const struct channel_reply *reply, int body_fd)
{
    return send_record(fd, reply, sizeof(*reply), body_fd);
}

int channel_receive_reply(int fd, struct channel_reply *ret_reply, int *ret_body_fd)
{
    _cleanup_close_ int body_fd = -1;
    struct channel_reply reply = {0};
    int r = receive_record(fd, &reply, sizeof(reply), &body_fd);

    if (r < 0)
        return r;
    if (reply.status >= CHANNEL_STATUS_COUNT || reply.format >= PAGE_FORMATS ||
        reply.encoding >= PAGE_ENCODINGS || reply.pad != 0)
        return -EPROTO;
    if ((body_fd >= 0) != (reply.status == CHANNEL_BODY || reply.status == CHANNEL_JOB))
        return -EPROTO;
    if (body_fd >= 0) {
        r = sealed_check(body_fd, reply.body_bytes);
        if (r < 0)
            return r;
    }
    *ret_reply = reply;
    *ret_body_fd = TAKE_FD(body_fd);
    return 0;
}
