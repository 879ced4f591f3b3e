/* An answer to DCMI's Get Power Reading: any bytes give plausible watts, or one of the reasons. */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "sources/bmc/ipmi.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct dcmi_power power;
    struct error err = {""};
    int r = dcmi_parse_power((struct span){(const char *)data, size}, &power, &err);

    switch (r) {
    case 0:
        if (size < 10 || data[0] != 0 || data[1] != 0xdc || power.current_w == 0 ||
            power.current_w >= 50000)
            abort();
        return 0;
    case -EOPNOTSUPP:
    case -ENODATA:
    case -EBUSY:
    case -ETIMEDOUT:
    case -EAGAIN:
    case -EBADMSG:
        if (err.text[0] == '\0')
            abort();
        return 0;
    default:
        abort();
    }
}
