#include "config/lookup.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

enum { ADDRESSES_MAX = 4 };

bool lookup_is_dns_name(const char *text)
{
    size_t len = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-");

    return len > 0 && len <= LOOKUP_HOST_MAX && text[len] == '\0';
}

static bool is_address(const char *host)
{
    struct in6_addr ignored;

    return inet_pton(AF_INET, host, &ignored) == 1 || inet_pton(AF_INET6, host, &ignored) == 1;
}

bool lookup_is_host(const char *text)
{
    return lookup_is_dns_name(text) || is_address(text);
}

int lookup_host(const char *what, const char *host, const char *port, char text[LOOKUP_TEXT_BYTES],
                struct error *err)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    int code, len, count = 0;

    text[0] = '\0';
    if (is_address(host))
        return 0;
    code = getaddrinfo(host, port, &hints, &found);
    if (code != 0)
        return error_set(err, -ENOENT, "cannot look up %s %.253s: %s", what, host,
                         gai_strerror(code));
    len = snprintf(text, LOOKUP_TEXT_BYTES, "%s:%s:", host, port);
    for (const struct addrinfo *at = found; at && count < ADDRESSES_MAX;
         at = at->ai_next, count++) {
        bool is_v6 = at->ai_family == AF_INET6;
        char address[INET6_ADDRSTRLEN];

        if (getnameinfo(at->ai_addr, at->ai_addrlen, address, sizeof(address), NULL, 0,
                        NI_NUMERICHOST) == 0)
            len += snprintf(text + len, LOOKUP_TEXT_BYTES - (size_t)len, "%s%s%s%s",
                            count > 0 ? "," : "", is_v6 ? "[" : "", address, is_v6 ? "]" : "");
    }
    freeaddrinfo(found);
    return 0;
}
