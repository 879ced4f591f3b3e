/* A message of the process events connector: any bytes give a real pid, or nothing. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "identity/process/connector.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct process_event event;
    bool names_one;

    if (size == 0 || process_event_parse((struct span){(const char *)data, size}, &event) < 0)
        return 0;
    names_one = event.kind == PROCESS_EVENT_FORK || event.kind == PROCESS_EVENT_EXEC;
    if (names_one != (event.pid > 0 && event.pid <= INT32_MAX))
        abort();
    if (event.error > 0 || event.error <= -4096)
        abort();
    return 0;
}
