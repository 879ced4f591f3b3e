#include "net/http_headers.h"

#include <microhttpd.h>
#include <string.h>

bool http_headers_add(struct MHD_Response *response, const char *name, const char *value)
{
    return MHD_add_response_header(response, name, value) == MHD_YES;
}

bool http_headers_add_configured(const struct http_headers *headers, struct MHD_Response *response)
{
    for (size_t i = 0; i < headers->count; i++)
        if (!http_headers_add(response, headers->list[i].name, headers->list[i].value))
            return false;
    return true;
}

bool http_headers_add_own(const struct http_headers *headers, struct MHD_Response *response,
                          const char *name, const char *value)
{
    for (size_t i = 0; i < headers->count; i++)
        if (strcmp(headers->list[i].name, name) == 0)
            return true;
    return http_headers_add(response, name, value);
}
