#include "identity/gpus/device_rules.h"

#include <stdio.h>
#include <string.h>

#include "core/fs.h"
#include "core/parse.h"
#include "host/cgroup_delegation.h"
#include "identity/owner.h"

struct rule {
    bool is_char; /* "c", or "a" for all */
    bool is_open; /* for reading and writing */
    struct span major, minor;
};

static bool has_byte(struct span text, char byte)
{
    return text.len > 0 && memchr(text.data, byte, text.len);
}

/* "c 195:0 rwm", "c *:* m" (Docker's default: nodes may be made, but not opened), "a *:* rwm". */
static struct rule next_rule(struct span *rules)
{
    struct span line = span_cut(rules, '\n'), type = span_cut(&line, ' ');
    struct span minor = span_cut(&line, ' '), major = span_cut(&minor, ':');

    return (struct rule){.is_char = span_equals(type, "c") || span_equals(type, "a"),
                         .is_open = has_byte(line, 'r') && has_byte(line, 'w'),
                         .major = major,
                         .minor = minor};
}

static bool is_number(struct span text, uint32_t number)
{
    uint64_t value;

    return span_equals(text, "*") || (parse_u64(text, &value) == 0 && value == number);
}

bool device_rules_allow(struct span rules, uint32_t major, uint32_t minor)
{
    while (rules.len > 0) {
        struct rule rule = next_rule(&rules);

        if (rule.is_char && rule.is_open && is_number(rule.major, major) &&
            is_number(rule.minor, minor))
            return true;
    }
    return false;
}

bool device_rules_allow_all(struct span rules)
{
    while (rules.len > 0)
        if (span_equals(span_cut(&rules, '\n'), "a *:* rwm"))
            return true;
    return false;
}

bool device_rules_are_specific(struct span rules, uint32_t major)
{
    while (rules.len > 0) {
        struct rule rule = next_rule(&rules);

        if (rule.is_char && rule.is_open && is_number(rule.major, major) &&
            span_equals(rule.minor, "*"))
            return false;
    }
    return true;
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

static bool read_list(const struct host *host, struct span above, struct span below, char *rules,
                      size_t size_bytes, size_t *ret_len)
{
    char name[4096];
    int len = snprintf(name, sizeof(name), "fs/cgroup/devices%.*s/%.*s/devices.list",
                       (int)above.len, above.data, (int)below.len, below.data);

    return len > 0 && (size_t)len < sizeof(name) &&
           fs_read_at(host->sysfs_fd, name, rules, size_bytes, ret_len) == 0;
}

/* The text has the mark of delegation, the file system does not. */
static bool find_place(struct span cgroup_file, struct cgroup_mark *ret_mark)
{
    struct span path;

    if (!device_rules_find_path(cgroup_file, &path) || path.len > 4096)
        return false;
    if (!cgroup_mark_find(path, ret_mark))
        *ret_mark = (struct cgroup_mark){.above = path, .below = {"", 0}};
    return true;
}

bool device_rules_read(const struct host *host, struct span cgroup_file, char *rules,
                       size_t size_bytes, size_t *ret_len)
{
    struct cgroup_mark place;

    return find_place(cgroup_file, &place) &&
           read_list(host, place.above, place.below, rules, size_bytes, ret_len);
}

static struct span parent_of(struct span path)
{
    while (path.len > 0 && path.data[--path.len] != '/')
        ;
    return path;
}

bool device_rules_read_owner(const struct host *host, const struct workload_owner *owner,
                             struct span cgroup_file, char *rules, size_t size_bytes,
                             size_t *ret_len)
{
    struct cgroup_mark place;
    struct span path;

    /* What a tenant named is never the whole owner. */
    if (!find_place(cgroup_file, &place) || !owner_has_cgroup_file(owner, place.above))
        return false;
    path = place.above;
    for (struct span up = parent_of(path); up.len > 0 && owner_has_cgroup_file(owner, up);
         up = parent_of(up))
        path = up;
    return read_list(host, path, (struct span){"", 0}, rules, size_bytes, ret_len);
}
