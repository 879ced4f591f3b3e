#include "identity/process/connector.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/macros.h"

enum { ACK_MS = 200, ACKS_MAX = 16 };

/* Where a field of an event lies in its message. */
#define EVENT_AT(field)                                                                            \
    (sizeof(struct nlmsghdr) + sizeof(struct cn_msg) + offsetof(struct proc_event, field))

/*
 * The kernel drops what the filter rejects before it is queued. Loads are big-endian.
 *
 * Listening: threads that start, exits and other events would wake us for nothing.
 *
 * Paused: only the answer to our request passes. Unsubscribing would be no better: to subscribe
 * again needs the privileges again, and before Linux 6.6 a socket receives all events as long as
 * any process listens.
 */
int process_connector_pause(int fd, bool paused)
{
    struct sock_filter listening[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, EVENT_AT(what)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htonl(PROC_EVENT_EXEC), 5, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htonl(PROC_EVENT_FORK), 0, 5),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, EVENT_AT(event_data.fork.child_pid)),
        BPF_STMT(BPF_MISC | BPF_TAX, 0),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, EVENT_AT(event_data.fork.child_tgid)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_X, 0, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
        BPF_STMT(BPF_RET | BPF_K, 0),
    };
    struct sock_filter only_acks[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, EVENT_AT(what)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htonl(PROC_EVENT_NONE), 0, 1),
        BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
        BPF_STMT(BPF_RET | BPF_K, 0),
    };
    struct sock_fprog program = {ARRAY_SIZE(listening), listening};

    if (paused)
        program = (struct sock_fprog){ARRAY_SIZE(only_acks), only_acks};
    return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) < 0 ? -errno : 0;
}

static int send_request(int fd, enum proc_cn_mcast_op operation, uint32_t ack)
{
    struct nlmsghdr netlink = {.nlmsg_type = NLMSG_DONE};
    struct cn_msg connector = {
        .id = {CN_IDX_PROC, CN_VAL_PROC},
        .ack = ack,
        .len = sizeof(operation),
    };
    char message[sizeof(netlink) + sizeof(connector) + sizeof(operation)];

    netlink.nlmsg_len = sizeof(message);
    memcpy(message, &netlink, sizeof(netlink));
    memcpy(message + sizeof(netlink), &connector, sizeof(connector));
    memcpy(message + sizeof(netlink) + sizeof(connector), &operation, sizeof(operation));
    return send(fd, message, sizeof(message), 0) < 0 ? -errno : 0;
}

/* Outside the initial namespaces the kernel does not answer at all. */
static int wait_for_ack(int fd, uint32_t ack)
{
    struct pollfd ready = {.fd = fd, .events = POLLIN};

    /* Answers to others that subscribe at the same time arrive here, too. */
    for (int i = 0; i < ACKS_MAX && poll(&ready, 1, ACK_MS) > 0; i++) {
        char message[PROCESS_CONNECTOR_BYTES];
        struct sockaddr_nl from = {0};
        socklen_t from_bytes = sizeof(from);
        ssize_t len = recvfrom(fd, message, sizeof(message), MSG_DONTWAIT, (struct sockaddr *)&from,
                               &from_bytes);
        struct process_event event;

        if (len > 0 && from.nl_pid == 0 &&
            process_event_parse((struct span){message, (size_t)len}, &event) == 0 &&
            event.kind == PROCESS_EVENT_ACK && event.ack == ack)
            return event.error;
    }
    return -EPERM;
}

int process_connector_open(int *ret_fd)
{
    _cleanup_close_ int fd =
        socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_CONNECTOR);
    struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = CN_IDX_PROC};
    uint32_t ack = (uint32_t)getpid(); /* the sequence number is not returned */
    int r;

    if (fd < 0)
        return -errno;
    if ((r = process_connector_pause(fd, true)) < 0)
        return r;
    if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
        return -errno;
    if ((r = send_request(fd, PROC_CN_MCAST_LISTEN, ack)) < 0 ||
        (r = wait_for_ack(fd, ack + 1)) < 0 || (r = process_connector_pause(fd, false)) < 0)
        return r;
    *ret_fd = TAKE_FD(fd);
    return 0;
}

void process_connector_close(int fd)
{
    if (fd < 0)
        return;
    /* Before Linux 6.6 the kernel counts listeners, and does not notice when one goes. */
    (void)send_request(fd, PROC_CN_MCAST_IGNORE, 0);
    close(fd);
}

/* From here on: messages. */

/* A proc_event is not aligned in its message, so everything is copied out. */
static bool read_bytes(struct span *rest, void *ret_bytes, size_t len)
{
    if (rest->len < len)
        return false;
    memcpy(ret_bytes, rest->data, len);
    *rest = (struct span){rest->data + len, rest->len - len};
    return true;
}

/* False: too short, or with an impossible value. */
static bool parse_event(uint32_t what, struct span data, struct process_event *event)
{
    struct fork_proc_event fork;
    struct exec_proc_event exec;
    uint32_t error;
    int32_t pid;

    if (what == PROC_EVENT_NONE) {
        /* The kernel's own numbers are below 4096 (MAX_ERRNO). */
        if (!read_bytes(&data, &error, sizeof(error)) || error >= 4096)
            return false;
        event->kind = PROCESS_EVENT_ACK;
        event->error = -(int)error;
        return true;
    }
    if (what == PROC_EVENT_FORK) {
        if (!read_bytes(&data, &fork, sizeof(fork)))
            return false;
        if (fork.child_pid != fork.child_tgid) /* a thread */
            return true;
        event->kind = PROCESS_EVENT_FORK;
        pid = fork.child_tgid;
    } else if (what == PROC_EVENT_EXEC) {
        if (!read_bytes(&data, &exec, sizeof(exec)))
            return false;
        event->kind = PROCESS_EVENT_EXEC;
        pid = exec.process_tgid;
    } else {
        return true;
    }
    event->pid = (uint32_t)pid;
    return pid > 0;
}

int process_event_parse(struct span message, struct process_event *ret_event)
{
    char before_data[offsetof(struct proc_event, event_data)];
    struct process_event event = {.kind = PROCESS_EVENT_OTHER};
    struct nlmsghdr netlink;
    struct cn_msg connector;
    uint32_t what;

    if (!read_bytes(&message, &netlink, sizeof(netlink)) || netlink.nlmsg_type != NLMSG_DONE ||
        netlink.nlmsg_len < sizeof(netlink) || netlink.nlmsg_len - sizeof(netlink) > message.len)
        return -EBADMSG;
    message.len = netlink.nlmsg_len - sizeof(netlink);
    if (!read_bytes(&message, &connector, sizeof(connector)) || connector.id.idx != CN_IDX_PROC ||
        connector.id.val != CN_VAL_PROC || connector.len > message.len)
        return -EBADMSG;
    message.len = connector.len;
    if (!read_bytes(&message, before_data, sizeof(before_data)))
        return -EBADMSG;
    memcpy(&what, before_data, sizeof(what));
    event.ack = connector.ack;
    if (!parse_event(what, message, &event))
        return -EBADMSG;
    *ret_event = event;
    return 0;
}
