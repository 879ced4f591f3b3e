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
    for (int format = 0; format < ROUTE_FORMAT_COUNT; format++) {
        buffer_init(&bodies->texts[format], BODY_CAP_BYTES);
        for (int encoding = 0; encoding < ROUTE_ENCODING_COUNT; encoding++)
            bodies->fds[format][encoding] = -1;
    }
}

static void drop(struct bodies *bodies)
{
    snapshot_done(&bodies->snapshot);
    for (int format = 0; format < ROUTE_FORMAT_COUNT; format++) {
        bodies->rendered[format] = false;
        for (int encoding = 0; encoding < ROUTE_ENCODING_COUNT; encoding++) {
            cleanup_close(&bodies->fds[format][encoding]);
            bodies->fds[format][encoding] = -1;
        }
    }
}

void bodies_done(struct bodies *bodies)
{
    drop(bodies);
    for (int format = 0; format < ROUTE_FORMAT_COUNT; format++)
        buffer_done(&bodies->texts[format]);
}

void bodies_renew(struct bodies *bodies)
{
    drop(bodies);
    bodies->generation++;
}

static int render(struct bodies *bodies, enum route_format format)
{
    struct exposition_options options = bodies->exposition;
    struct buffer *text = &bodies->texts[format];

    if (bodies->rendered[format])
        return 0;
    options.format = format == ROUTE_OPENMETRICS ? TEXT_OPENMETRICS : TEXT_PROMETHEUS;
    text->len = 0;
    text->failed = false;
    exposition_render(&bodies->snapshot, &options, text);
    if (buffer_failed(text))
        return -ENOMEM;
    bodies->rendered[format] = true;
    return 0;
}

int bodies_get(struct bodies *bodies, enum route_format format, enum route_encoding encoding,
               int *ret_fd, size_t *ret_size)
{
    int *fd = &bodies->fds[format][encoding];
    struct buffer packed;
    const struct buffer *body = &bodies->texts[format];
    int r = 0;

    if (*fd < 0) {
        buffer_init(&packed, BODY_CAP_BYTES);
        r = render(bodies, format);
        if (r == 0 && encoding == ROUTE_GZIP) {
            r = gzip_compress(body->data, body->len, &packed);
            body = &packed;
        }
        if (r == 0)
            r = channel_seal_body(body->data, body->len, fd);
        bodies->sizes[format][encoding] = body->len;
        buffer_done(&packed);
    }
    if (r < 0)
        return r;
    *ret_fd = *fd;
    *ret_size = bodies->sizes[format][encoding];
    return 0;
}
