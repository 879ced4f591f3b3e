/*
 * Server-sent events: a viewer gets each new document of the node, at most once a second, all of
 * them from one request to the collector. A reader that is slow misses documents and holds the one
 * that it is being sent; one that takes too long for it is cut, as any reader is.
 */
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"
#include "net/http_server_private.h"

enum { VIEWERS_MAX = 8, EVENT_PIECES = 3 };

static const uint64_t NEWS_US = USEC_PER_SEC;

/* So that proxies keep the connection, and we learn that a viewer has gone. */
static const uint64_t PING_US = 15 * USEC_PER_SEC;

static const char first_text[] = "retry: 2000\n\n", ping_text[] = ": ping\n\n";
static const char event_begin[] = "event: node\ndata: ", event_end[] = "\n\n";

/* A stream. The response owns it. */
struct http_viewer {
    struct http_server *server;
    struct http_connection *c;
    bool is_over;    /* it is to end */
    bool wants_ping; /* nothing was sent for long */
    /* Being sent: */
    struct span pieces[EVENT_PIECES];
    size_t piece;                  /* EVENT_PIECES: nothing */
    struct http_mapping *document; /* that they are of, or NULL */
    uint64_t seen_generation;      /* of the last document; 0: none */
};

static struct http_page *node_page(struct http_server *server)
{
    return &server->pages[(size_t)PAGE_NODE * PAGE_ENCODINGS + PAGE_IDENTITY];
}

static void send_text(struct http_viewer *viewer, const char *text)
{
    viewer->piece = EVENT_PIECES - 1;
    viewer->pieces[viewer->piece] = span_of(text);
}

static void send_document(struct http_viewer *viewer, const struct http_page *page)
{
    viewer->document = http_mapping_ref(page->mapping);
    viewer->seen_generation = page->generation;
    viewer->pieces[0] = span_of(event_begin);
    viewer->pieces[1] = (struct span){page->mapping->data, page->mapping->len};
    viewer->pieces[2] = span_of(event_end);
    viewer->piece = 0;
}

/* A new viewer gets what is known only if it is the newest: while there was no viewer, nobody
 * asked. */
static bool is_news(const struct http_viewer *viewer, const struct http_page *page)
{
    if (page->generation == 0 || page->generation == viewer->seen_generation)
        return false;
    return viewer->seen_generation > 0 ||
           page->confirmed_us + NEWS_US >= http_server_now_us(viewer->server);
}

/* What to send next. False: nothing yet. */
static bool find_work(struct http_viewer *viewer)
{
    const struct http_page *page = node_page(viewer->server);

    if (viewer->piece < EVENT_PIECES)
        return true;
    if (viewer->document) {
        http_mapping_unref(viewer->document);
        viewer->document = NULL;
    }
    if (is_news(viewer, page))
        send_document(viewer, page);
    else if (viewer->wants_ping)
        send_text(viewer, ping_text);
    else
        return false;
    viewer->wants_ping = false;
    http_connection_enter(viewer->server, viewer->c, CONNECTION_BUSY);
    return true;
}

static size_t copy_pieces(struct http_viewer *viewer, char *to, size_t size)
{
    size_t len = 0;

    while (viewer->piece < EVENT_PIECES && len < size) {
        struct span *piece = &viewer->pieces[viewer->piece];
        size_t part = MIN(piece->len, size - len);

        memcpy(to + len, piece->data, part);
        len += part;
        piece->data += part;
        piece->len -= part;
        viewer->piece += piece->len == 0;
    }
    return len;
}

/* libmicrohttpd calls this when it has sent what it got before. */
static ssize_t read_events(void *cls, uint64_t position, char *to, size_t size)
{
    struct http_viewer *viewer = cls;

    (void)position;
    if (viewer->is_over)
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (find_work(viewer))
        return (ssize_t)copy_pieces(viewer, to, size);
    http_connection_enter(viewer->server, viewer->c, CONNECTION_WATCHING);
    http_connection_wait_in(&viewer->server->viewers, viewer->c);
    return 0;
}

static void free_viewer(void *cls)
{
    struct http_viewer *viewer = cls;

    if (viewer->document)
        http_mapping_unref(viewer->document);
    viewer->server->viewer_count--;
    free(viewer);
}

bool http_events_are_full(const struct http_server *server)
{
    /* Others must get in, too. */
    return server->viewer_count >= MIN((size_t)VIEWERS_MAX, server->options.connections_max / 2);
}

struct MHD_Response *http_events_open(struct http_server *server, struct http_connection *c)
{
    enum { BLOCK_BYTES = 16 * 1024 };
    struct http_viewer *viewer = calloc(1, sizeof(*viewer));
    struct MHD_Response *response;

    if (!viewer)
        return NULL;
    *viewer = (struct http_viewer){.server = server, .c = c, .piece = EVENT_PIECES};
    response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK_BYTES, read_events, viewer,
                                                 free_viewer);
    if (!response) {
        free(viewer);
        return NULL;
    }
    server->viewer_count++;
    send_text(viewer, first_text);
    if (server->viewer_count == 1)
        server->news_us = http_server_now_us(server); /* at once */
    c->request.viewer = viewer;
    return response;
}

static void wake(struct http_connection *c)
{
    if (!c->waits_in)
        return;
    http_connection_stop_waiting(c);
    MHD_resume_connection(c->mhd);
}

void http_events_publish(struct http_server *server, const struct http_page *page)
{
    struct http_connection *c, *next;

    if (page != node_page(server) || server->viewer_count == 0)
        return;
    server->news_us = http_server_now_us(server) + NEWS_US;
    for (c = TAILQ_FIRST(&server->viewers); c; c = next) {
        next = TAILQ_NEXT(c, by_wait);
        if (is_news(c->request.viewer, page))
            wake(c);
    }
}

void http_events_end(struct http_server *server)
{
    struct http_connection *c;

    TAILQ_FOREACH(c, &server->phases[CONNECTION_BUSY], by_phase)
    if (c->request.viewer)
        c->request.viewer->is_over = true;
    while ((c = TAILQ_FIRST(&server->phases[CONNECTION_WATCHING]))) {
        c->request.viewer->is_over = true;
        http_connection_enter(server, c, CONNECTION_BUSY);
        wake(c);
    }
}

void http_events_run(struct http_server *server)
{
    uint64_t now = http_server_now_us(server);
    struct http_connection *c;

    if (server->viewer_count == 0 || server->draining)
        return; /* draining, they end */
    if (now >= server->news_us) {
        server->news_us = now + NEWS_US;
        (void)http_page_fetch(server, node_page(server));
    }
    while ((c = TAILQ_FIRST(&server->phases[CONNECTION_WATCHING])) &&
           now >= c->since_us + PING_US) {
        c->request.viewer->wants_ping = true;
        http_connection_enter(server, c, CONNECTION_BUSY);
        wake(c);
    }
}

uint64_t http_events_next_us(const struct http_server *server)
{
    const struct http_connection *c = TAILQ_FIRST(&server->phases[CONNECTION_WATCHING]);

    if (server->viewer_count == 0 || server->draining)
        return UINT64_MAX;
    return c ? MIN(server->news_us, c->since_us + PING_US) : server->news_us;
}
