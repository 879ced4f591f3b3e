/* The front as the collector sees it: a child with its arguments, and our ends of its channels. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/api_config.h"
#include "config/redfish_config.h"
#include "core/error.h"
#include "core/log.h"
#include "process/child.h"

struct front_process_options {
    const int *listener_fds; /* stay the caller's; kept open for the front's whole life */
    size_t listener_count;
    const char *metrics_path;
    bool text_only; /* never OpenMetrics */
    enum log_level log_level;
    enum log_format log_format;
    bool has_web_config;          /* it waits for one before it serves */
    const struct api_config *api; /* NULL: no API is asked; else it must outlive the process */
    const struct redfish_flags *redfish; /* NULL: no BMC is asked; likewise */
};

struct front_process {
    struct front_process_options options;
    struct child child;
    int channel_fd; /* our end; -1: none */
    int names_fd;   /* with an API: our end of the second channel; -1: none */
    int power_fd;   /* with a BMC: our end of that channel; -1: none */
    uint64_t starts;
    uint64_t restart_us; /* when the next start is due; 0: none is */
};

void front_process_init(struct front_process *front, const struct front_process_options *options);

/* Starts it. On failure it is due again after the back-off. */
int front_process_start(struct front_process *front, uint64_t now_us, struct error *err);

/*
 * After SIGCHLD: true if the front has ended; *ret_status is what waitpid said. A new start is then
 * due, at once or after the back-off.
 */
bool front_process_reap(struct front_process *front, uint64_t now_us, int *ret_status);

/* It has no names, or no readings, to tell. */
void front_process_close_names(struct front_process *front);
void front_process_close_power(struct front_process *front);

/* Ends it by force: it broke the protocol. SIGCHLD follows. */
void front_process_kill(struct front_process *front);

/* Closes the channel, which is how a front is asked to end, and waits; after `wait_us` by force. */
void front_process_stop(struct front_process *front, uint64_t wait_us);
