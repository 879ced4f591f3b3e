/* Input: method, path, Accept and Accept-Encoding, one per line; a missing line is a missing
 * header. The last two are also the name and the value of a field. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "core/span.h"
#include "net/request_check.h"
#include "net/routes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* In a heap block of its own, so that a read past its end is seen. */
static char *next_line(struct span *rest)
{
    struct span line = span_cut(rest, '\n');

    return strndup(line.data, line.len);
}

/* A head that is not malformed has one reading. */
static void check_head(const char *target, const char *name, const char *value)
{
    struct request_check check = {0};

    request_check_add_target(&check, span_of(target));
    if (name && value)
        request_check_add_field(&check, span_of(name), span_of(value));
    if (request_check_is_malformed(&check, span_of("HTTP/1.0")))
        return;
    if (strpbrk(target, " \t\r#") || strstr(target, "%00") || !*request_check_path(target))
        abort();
    if (name && value && (!*name || strpbrk(name, " \t\r:") || strpbrk(value, "\r\x7f")))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span rest = {(const char *)data, size};
    char *method = next_line(&rest), *path = next_line(&rest);
    char *accept = rest.len > 0 ? next_line(&rest) : NULL;
    char *accept_encoding = rest.len > 0 ? next_line(&rest) : NULL;
    struct route_request request = {method, path, accept, accept_encoding};
    struct route_decision decision = routes_decide(&request, "/metrics", false);

    if ((unsigned)decision.route > ROUTE_METHOD_NOT_ALLOWED ||
        (unsigned)decision.format >= PAGE_FORMATS || (unsigned)decision.encoding >= PAGE_ENCODINGS)
        abort();
    if (!accept_encoding && decision.encoding != PAGE_IDENTITY)
        abort();
    if (!accept && decision.route == ROUTE_METRICS && decision.format != PAGE_TEXT)
        abort();
    if (decision.route == ROUTE_METRICS &&
        routes_decide(&request, "/metrics", true).format != PAGE_TEXT)
        abort();
    check_head(path, accept, accept_encoding);
    free(method);
    free(path);
    free(accept);
    free(accept_encoding);
    return 0;
}
