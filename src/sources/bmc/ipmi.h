/*
 * The power of the node as its BMC reports it: DCMI's Get Power Reading (DCMI 1.5, 6.6.1) over the
 * kernel's IPMI driver (linux/ipmi.h), every 10 s.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/span.h"
#include "sources/source.h"

extern const struct source_ops ipmi_source;

/* The system calls, so that tests can be the driver. All return -errno. */
struct ipmi_calls {
    int (*open)(const struct ipmi_calls *calls, int dir_fd, const char *path); /* a descriptor */
    int (*control)(const struct ipmi_calls *calls, int fd, unsigned long request, void *argument);
    /* 1: there is something to receive; 0: not within that time. */
    int (*wait)(const struct ipmi_calls *calls, int fd, uint64_t timeout_us);
    void (*close)(const struct ipmi_calls *calls, int fd);
};

extern const struct ipmi_calls ipmi_calls_system;

/* The source's open, with other system calls, which must outlive it. */
int ipmi_open_with(const struct source_context *context, const struct ipmi_calls *calls,
                   void **ret_state, struct error *err);

/*
 * The node's BMC behind the driver: one request at a time, each with its deadline. A request that
 * was not answered in time stays with the driver, which may retry for far longer; its late response
 * is recognised and dropped, and no other is sent before.
 */
struct ipmi_device {
    const struct ipmi_calls *calls; /* outlive it, as does the clock */
    const struct clock *clock;
    int fd;           /* -1: closed */
    long last_msgid;  /* never used twice */
    bool outstanding; /* that one has not been answered */
};

enum { DCMI_NETFN = 0x2c, DCMI_GET_POWER_READING = 0x02, DCMI_GROUP_ID = 0xdc };
enum { IPMI_RESPONSE_MAX_BYTES = 272 }; /* the driver's IPMI_MAX_MSG_LENGTH */

struct ipmi_response {
    uint8_t netfn, command;
    uint8_t data[IPMI_RESPONSE_MAX_BYTES]; /* the completion code first */
    size_t len;
};

/* Opens the first node that there is: below the host's root, else our own. Does not block. -ENODEV:
 * there is none, or no interface behind it; -EACCES: it must not be opened. Both with a text. */
int ipmi_device_open(struct ipmi_device *device, const struct host *host, struct error *err);
void ipmi_device_close(struct ipmi_device *device);

/*
 * Sends DCMI's Get Power Reading, and waits for at most `timeout_us`. With a text -ENODEV: the
 * interface is gone, open it again; -ETIMEDOUT: no response yet; -EAGAIN: the driver is busy;
 * -EBADMSG: not a response to this; or another -errno.
 */
int ipmi_device_query(struct ipmi_device *device, uint64_t timeout_us,
                      struct ipmi_response *ret_response, struct error *err);

struct dcmi_power {
    uint16_t current_w; /* never 0 */
    uint32_t time_s;    /* of the BMC's clock; 0: unknown */
    /* Of these and the statistics. They cover the time since the BMC last reset them, which may be
     * weeks, and only show whether it is alive. */
    uint64_t hash;
};

/*
 * A response's data. Pure. 0, or with a text -EOPNOTSUPP: it will never report power; -ENODATA: it
 * has no reading now; -EBUSY: it starts, try again in a minute; -ETIMEDOUT: it did not answer the
 * driver; -EAGAIN: another failure of its own; -EBADMSG: not such a response.
 */
int dcmi_parse_power(struct span data, struct dcmi_power *ret_power, struct error *err);
