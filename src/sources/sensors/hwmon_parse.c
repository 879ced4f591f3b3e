#include "sources/sensors/hwmon_parse.h"

#include <errno.h>

#include "core/macros.h"
#include "core/parse.h"
#include "sources/plausible.h"

enum { SOCKET_MAX = 255 };

/* Of the kernel's documentation of hwmon, and the drivers. */
static const struct {
    const char *name;
    enum hwmon_chip chip;
} chips[] = {
    {"power_meter", HWMON_POWER_METER},
    {"amd_energy", HWMON_AMD_ENERGY},
    {"amd_hsmp_hwmon", HWMON_CPU_POWER},
    {"fam15h_power", HWMON_CPU_POWER},
};

static const struct {
    const char *name;
    enum hwmon_rail rail;
} rails[] = {
    {"Module", HWMON_RAIL_MODULE},
    {"Grace", HWMON_RAIL_GRACE},
    {"CPU", HWMON_RAIL_CPU},
    {"SysIO", HWMON_RAIL_SYSIO},
};

/* The largest positive of 16 bits, in W. What else means "unknown" is more than a node can draw:
 * 4294967295000 of the ACPI meter, 65535000000. */
static const uint64_t SATURATED_UW = 32767000000;

static struct span without_end(struct span text)
{
    while (text.len > 0 && (text.data[text.len - 1] == '\n' || text.data[text.len - 1] == ' '))
        text.len--;
    return text;
}

enum hwmon_chip hwmon_parse_chip(struct span name)
{
    for (size_t i = 0; i < ARRAY_SIZE(chips); i++)
        if (span_equals(without_end(name), chips[i].name))
            return chips[i].chip;
    return HWMON_OTHER;
}

int hwmon_parse_power(struct span text, uint64_t *ret_uw)
{
    uint64_t power_uw;
    int r = parse_u64(without_end(text), &power_uw);

    if (r == -ERANGE)
        return -ENODATA;
    if (r < 0)
        return r;
    /* A node that runs draws something: 0 is a sensor that is off. */
    if (power_uw == 0 || power_uw == SATURATED_UW || power_uw >= PLAUSIBLE_POWER_MAX_UW)
        return -ENODATA;
    *ret_uw = power_uw;
    return 0;
}

int hwmon_parse_energy(struct span text, uint64_t *ret_uj)
{
    return parse_u64(without_end(text), ret_uj);
}

int hwmon_parse_rail(struct span text, enum hwmon_rail *ret_rail, uint32_t *ret_socket)
{
    static const char SEPARATOR[] = " Power Socket ";
    struct span whole = without_end(text), name, number;
    const char *at =
        whole.len > 0 ? memmem(whole.data, whole.len, SEPARATOR, strlen(SEPARATOR)) : NULL;
    enum hwmon_rail rail = HWMON_RAIL_UNKNOWN;
    uint64_t socket;

    if (!at)
        return -EINVAL;
    name = (struct span){whole.data, (size_t)(at - whole.data)};
    number = (struct span){at, whole.len - name.len};
    if (!span_strip_prefix(&number, SEPARATOR) || parse_u64_max(number, SOCKET_MAX, &socket) < 0)
        return -EINVAL;
    for (size_t i = 0; i < ARRAY_SIZE(rails); i++)
        if (span_equals(name, rails[i].name))
            rail = rails[i].rail;
    *ret_rail = rail;
    *ret_socket = (uint32_t)socket;
    return 0;
}

int hwmon_parse_socket(struct span text, uint32_t *ret_socket)
{
    struct span number = without_end(text);
    uint64_t socket;

    if (!span_strip_prefix(&number, "Esocket") || parse_u64_max(number, SOCKET_MAX, &socket) < 0)
        return -EINVAL;
    *ret_socket = (uint32_t)socket;
    return 0;
}
