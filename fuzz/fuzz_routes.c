/* Input: method, path, Accept and Accept-Encoding, one per line; a missing line is a missing
 * header. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "core/span.h"
#include "net/routes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* In a heap block of its own, so that a read past its end is seen. */
static char *next_line(struct span *rest)
{
    struct span line = span_cut(rest, '\n');

    return strndup(line.data, line.len);
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
    if (!accept && decision.format != PAGE_TEXT)
        abort();
    if (routes_decide(&request, "/metrics", true).format != PAGE_TEXT)
        abort();
    free(method);
    free(path);
    free(accept);
    free(accept_encoding);
    return 0;
}
