/*
 * What fetchers report, from one that was taken over: names, emission factors and readings of the
 * BMC. The collector takes any records or ends their sender; names are valid texts, a factor is
 * plausible, and the node's energy grows no faster than a node can draw.
 *
 * The first byte is the kind of fetcher; 3 is the other channel of that of the BMC, of pings alone.
 * Records follow, each begun by a byte: if it is odd, as many bytes as that; else the size of a
 * record, 0 where bytes are missing.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../tests/unit/identity_checks.h"
#include "../tests/unit/manual_clock.h"
#include "collector/fetchers.h"
#include "core/macros.h"
#include "model/counter.h"
#include "process/channel.h"
#include "sources/bmc/bmc_meter.h"
#include "sources/redfish_reading.h"
#include "sources/source.h"

enum { RECORDS_MAX = 32, PINGS = 3 };

#define CONFIG "emissions.providers: electricity_maps,rte\nemissions.zone: FR\n"

static const uint64_t NOON_US = 1768478400000000;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

/* Of the whole run: identity has a thread, which finds an empty node. */
static struct {
    struct options options;
    struct clock_manual clock;
    struct host host;
    struct identity *identity;
    struct emissions emissions; /* before the first record */
} node;

static void open_node(void)
{
    char path[] = "/tmp/wattribute-fuzz-XXXXXX";
    struct identity_status status = {.polled = false};
    struct error err;
    int fd;

    if (node.identity)
        return;
    log_configure(LOG_LEVEL_ERROR + 1, LOG_FORMAT_JSON); /* not what they break, each time */
    clock_manual_init(&node.clock, NOON_US);
    check(options_init(&node.options, &err) == 0);
    check(options_parse_file(span_of(CONFIG), "fuzz.yaml", &node.options, &err) == 0);
    check(emissions_init(&node.emissions, &node.options, &node.clock.clock, &err) == 0);
    check(mkdtemp(path));
    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    check(fd >= 0 && rmdir(path) == 0);
    node.host = (struct host){.procfs_fd = fd, .sysfs_fd = fd, .rootfs_fd = fd};
    check(identity_open(&(struct identity_options){.host = &node.host,
                                                   .rootfs_path = path,
                                                   .clock = &node.clock.clock,
                                                   .scan_interval_us = UINT64_MAX / 4,
                                                   .expects_fetched_names = true},
                        &node.identity, &err) == 0);
    while (!status.polled)
        check(identity_get_status(node.identity, 0, &status));
}

static const size_t record_bytes[FETCHER_KINDS][2] = {
    [FETCHER_BMC] = {sizeof(struct redfish_reading), sizeof(struct redfish_reading)},
    [FETCHER_KUBERNETES] = {sizeof(struct channel_container), sizeof(struct channel_names_state)},
    [FETCHER_EMISSIONS] = {sizeof(struct channel_factor), sizeof(struct channel_factor)},
};

/* Sends the next record. False: there is none. */
static bool send_record(int fd, enum fetcher_kind kind, struct span *rest)
{
    char record[1024] = {0};
    size_t bytes, len;

    if (rest->len == 0)
        return false;
    bytes = (unsigned char)rest->data[0];
    if (bytes < ARRAY_SIZE(record_bytes[kind]))
        bytes = record_bytes[kind][bytes];
    *rest = (struct span){rest->data + 1, rest->len - 1};
    len = MIN(rest->len, bytes);
    memcpy(record, rest->data, len);
    *rest = (struct span){rest->data + len, rest->len - len};
    (void)send(fd, record, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    return true;
}

static void check_names(const char *container_id, const char *pod_uid)
{
    struct workload_owner owner = {.kind = WORKLOAD_POD};
    struct workload_names names;

    memcpy(owner.container_id, container_id, strnlen(container_id, RUNTIME_ID_BYTES - 1));
    memcpy(owner.pod_uid, pod_uid, strnlen(pod_uid, sizeof(owner.pod_uid) - 1));
    (void)identity_find_names(node.identity, &owner, &names);
    check(is_kept_text(names.name) && is_kept_text(names.namespace) && is_kept_text(names.pod) &&
          is_kept_text(names.container) && is_kept_text(names.image));
}

static void check_factors(const struct emissions *emissions)
{
    struct snapshot snapshot = {0};

    arena_init(&snapshot.arena, 1 << 20);
    check(emissions_describe(emissions, &snapshot) == 0);
    for (size_t i = 0; i < snapshot.factor_count; i++)
        check(!snapshot.factors[i].factor.known ||
              snapshot.factors[i].factor.ug_per_kwh <= (uint64_t)FACTOR_MAX_MG * 1000);
    check(emissions->in_force.known);
    arena_done(&snapshot.arena);
}

/* As the collector wakes: whether records come alone or together makes no difference. */
static void check_fetcher(enum fetcher_kind kind, struct span rest)
{
    static const struct api_config api = {"::1", "443", "node", "/"};
    struct emissions emissions = node.emissions;
    struct fetchers fetchers = {.options = {.options = &node.options,
                                            .clock = &node.clock.clock,
                                            .api = &api,
                                            .emissions = &emissions},
                                .identity = node.identity,
                                .epoll_fd = -1};
    struct fetcher *fetcher = &fetchers.items[kind];
    const char *names = rest.data;
    int theirs;

    child_init(&fetcher->child, "fetcher");
    check(channel_open(&fetcher->child.channel_fd, &theirs) == 0);
    fetcher->kind = kind;
    fetcher->child.pings = PINGS; /* which may come back */
    for (int i = 0; i < RECORDS_MAX && send_record(theirs, kind, &rest); i++) {
        node.clock.now_us += USEC_PER_SEC;
        if (kind == FETCHER_KUBERNETES || i % 2 == 1)
            fetchers_read(&fetchers, kind);
    }
    close(theirs);
    fetchers_read(&fetchers, kind);
    fetchers_read(&fetchers, kind);
    check(fetcher->child.channel_fd == -1); /* it is gone, or was ended */
    check(fetcher->child.pongs <= PINGS);
    (void)emissions_refresh(&emissions);
    check_factors(&emissions);
    if (kind == FETCHER_KUBERNETES &&
        (size_t)(rest.data - names) > sizeof(struct channel_container))
        check_names(names + 1, names + 1 + offsetof(struct channel_container, pod_uid));
}

static uint64_t check_samples(const struct batch *batch, uint64_t last_uj, uint64_t passed_us)
{
    for (size_t i = 0; i < batch->count; i++) {
        const struct sample *sample = &batch->samples[i];

        if (sample->kind == SAMPLE_NODE_POWER)
            check(sample->node_power.power_mw < PLAUSIBLE_POWER_MAX_UW / 1000);
        if (sample->kind != SAMPLE_METER)
            continue;
        check(sample->meter.counter_uj >= last_uj);
        last_uj = sample->meter.counter_uj;
    }
    /* The first reading may have been taken earlier. */
    check(last_uj / (PLAUSIBLE_POWER_MAX_UW / USEC_PER_SEC) <= passed_us + BMC_HOLD_US);
    return last_uj;
}

static void check_readings(struct span rest)
{
    uint64_t began_us = node.clock.now_us, last_uj = 0;
    struct source_context context = {.host = &node.host, .clock = &node.clock.clock};
    struct error err = {""};
    struct batch batch;
    int ours, theirs;
    void *source;

    check(channel_open(&ours, &theirs) == 0);
    context.redfish_fd = &ours;
    check(redfish_source.open(&context, &source, &err) == 0);
    batch_init(&batch);
    while (send_record(theirs, FETCHER_BMC, &rest)) {
        int r;

        node.clock.now_us += USEC_PER_SEC;
        batch_reset(&batch);
        r = redfish_source.read(source, &batch, &err);
        check(r <= 0 && r > -4096 && (r == 0 || memchr(err.text, '\0', sizeof(err.text))));
        last_uj = check_samples(&batch, last_uj, node.clock.now_us - began_us);
    }
    batch_done(&batch);
    redfish_source.close(source);
    close(ours);
    close(theirs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span rest = {(const char *)data + 1, size - 1};

    if (size == 0)
        return 0;
    open_node();
    if (data[0] % (FETCHER_KINDS + 1) == FETCHER_BMC)
        check_readings(rest);
    else
        check_fetcher((enum fetcher_kind)(data[0] % (FETCHER_KINDS + 1) % FETCHER_KINDS), rest);
    return 0;
}
