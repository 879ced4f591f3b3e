#include "client/http_loopback.h"

#include <arpa/inet.h>
#include <stdio.h>

bool http_is_loopback(struct span authority)
{
    struct in_addr address;
    struct span host = authority;
    char text[INET_ADDRSTRLEN];

    if (span_strip_prefix(&host, "[::1]"))
        return host.len == 0 || host.data[0] == ':';
    host = span_cut(&host, ':');
    if (span_equals(host, "localhost"))
        return true;
    if (host.len >= sizeof(text))
        return false;
    snprintf(text, sizeof(text), "%.*s", (int)host.len, host.data);
    return inet_pton(AF_INET, text, &address) == 1 && ntohl(address.s_addr) >> 24 == IN_LOOPBACKNET;
}
