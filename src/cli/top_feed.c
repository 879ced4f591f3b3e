#include "cli/top_feed.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/macros.h"

/* How long a source that wants attention may wait for it. */
static const uint64_t ATTEND_US = USEC_PER_SEC;

struct top_feed {
    const struct top_source *source;
    uint64_t interval_us;
    pthread_t thread;
    int news_fd, stop_fd;
    atomic_bool is_paused, is_stopped;

    pthread_mutex_t lock;           /* over the rest */
    struct node_document *document; /* the newest, until it is taken */
    struct error trouble;           /* of the last attempt; "": it succeeded */
    bool has_news;
};

static uint64_t now_us(void)
{
    return clock_system.monotonic_us(&clock_system);
}

static void signal_fd(int fd)
{
    const uint64_t one = 1;

    (void)!write(fd, &one, sizeof(one));
}

static void fetch(struct top_feed *feed)
{
    struct node_document *document = NULL;
    struct error err = {""};
    struct span json;
    int r = feed->source->get(feed->source->context, &json, &err);

    if (r == 0)
        r = node_document_parse(json, &document, &err);
    if (r == -ECANCELED)
        return;
    pthread_mutex_lock(&feed->lock);
    if (document) {
        node_document_free(feed->document);
        feed->document = document;
    }
    feed->trouble = err;
    if (r == 0)
        feed->trouble.text[0] = '\0';
    feed->has_news = true;
    pthread_mutex_unlock(&feed->lock);
    signal_fd(feed->news_fd);
}

/* Until then, or until the feed is stopped. */
static void wait_until(const struct top_feed *feed, uint64_t until_us)
{
    const struct top_source *source = feed->source;
    struct pollfd fds[] = {{.fd = feed->stop_fd, .events = POLLIN},
                           {.fd = source->wake_fd, .events = POLLIN}};

    for (uint64_t now = now_us(); now < until_us && !atomic_load(&feed->is_stopped);
         now = now_us()) {
        uint64_t wait_us = until_us - now;

        if (source->attend)
            wait_us = MIN(wait_us, ATTEND_US);
        (void)poll(fds, ARRAY_SIZE(fds), (int)MIN((wait_us + 999) / 1000, (uint64_t)60000));
        if (source->attend)
            source->attend(source->context);
    }
}

static void *run(void *context)
{
    struct top_feed *feed = context;

    /* Whoever started this has just asked for one, and there is a newer one in a second. */
    wait_until(feed, now_us() + MIN(feed->interval_us, USEC_PER_SEC));
    while (!atomic_load(&feed->is_stopped)) {
        uint64_t began_us = now_us();

        if (!atomic_load(&feed->is_paused))
            fetch(feed);
        wait_until(feed, began_us + feed->interval_us);
    }
    return NULL;
}

int top_feed_start(const struct top_source *source, uint64_t interval_us,
                   struct top_feed **ret_feed)
{
    struct top_feed *feed = calloc(1, sizeof(*feed));
    int r = feed ? 0 : -ENOMEM;

    if (r < 0)
        return r;
    feed->source = source;
    feed->interval_us = interval_us;
    pthread_mutex_init(&feed->lock, NULL);
    feed->news_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    feed->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (feed->news_fd < 0 || feed->stop_fd < 0)
        r = -errno;
    else
        r = -pthread_create(&feed->thread, NULL, run, feed);
    if (r < 0) {
        cleanup_close(&feed->news_fd);
        cleanup_close(&feed->stop_fd);
        free(feed);
        return r;
    }
    *ret_feed = feed;
    return 0;
}

int top_feed_fd(const struct top_feed *feed)
{
    return feed->news_fd;
}

bool top_feed_take(struct top_feed *feed, struct node_document **ret_document,
                   struct error *ret_trouble)
{
    uint64_t ignored;
    bool has_news;

    (void)!read(feed->news_fd, &ignored, sizeof(ignored));
    pthread_mutex_lock(&feed->lock);
    has_news = feed->has_news;
    *ret_document = TAKE_PTR(feed->document);
    *ret_trouble = feed->trouble;
    feed->has_news = false;
    pthread_mutex_unlock(&feed->lock);
    return has_news;
}

void top_feed_pause(struct top_feed *feed, bool is_paused)
{
    atomic_store(&feed->is_paused, is_paused);
}

void top_feed_stop(struct top_feed *feed)
{
    if (!feed)
        return;
    atomic_store(&feed->is_stopped, true);
    feed->source->cancel(feed->source->context);
    signal_fd(feed->stop_fd);
    pthread_join(feed->thread, NULL);
    cleanup_close(&feed->news_fd);
    cleanup_close(&feed->stop_fd);
    pthread_mutex_destroy(&feed->lock);
    node_document_free(feed->document);
    free(feed);
}
