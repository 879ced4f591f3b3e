#include "identity/gpus/device_rules.h"

#include <string.h>

#include "core/parse.h"

static bool has_byte(struct span text, char byte)
{
    return text.len > 0 && memchr(text.data, byte, text.len);
}

static bool is_number(struct span text, uint32_t number)
{
    uint64_t value;

    return span_equals(text, "*") || (parse_u64(text, &value) == 0 && value == number);
}

/* "c 195:0 rwm", "c *:* m" (Docker's default: nodes may be made, but not opened), "a *:* rwm". */
static bool allows(struct span line, uint32_t major, uint32_t minor)
{
    struct span type = span_cut(&line, ' ');
    struct span device = span_cut(&line, ' ');
    struct span of_major = span_cut(&device, ':');

    return (span_equals(type, "c") || span_equals(type, "a")) && is_number(of_major, major) &&
           is_number(device, minor) && has_byte(line, 'r') && has_byte(line, 'w');
}

bool device_rules_allow(struct span rules, uint32_t major, uint32_t minor)
{
    while (rules.len > 0)
        if (allows(span_cut(&rules, '\n'), major, minor))
            return true;
    return false;
}

bool device_rules_allow_all(struct span rules)
{
    while (rules.len > 0)
        if (span_equals(span_cut(&rules, '\n'), "a *:* rwm"))
            return true;
    return false;
}

static bool has_devices(struct span controllers)
{
    while (controllers.len > 0)
        if (span_equals(span_cut(&controllers, ','), "devices"))
            return true;
    return false;
}

bool device_rules_find_path(struct span cgroup_file, struct span *ret_path)
{
    while (cgroup_file.len > 0) {
        struct span path = span_cut(&cgroup_file, '\n');

        span_cut(&path, ':');
        if (!has_devices(span_cut(&path, ':')))
            continue;
        if (path.len == 0 || path.data[0] != '/' || memmem(path.data, path.len, "/..", 3))
            return false;
        *ret_path = path;
        return true;
    }
    return false;
}
