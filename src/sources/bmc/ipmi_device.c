/* The kernel's IPMI driver: requests and responses. */
#include <errno.h>
#include <fcntl.h>
#include <linux/ipmi.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/macros.h"
#include "sources/bmc/ipmi.h"

/* More messages than this in one go are not for us: we wait for one response. */
enum { RECEIVED_MAX = 64 };

static int system_open(const struct ipmi_calls *calls, int dir_fd, const char *path)
{
    /* The driver ignores the mode, so that the lesser right is enough. */
    _cleanup_close_ int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat status;

    (void)calls;
    if (fd < 0 || fstat(fd, &status) < 0)
        return -errno;
    return S_ISCHR(status.st_mode) ? TAKE_FD(fd) : -ENODEV;
}

static int system_control(const struct ipmi_calls *calls, int fd, unsigned long request,
                          void *argument)
{
    (void)calls;
    return ioctl(fd, request, argument) < 0 ? -errno : 0;
}

static int system_wait(const struct ipmi_calls *calls, int fd, uint64_t timeout_us)
{
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    int r;

    (void)calls;
    /* Rounded up: a last fraction of a millisecond must not become many waits of none. */
    r = poll(&ready, 1, (int)((timeout_us + 999) / 1000));
    if (r < 0)
        return -errno;
    if (r > 0 && !(ready.revents & POLLIN))
        return -ENODEV;
    return r;
}

static void system_close(const struct ipmi_calls *calls, int fd)
{
    (void)calls;
    close(fd);
}

const struct ipmi_calls ipmi_calls_system = {
    .open = system_open,
    .control = system_control,
    .wait = system_wait,
    .close = system_close,
};

int ipmi_device_open(struct ipmi_device *device, const struct host *host, struct error *err)
{
    /* A container is given the device in its own /dev, and may not open the one below the host's
     * root. Without the first slash they are relative. */
    static const char *const nodes[] = {"/dev/ipmi0", "/dev/ipmi/0", "/dev/ipmidev/0"};
    const char *refused = NULL;

    for (size_t i = 0; i < 2 * ARRAY_SIZE(nodes); i++) {
        bool is_ours = i >= ARRAY_SIZE(nodes);
        const char *node = nodes[i % ARRAY_SIZE(nodes)];
        int fd = device->calls->open(device->calls, is_ours ? AT_FDCWD : host->rootfs_fd,
                                     is_ours ? node : node + 1);

        if (fd >= 0) {
            device->fd = fd;
            device->outstanding = false;
            return 0;
        }
        if (fd == -EACCES || fd == -EPERM)
            refused = node;
    }
    if (refused)
        return error_set(err, -EACCES,
                         "cannot open %s: not permitted; run as root or let this user read it, and "
                         "in a container or unit allow the device (char-ipmidev)",
                         refused);
    return error_set(err, -ENODEV, "no %s, or no interface to a BMC behind it", nodes[0]);
}

void ipmi_device_close(struct ipmi_device *device)
{
    if (device->fd >= 0)
        device->calls->close(device->calls, device->fd);
    device->fd = -1;
}

static int send_request(struct ipmi_device *device, struct error *err)
{
    /* System power statistics, without attributes. */
    unsigned char data[] = {DCMI_GROUP_ID, 0x01, 0x00, 0x00};
    struct ipmi_system_interface_addr address = {
        .addr_type = IPMI_SYSTEM_INTERFACE_ADDR_TYPE,
        .channel = IPMI_BMC_CHANNEL,
    };
    struct ipmi_req request = {
        .addr = (unsigned char *)&address,
        .addr_len = sizeof(address),
        .msgid = ++device->last_msgid,
        .msg = {.netfn = DCMI_NETFN,
                .cmd = DCMI_GET_POWER_READING,
                .data_len = sizeof(data),
                .data = data},
    };
    int r = device->calls->control(device->calls, device->fd, IPMICTL_SEND_COMMAND, &request);

    if (r == -ENODEV)
        return error_set(err, r, "the interface to the BMC is gone");
    if (r == -EBUSY || r == -EAGAIN)
        return error_set(err, -EAGAIN, "the IPMI driver is busy with other requests");
    if (r < 0)
        return error_set(err, r, "cannot send a request to the BMC: %s", strerror(-r));
    device->outstanding = true;
    return 0;
}

/* 1: the response to the last request; 0: another message; -EAGAIN: there is none. */
static int receive(struct ipmi_device *device, struct ipmi_response *ret_response,
                   struct error *err)
{
    struct ipmi_addr address;
    struct ipmi_recv message = {
        .addr = (unsigned char *)&address,
        .addr_len = sizeof(address),
        .msg = {.data = ret_response->data, .data_len = sizeof(ret_response->data)},
    };
    int r = device->calls->control(device->calls, device->fd, IPMICTL_RECEIVE_MSG_TRUNC, &message);

    if (r == -EAGAIN)
        return r;
    if (r < 0 && r != -EMSGSIZE) /* which was delivered as well, cut */
        return error_set(err, r, "cannot receive from the BMC: %s", strerror(-r));
    if (message.recv_type != IPMI_RESPONSE_RECV_TYPE || message.msgid != device->last_msgid ||
        !device->outstanding)
        return 0;
    device->outstanding = false;
    ret_response->netfn = message.msg.netfn;
    ret_response->command = message.msg.cmd;
    ret_response->len = MIN((size_t)message.msg.data_len, sizeof(ret_response->data));
    return 1;
}

/* Until the response to the last request comes. */
static int await_response(struct ipmi_device *device, uint64_t deadline_us,
                          struct ipmi_response *ret_response, struct error *err)
{
    for (int i = 0; i < RECEIVED_MAX; i++) {
        uint64_t now_us = device->clock->monotonic_us(device->clock);
        int r = now_us < deadline_us
                    ? device->calls->wait(device->calls, device->fd, deadline_us - now_us)
                    : 0;

        if (r == -EINTR)
            continue;
        if (r == 0)
            return error_set(err, -ETIMEDOUT, "the BMC does not answer");
        if (r < 0)
            return error_set(err, r, "cannot wait for the BMC: %s", strerror(-r));
        r = receive(device, ret_response, err);
        if (r == 1 || (r < 0 && r != -EAGAIN))
            return r < 0 ? r : 0;
    }
    return error_set(err, -EIO, "the IPMI driver sends messages that were not asked for");
}

int ipmi_device_query(struct ipmi_device *device, uint64_t timeout_us,
                      struct ipmi_response *ret_response, struct error *err)
{
    uint64_t deadline_us = device->clock->monotonic_us(device->clock) + timeout_us;
    int r = 0;

    /* What is left of earlier requests goes first. */
    for (int i = 0; i < RECEIVED_MAX && r >= 0; i++)
        r = receive(device, ret_response, err);
    r = r == -EAGAIN || r > 0 ? 0 : r;
    if (r == 0 && device->outstanding)
        r = await_response(device, deadline_us, ret_response, err);
    if (r == 0)
        r = send_request(device, err);
    if (r == 0)
        r = await_response(device, deadline_us, ret_response, err);
    if (r < 0)
        return r;
    /* Bit 0 tells a response from its request. */
    if (ret_response->netfn != (DCMI_NETFN | 1) ||
        ret_response->command != DCMI_GET_POWER_READING || ret_response->len == 0)
        return error_set(err, -EBADMSG, "the BMC answered another request");
    return 0;
}
