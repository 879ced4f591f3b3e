/* What /proc says of a process: any bytes give a command within them and a user, or nothing. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "model/proc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_within(struct span part, struct span whole)
{
    if (part.len > 0 && (part.data < whole.data || part.data + part.len > whole.data + whole.len))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span text = {(const char *)data, size}, command;
    uint64_t ticks;
    uint32_t uid;

    if (size == 0)
        return 0;
    if (proc_parse_stat(text, &command, &ticks) == 0)
        check_within(command, text);
    (void)proc_parse_uid(text, &uid);
    return 0;
}
