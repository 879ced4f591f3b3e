/* A reading of the node's power, sent by the fetcher (bmc) to the source. */
#pragma once

#include <stdint.h>

/* A compromised fetcher can at worst lie about the node's power, within what a node can draw; no
 * workload is charged by it. */
struct redfish_reading {
    uint64_t power_mw; /* 0 if there is none */
    uint64_t taken_us; /* by the monotonic clock */
    int32_t result;    /* 0 or -errno */
    char why[228];     /* NUL-terminated */
};

/* Over a SOCK_SEQPACKET socket, without blocking. 0, -EAGAIN (nothing there, or no room), -EPROTO
 * (not a reading) or -errno. */
int redfish_reading_send(int fd, const struct redfish_reading *reading);
int redfish_reading_receive(int fd, struct redfish_reading *ret_reading);
