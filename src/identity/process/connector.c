#include "identity/process/connector.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <poll.h>
#include <stdbool.h>
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

static int set_filter(int fd, struct sock_filter *code, size_t count)
{
    struct sock_fprog program = {(unsigned short)count, code};

    return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) < 0 ? -errno : 0;
}

/*
 * Threads that begin, exits and all the rest would wake us for nothing: the kernel drops them
 * before they are queued. Loads are big-endian.
 */
int process_connector_resume(int fd)
{
    struct sock_filter code[] = {
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

    return set_filter(fd, code, ARRAY_SIZE(code));
}

/*
 * Asking the kernel to ignore us would be no better: to listen again would need the privileges
 * again, and before Linux 6.6 a socket is sent all events as long as anybody listens.
 */
int process_connector_pause(int fd)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, EVENT_AT(what)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htonl(PROC_EVENT_NONE), 0, 1),
        BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
        BPF_STMT(BPF_RET | BPF_K, 0),
    };

    return set_filter(fd, code, ARRAY_SIZE(code));
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

/* Outside of the initial namespaces the kernel does not answer at all. */
static int wait_for_ack(int fd, uint32_t ack)
{
    struct pollfd ready = {.fd = fd, .events = POLLIN};

    /* Those of others who begin to listen at the same time come here, too. */
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
    uint32_t ack = (uint32_t)getpid(); /* the sequence number would not come back */
    int r;

    if (fd < 0)
        return -errno;
    r = process_connector_pause(fd);
    if (r < 0)
        return r;
    if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
        return -errno;
    if ((r = send_request(fd, PROC_CN_MCAST_LISTEN, ack)) < 0 ||
        (r = wait_for_ack(fd, ack + 1)) < 0 || (r = process_connector_resume(fd)) < 0)
        return r;
    *ret_fd = TAKE_FD(fd);
    return 0;
}

void process_connector_close(int fd)
{
    if (fd < 0)
        return;
    /* Before Linux 6.6 the kernel counts listeners, and does not notice when one is gone. */
    (void)send_request(fd, PROC_CN_MCAST_IGNORE, 0);
    close(fd);
}

/* From here on: messages. */

/* A proc_event is not aligned in its message, so everything is copied out. */
static bool take(struct span *rest, void *ret_bytes, size_t len)
{
    if (rest->len < len)
        return false;
    memcpy(ret_bytes, rest->data, len);
    *rest = (struct span){rest->data + len, rest->len - len};
    return true;
}

static int check_pid(int32_t pid, struct process_event *event)
{
    if (pid <= 0)
        return -EBADMSG;
    event->pid = (uint32_t)pid;
    return 0;
}

static int parse_ack(struct span data, struct process_event *event)
{
    uint32_t error;

    /* The kernel's own numbers are below 4096 (MAX_ERRNO). */
    if (!take(&data, &error, sizeof(error)) || error >= 4096)
        return -EBADMSG;
    event->kind = PROCESS_EVENT_ACK;
    event->error = -(int)error;
    return 0;
}

static int parse_fork(struct span data, struct process_event *event)
{
    struct fork_proc_event fork;

    if (!take(&data, &fork, sizeof(fork)))
        return -EBADMSG;
    if (fork.child_pid != fork.child_tgid) /* a thread */
        return 0;
    event->kind = PROCESS_EVENT_FORK;
    return check_pid(fork.child_tgid, event);
}

static int parse_exec(struct span data, struct process_event *event)
{
    struct exec_proc_event exec;

    if (!take(&data, &exec, sizeof(exec)))
        return -EBADMSG;
    event->kind = PROCESS_EVENT_EXEC;
    return check_pid(exec.process_tgid, event);
}

static int parse_data(uint32_t what, struct span data, struct process_event *event)
{
    switch (what) {
    case PROC_EVENT_NONE:
        return parse_ack(data, event);
    case PROC_EVENT_FORK:
        return parse_fork(data, event);
    case PROC_EVENT_EXEC:
        return parse_exec(data, event);
    default:
        return 0;
    }
}

int process_event_parse(struct span message, struct process_event *ret_event)
{
    char before_data[offsetof(struct proc_event, event_data)];
    struct process_event event = {.kind = PROCESS_EVENT_OTHER};
    struct nlmsghdr netlink;
    struct cn_msg connector;
    uint32_t what;
    int r;

    if (!take(&message, &netlink, sizeof(netlink)) || netlink.nlmsg_type != NLMSG_DONE ||
        netlink.nlmsg_len < sizeof(netlink) || netlink.nlmsg_len - sizeof(netlink) > message.len)
        return -EBADMSG;
    message.len = netlink.nlmsg_len - sizeof(netlink);
    if (!take(&message, &connector, sizeof(connector)) || connector.id.idx != CN_IDX_PROC ||
        connector.id.val != CN_VAL_PROC || connector.len > message.len)
        return -EBADMSG;
    message.len = connector.len;
    if (!take(&message, before_data, sizeof(before_data)))
        return -EBADMSG;
    memcpy(&what, before_data, sizeof(what));
    event.ack = connector.ack;
    r = parse_data(what, message, &event);
    if (r == 0)
        *ret_event = event;
    return r;
}
