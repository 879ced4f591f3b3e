/* What hwmon's chips, a Cray's controller and resctrl say: any bytes give a value within its
 * bounds, or none. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "model/counter.h"
#include "sources/resctrl/resctrl.h"
#include "sources/sensors/cray.h"
#include "sources/sensors/hwmon.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void parse_resctrl(struct span text)
{
    char id[WORKLOAD_CONTAINER_BYTES];
    uint64_t bytes;
    uint32_t domain;

    (void)resctrl_parse_bytes(text, &bytes);
    if (resctrl_parse_domain(text, &domain) == 0 && domain > RESCTRL_DOMAIN_MAX)
        abort();
    if (resctrl_parse_container(text, id) &&
        (strnlen(id, sizeof(id)) != sizeof(id) - 1 || !span_strip_suffix(&text, id)))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span text = {(const char *)data, size};
    uint64_t value, product;
    struct hwmon_rail rail;
    uint32_t socket;

    parse_resctrl(text);
    if (hwmon_parse_power(text, &value) == 0 && (value == 0 || value >= PLAUSIBLE_POWER_MAX_UW))
        abort();
    if (hwmon_parse_rail(text, &rail) == 0 && (rail.kind > METER_KINDS || rail.socket > 255))
        abort();
    if (hwmon_parse_socket(text, &socket) == 0 && socket > 255)
        abort();
    for (enum cray_file file = 0; file < CRAY_FILES; file++) {
        struct cray_value said = {0};

        if ((cray_parse(file, text, &said) == 0) != said.valid)
            abort();
        if (file >= CRAY_POWER && __builtin_mul_overflow(said.number, 1000000, &product))
            abort();
    }
    return 0;
}
