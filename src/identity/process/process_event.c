#include "identity/process/process_event.h"

#include <errno.h>
#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/netlink.h>
#include <stdbool.h>
#include <stddef.h>

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
