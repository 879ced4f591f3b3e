/*
 * Who listens where the host engine does. Any user may listen on that port, and could make up what
 * boards did: only root is believed.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <unistd.h>

#include "core/macros.h"
#include "core/parse.h"
#include "sources/dcgm/dcgm.h"

/* Rows are 150 bytes long, and those of listeners come first. */
enum { TABLE_BYTES = 64 << 10 };

static struct span next_word(struct span *line)
{
    struct span word;

    do
        word = span_cut(line, ' ');
    while (word.len == 0 && line->len > 0);
    return word;
}

/* The kernel prints an address as the number that it is in memory. */
static bool is_of_engine(struct span address)
{
    static const uint32_t hosts[] = {INADDR_LOOPBACK, INADDR_ANY};
    char text[16];

    for (size_t i = 0; i < ARRAY_SIZE(hosts); i++) {
        snprintf(text, sizeof(text), "%08X:%04X", htonl(hosts[i]), DCGM_PORT);
        if (span_equals(address, text))
            return true;
    }
    return false;
}

int dcgm_listener_parse(struct span table, uint32_t *ret_uid)
{
    (void)span_cut(&table, '\n'); /* the heading */
    while (table.len > 0) {
        struct span line = span_cut(&table, '\n'), address, uid;
        uint64_t value;

        (void)next_word(&line);
        address = next_word(&line);
        (void)next_word(&line);
        if (!span_equals(next_word(&line), "0A")) /* TCP_LISTEN */
            return -ENOENT;
        for (int i = 0; i < 3; i++)
            (void)next_word(&line);
        uid = next_word(&line);
        if (!is_of_engine(address))
            continue;
        if (parse_u64_max(uid, UINT32_MAX, &value) < 0)
            return -EINVAL;
        *ret_uid = (uint32_t)value;
        return 0;
    }
    return -ENOENT;
}

int dcgm_find_engine(const struct host *host, struct error *err)
{
    _cleanup_close_ int fd = openat(host->procfs_fd, "net/tcp", O_RDONLY | O_CLOEXEC);
    char table[TABLE_BYTES];
    size_t len = 0;
    ssize_t n = 0;
    uint32_t uid = UINT32_MAX;
    int r = fd < 0 ? -errno : 0;

    while (r == 0 && len < sizeof(table) && (n = read(fd, table + len, sizeof(table) - len)) > 0)
        len += (size_t)n;
    if (r == 0)
        r = n < 0 ? -errno : dcgm_listener_parse((struct span){table, len}, &uid);
    if (r == -ENOENT)
        return error_set(err, -ENODEV, "nobody listens at " DCGM_ADDRESS);
    if (r < 0)
        return error_set(err, -ENODEV, "cannot tell who listens at " DCGM_ADDRESS ": %s",
                         strerror(-r));
    if (uid != 0)
        return error_set(err, -ENODEV, "not root but user %u listens at " DCGM_ADDRESS, uid);
    return 0;
}
