#include "sources/resctrl/resctrl_parse.h"

#include <errno.h>
#include <string.h>

#include "core/macros.h"
#include "core/parse.h"

enum { ID_LEN = WORKLOAD_CONTAINER_BYTES - 1 };

int resctrl_parse_domain(struct span name, uint32_t *ret_id)
{
    uint64_t id;

    if (!span_strip_prefix(&name, "mon_L3_") || name.len < 2 || /* printed with two digits */
        (name.len > 2 && name.data[0] == '0') || parse_u64_max(name, RESCTRL_DOMAIN_MAX, &id) < 0)
        return -EINVAL;
    *ret_id = (uint32_t)id;
    return 0;
}

int resctrl_parse_bytes(struct span text, uint64_t *ret_bytes)
{
    static const char *const words[] = {"Unavailable", "Unassigned", "Error"};

    (void)span_strip_suffix(&text, "\n");
    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        if (span_equals(text, words[i]))
            return -ENODATA;
    return parse_u64(text, ret_bytes) < 0 ? -EINVAL : 0;
}

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

static bool is_mark(char c)
{
    return c == '.' || c == '-' || c == '_' || c == ':';
}

bool resctrl_parse_container(struct span name, char ret_id[static WORKLOAD_CONTAINER_BYTES])
{
    const char *id = name.data + name.len - MIN(name.len, (size_t)ID_LEN);

    if (name.len < ID_LEN || (name.len > ID_LEN && !is_mark(id[-1])))
        return false;
    for (size_t i = 0; i < ID_LEN; i++)
        if (!is_hex(id[i]))
            return false;
    memcpy(ret_id, id, ID_LEN);
    ret_id[ID_LEN] = '\0';
    return true;
}
