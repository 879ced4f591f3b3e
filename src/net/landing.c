#include "net/landing.h"

#include "core/macros.h"

static void append_escaped(struct buffer *out, const char *text)
{
    static const char special[] = "&<>\"'";
    static const char *const entities[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};

    for (; *text; text++) {
        const char *at = strchr(special, *text);

        if (at)
            buffer_str(out, entities[at - special]);
        else
            buffer_char(out, *text);
    }
}

void landing_render(struct span template, const char *metrics_path, const char *version,
                    struct buffer *out)
{
    const struct {
        const char *name, *value;
    } values[] = {
        {"{{metrics_path}}", metrics_path},
        {"{{version}}", version},
    };
    struct span rest = template;

    while (rest.len > 0) {
        size_t taken = 0;

        for (size_t i = 0; i < ARRAY_SIZE(values) && taken == 0; i++) {
            size_t len = strlen(values[i].name);

            if (rest.len >= len && memcmp(rest.data, values[i].name, len) == 0) {
                append_escaped(out, values[i].value);
                taken = len;
            }
        }
        if (taken == 0) {
            buffer_char(out, *rest.data);
            taken = 1;
        }
        rest.data += taken;
        rest.len -= taken;
    }
}
