/* A socket on which the kernel tells which processes begin and which become other programs: the
 * process events connector of netlink (Documentation/driver-api/connector.rst). */
#pragma once

enum { PROCESS_CONNECTOR_BYTES = 256 }; /* for one message; the kernel's have 76 */

/* Non-blocking; hears of processes at once. Its messages are for process_event_parse. Errors as of
 * process_events_start. */
int process_connector_open(int *ret_fd);

/* Accepts -1. */
void process_connector_close(int fd);

/* No more processes are queued, or they are again. */
int process_connector_pause(int fd);
int process_connector_resume(int fd);
