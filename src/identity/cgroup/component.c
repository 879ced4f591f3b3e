#include "identity/cgroup/component.h"

#include "core/macros.h"
#include "core/parse.h"
#include "identity/cgroup_path.h"

bool component_is_made_of(struct span text, bool (*is_allowed)(char c))
{
    for (size_t i = 0; i < text.len; i++)
        if (!is_allowed(text.data[i]))
            return false;
    return text.len > 0;
}

bool component_is_decimal(struct span text)
{
    return component_is_made_of(text, parse_is_digit);
}

bool component_is_hex(struct span text)
{
    return component_is_made_of(text, parse_is_hex);
}

bool component_is_container_id(struct span text)
{
    return text.len == WORKLOAD_CONTAINER_BYTES - 1 && component_is_hex(text);
}

bool component_strip(struct span *component, const char *prefix, const char *suffix)
{
    return span_strip_prefix(component, prefix) && span_strip_suffix(component, suffix);
}

bool component_strip_number(struct span *text, const char *delimiter)
{
    size_t digits = 0;

    while (digits < text->len && parse_is_digit(text->data[digits]))
        digits++;
    *text = (struct span){text->data + digits, text->len - digits};
    return digits > 0 && span_strip_prefix(text, delimiter);
}

bool component_parse_uid(struct span text, uint32_t *ret_uid)
{
    uint64_t uid;

    if (parse_u64_max(text, UINT32_MAX - 1, &uid) < 0) /* the last one means "none" */
        return false;
    *ret_uid = (uint32_t)uid;
    return true;
}

bool component_copy(struct span text, char *buffer, size_t size)
{
    if (text.len == 0 || text.len >= size || memchr(text.data, '\0', text.len))
        return false;
    memcpy(buffer, text.data, text.len);
    buffer[text.len] = '\0';
    return true;
}

static int hex_value(char c)
{
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return !parse_is_hex(c) ? -1 : parse_is_digit(c) ? c - '0' : c - 'a' + 10;
}

/* The byte that "\xHH" at the front stands for, or -1. NUL, which would end the name, and '/',
 * which separates a scope from an id, stay escaped. */
static int escaped_byte(struct span text)
{
    int high, low;

    if (text.len < 4 || text.data[0] != '\\' || text.data[1] != 'x')
        return -1;
    high = hex_value(text.data[2]);
    low = hex_value(text.data[3]);
    if (high < 0 || low < 0 || high * 16 + low == '\0' || high * 16 + low == '/')
        return -1;
    return high * 16 + low;
}

bool component_unescape(struct span text, char *name)
{
    size_t len = 0;

    if (!component_copy(text, name, CGROUP_NAME_BYTES))
        return false;
    while (text.len > 0) {
        int byte = escaped_byte(text);
        size_t taken = byte < 0 ? 1 : strlen("\\xHH");

        name[len++] = (char)(byte < 0 ? text.data[0] : byte);
        text = (struct span){text.data + taken, text.len - taken};
    }
    name[len] = '\0';
    return true;
}

static bool strip_unit_suffix(struct span *name)
{
    static const char *const suffixes[] = {".service", ".scope",  ".slice",    ".socket",
                                           ".mount",   ".swap",   ".timer",    ".target",
                                           ".path",    ".device", ".automount"};

    for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++)
        if (span_strip_suffix(name, suffixes[i]))
            return true;
    return false;
}

bool component_is_unit(struct span component)
{
    struct span name = component;

    /* "x@.service" is a template: nothing runs in it. */
    return strip_unit_suffix(&name) && name.len > 0 &&
           !memmem(component.data, component.len, "@.", 2);
}

struct span component_unescape_unit(struct span component)
{
    struct span name = component;

    if (strip_unit_suffix(&name))
        span_strip_prefix(&component, "_");
    return component;
}

bool component_is_user_slice(struct span component, uint32_t *ret_uid)
{
    return component_strip(&component, "user-", ".slice") &&
           component_parse_uid(component, ret_uid);
}

bool component_is_user_manager(struct span component, uint32_t *ret_uid)
{
    return component_strip(&component, "user@", ".service") &&
           component_parse_uid(component, ret_uid);
}
