#include "identity/passwd.h"

#include "core/parse.h"

bool passwd_find(struct span text, uint32_t uid, char *ret_name, size_t size_bytes)
{
    while (text.len > 0) {
        struct span line = span_cut(&text, '\n');
        struct span name = span_cut(&line, ':');
        uint64_t number;

        (void)span_cut(&line, ':'); /* the password's place */
        if (name.len == 0 || name.len >= size_bytes || memchr(name.data, '\0', name.len) ||
            parse_u64_max(span_cut(&line, ':'), UINT32_MAX - 1, &number) < 0 || number != uid)
            continue;
        memcpy(ret_name, name.data, name.len);
        ret_name[name.len] = '\0';
        return true;
    }
    return false;
}
