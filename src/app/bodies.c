#include "app/bodies.h"

#include <errno.h>

#include "app/channel.h"
#include "core/gzip.h"
#include "core/macros.h"

enum { BODY_CAP_BYTES = 256 << 20 };

void bodies_init(struct bodies *bodies, const struct exposition_options *exposition)
{
    *bodies = (struct bodies){.exposition = *exposition};
    snapshot_init(&bodies->snapshot);
    for (int format = 0; format < ROUTE_FORMAT_COUNT; format++)
        for (int encoding = 0; encoding < ROUTE_ENCODING_COUNT; encoding++)
            bodies->fds[format][encoding] = -1;
}

static void drop(struct bodies *bodies)
{
    snapshot_done(&bodies->snapshot);
    for (int format = 0; format < ROUTE_FORMAT_COUNT; format++)
        for (int encoding = 0; encoding < ROUTE_ENCODING_COUNT; encoding++) {
            cleanup_close(&bodies->fds[format][encoding]);
            bodies->fds[format][encoding] = -1;
        }
}

void bodies_done(struct bodies *bodies)
{
    drop(bodies);
}

void bodies_renew(struct bodies *bodies)
{
    drop(bodies);
    bodies->generation++;
}

static int render(const struct bodies *bodies, enum route_format format, struct buffer *text)
{
    struct exposition_options options = bodies->exposition;

    options.format = format == ROUTE_OPENMETRICS ? TEXT_OPENMETRICS : TEXT_PROMETHEUS;
    exposition_render(&bodies->snapshot, &options, text);
    return buffer_failed(text) ? -ENOMEM : 0;
}

/* The text is not kept for another encoding: nobody asks for both, and it has megabytes on a node
 * with a thousand workloads. */
static int make_body(const struct bodies *bodies, enum route_format format,
                     enum route_encoding encoding, int *ret_fd, size_t *ret_size)
{
    struct buffer text, packed;
    const struct buffer *body = &text;
    int r;

    buffer_init(&text, BODY_CAP_BYTES);
    buffer_init(&packed, BODY_CAP_BYTES);
    r = render(bodies, format, &text);
    if (r == 0 && encoding == ROUTE_GZIP) {
        r = gzip_compress(text.data, text.len, &packed);
        body = &packed;
    }
    if (r == 0)
        r = channel_seal_body(body->data, body->len, ret_fd);
    if (r == 0)
        *ret_size = body->len;
    buffer_done(&text);
    buffer_done(&packed);
    return r;
}

int bodies_get(struct bodies *bodies, enum route_format format, enum route_encoding encoding,
               int *ret_fd, size_t *ret_size)
{
    int *fd = &bodies->fds[format][encoding];
    int r = *fd < 0 ? make_body(bodies, format, encoding, fd, &bodies->sizes[format][encoding]) : 0;

    if (r < 0)
        return r;
    *ret_fd = *fd;
    *ret_size = bodies->sizes[format][encoding];
    return 0;
}
