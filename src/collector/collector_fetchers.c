/* What the fetchers report to the collector. The BMC's readings go straight to their source. */
#include <string.h>

#include "collector/collector_parts.h"
#include "core/log.h"
#include "process/channel.h"

enum { RECORDS_PER_WAKE = 64 };

/* As anything that comes from outside: what is not a name says nothing, and a pod counts only where
 * the cgroup names it, too. */
static int learn(struct identity *identity, const struct channel_container *record)
{
    struct container_list list;
    int r;

    container_list_init(&list);
    if (record->id[0] == '\0')
        r = container_list_add_pod(&list, record->namespace, record->pod, record->pod_uid);
    else
        r = container_list_add(&list, &(struct container){
                                          .id = record->id,
                                          .name = record->container,
                                          .namespace = record->namespace,
                                          .pod = record->pod,
                                          .pod_uid = record->pod_uid,
                                          .image = record->image,
                                      });
    if (r == 0)
        identity_learn(identity, &list);
    container_list_done(&list);
    return r;
}

static int take_container(struct collector *collector, int fd)
{
    struct channel_container record;
    int r = channel_receive_container(fd, &record);

    if (r == 0 && learn(collector->identity, &record) < 0)
        log_error("out of memory: names of a container are lost");
    return r;
}

static int take_names_state(struct collector *collector, int fd)
{
    struct channel_names_state state;
    int r = channel_receive_names_state(fd, &state);

    if (r < 0)
        return r;
    identity_note_api(collector->identity, state.result, state.duration_us);
    /* A name without an address may have none for days. */
    identity_expect_names(collector->identity, state.result != -EHOSTUNREACH);
    return 0;
}

static int take_names(struct collector *collector, int fd)
{
    bool is_state;
    int r = channel_peek_names_state(fd, &is_state);

    if (r < 0)
        return r;
    return is_state ? take_names_state(collector, fd) : take_container(collector, fd);
}

static int take_factor(struct collector *collector, int fd)
{
    struct channel_factor record;
    int r = channel_receive_factor(fd, &record);

    if (r == 0)
        emissions_take_record(&collector->emissions, &record);
    return r;
}

/* Of the BMC's, only its end is of interest. */
static int take_record(struct collector *collector, const struct fetcher *fetcher)
{
    int fd = fetcher->child.channel_fd;

    switch (fetcher->kind) {
    case FETCHER_KUBERNETES:
        return take_names(collector, fd);
    case FETCHER_EMISSIONS:
        return take_factor(collector, fd);
    case FETCHER_BMC:
    case FETCHER_KINDS:
        break;
    }
    return -ENOTCONN;
}

/* Names that do not come are not to be waited for. */
static void lose_names(struct collector *collector, const struct fetcher *fetcher, int why)
{
    if (fetcher->kind != FETCHER_KUBERNETES || !collector->identity)
        return;
    identity_note_api(collector->identity, why, 0);
    identity_expect_names(collector->identity, false);
}

void collector_read_fetcher(struct collector *collector, enum fetcher_kind kind)
{
    struct fetcher *fetcher = &collector->fetchers.items[kind];
    int r = 0;

    if (fetcher->child.channel_fd < 0)
        return;
    for (int i = 0; i < RECORDS_PER_WAKE && r == 0; i++)
        r = take_record(collector, fetcher);
    if (r == 0 || r == -EAGAIN)
        return;
    epoll_ctl(collector->epoll_fd, EPOLL_CTL_DEL, fetcher->child.channel_fd, NULL);
    lose_names(collector, fetcher, r);
    fetcher_break(fetcher, r);
}

static int start(struct collector *collector, struct fetcher *fetcher, struct error *err)
{
    int r = fetcher_start(&collector->fetchers, fetcher, collector_now_us(collector), err);

    if (r < 0 || fetcher->child.channel_fd < 0)
        return r;
    if (fetcher->kind == FETCHER_KUBERNETES && collector->identity)
        identity_expect_names(collector->identity, true);
    r = collector_watch(collector, fetcher->child.channel_fd, WATCH_FETCHER + fetcher->kind);
    if (r < 0) {
        error_set(err, r, "cannot watch it: %s", strerror(-r));
        child_kill(&fetcher->child); /* another one follows */
    }
    return r;
}

void collector_start_fetchers(struct collector *collector)
{
    for (int kind = 0; kind < FETCHER_KINDS; kind++) {
        struct fetcher *fetcher = &collector->fetchers.items[kind];
        bool is_due = fetcher->child.restart_us > 0 &&
                      collector_now_us(collector) >= fetcher->child.restart_us;
        struct error err;

        if (!fetcher->is_wanted || (fetcher->child.starts > 0 && !is_due))
            continue;
        if (!fetcher->has_job)
            lose_names(collector, fetcher, -ENOENT);
        else if (fetcher->child.pid == 0 && start(collector, fetcher, &err) < 0)
            log_error(fetcher_cannot_start(fetcher), "error", err.text);
    }
}

void collector_reap_fetchers(struct collector *collector)
{
    for (int kind = 0; kind < FETCHER_KINDS; kind++) {
        struct fetcher *fetcher = &collector->fetchers.items[kind];

        if (fetcher_reap(fetcher, collector_now_us(collector)))
            lose_names(collector, fetcher, -ENOTCONN);
    }
}
