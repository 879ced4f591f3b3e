/*
 * The node's BMC behind the kernel's driver (linux/ipmi.h): one question at a time, each with its
 * deadline.
 *
 * A question that was not answered in time stays with the driver, whose own retries may last far
 * longer; its late answer is recognised and dropped, and until it came no other is asked.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/clock.h"
#include "core/error.h"
#include "host/host.h"

enum { IPMI_ANSWER_MAX_BYTES = 272 }; /* the driver's IPMI_MAX_MSG_LENGTH */

/* The system calls, so that tests can be the driver. All return -errno. */
struct ipmi_calls {
    int (*open)(const struct ipmi_calls *calls, int dir_fd, const char *path); /* a descriptor */
    int (*control)(const struct ipmi_calls *calls, int fd, unsigned long request, void *argument);
    /* 1: there is something to receive; 0: not within that time. */
    int (*wait)(const struct ipmi_calls *calls, int fd, uint64_t timeout_us);
    void (*close)(const struct ipmi_calls *calls, int fd);
};

extern const struct ipmi_calls ipmi_calls_system;

struct ipmi_device {
    const struct ipmi_calls *calls;
    const struct clock *clock;
    int fd;           /* -1: closed */
    long last_msgid;  /* never used twice */
    bool outstanding; /* that one has not been answered */
};

struct ipmi_question {
    uint8_t netfn, command;
    const uint8_t *data;
    size_t len;
};

struct ipmi_answer {
    uint8_t data[IPMI_ANSWER_MAX_BYTES]; /* the completion code first */
    size_t len;
};

/* Closed as yet. The calls and the clock must outlive it. */
void ipmi_device_init(struct ipmi_device *device, const struct ipmi_calls *calls,
                      const struct clock *clock);

/* Opens the first node that there is: below the host's root, else our own. Does not block. -ENODEV:
 * there is none, or no interface behind it; -EACCES: it must not be opened. Both with a text. */
int ipmi_device_open(struct ipmi_device *device, const struct host *host, struct error *err);
void ipmi_device_close(struct ipmi_device *device);

/*
 * Asks, and waits for at most `timeout_us`. With a text -ENODEV: the interface is gone, open it
 * again; -ETIMEDOUT: no answer yet; -EAGAIN: the driver has too much to do; or another -errno.
 */
int ipmi_device_ask(struct ipmi_device *device, const struct ipmi_question *question,
                    uint64_t timeout_us, struct ipmi_answer *ret_answer, struct error *err);
