/*
 * RAPL: the energy counters of processor packages and their memory, Intel's and AMD's.
 *
 * The kernel shows the same registers in two ways: as files of powercap, which only root may read,
 * and as events of perf. Which of them is used is decided once, when the source is opened; never
 * both, or a meter would be counted twice. Meters go and come with their CPUs: one that does not
 * answer loses its own series and is looked for again.
 */
#pragma once

#include <linux/perf_event.h>
#include <sys/types.h>

#include "sources/counter.h"
#include "sources/rapl/rapl_events.h"
#include "sources/rapl/rapl_zones.h"
#include "sources/source.h"

enum { RAPL_METERS_MAX = RAPL_ZONES_MAX };

extern const struct source_ops rapl_source;

/* The system calls that machines without RAPL cannot answer, for tests to do so. As the system's,
 * but for the first, which gives a descriptor or -errno. */
struct rapl_calls {
    int (*perf_event_open)(struct perf_event_attr *attr, int cpu);
    ssize_t (*read)(int fd, void *buffer, size_t size_bytes);
    ssize_t (*pread)(int fd, void *buffer, size_t size_bytes, off_t offset);
};

extern const struct rapl_calls rapl_system_calls;

struct rapl_meter {
    enum meter_kind kind;
    char id[RAPL_ID_BYTES];
    int fd;                  /* -1: it is gone, and looked for */
    struct rapl_scale scale; /* of perf's counts */
    struct counter counter;  /* in microjoules */
    bool has_counted;        /* was read as anything but 0 */
    uint64_t raw_uj;         /* as last read, and since when it is that */
    uint64_t still_since_us;
};

struct rapl;

/* One of the two ways. */
struct rapl_way {
    const char *name;
    uint64_t max_gap_us; /* between two reads: the count is not to be trusted after a longer one */
    /* Opens the meters that are not open. 0 if there is any that may be read, -EACCES if they may
     * not be, -ENODEV if there is none; both with a text. */
    int (*find)(struct rapl *rapl, struct error *err);
    /* 0, -ENODEV if it is gone, -EBADMSG if the answer is no count, or another -errno. */
    int (*read)(const struct rapl *rapl, const struct rapl_meter *meter, uint64_t *ret_uj);
};

extern const struct rapl_way rapl_powercap, rapl_perf;

struct rapl {
    const struct host *host;
    const struct clock *clock;
    const struct rapl_calls *calls;
    const struct rapl_way *way;
    bool is_amd;
    uint64_t next_search_us;
    struct rapl_meter meters[RAPL_METERS_MAX];
    size_t meter_count;
};

/* Picks the way and opens the meters. 0; -EACCES (there are meters, but they may not be read) or
 * -ENODEV, with a text that says why not; or -ENOMEM. */
int rapl_new(const struct host *host, const struct clock *clock, const struct rapl_calls *calls,
             struct rapl **ret_rapl, struct error *err);
void rapl_free(struct rapl *rapl);

/* A sample of each meter that answers. 0, or -EIO with a text if none does. */
int rapl_read(struct rapl *rapl, struct batch *batch, struct error *err);

/* For the ways. Whether the meter is open; and that it is now: takes the descriptor, also when
 * there is no room. `found` has the kind, the id, the descriptor and the scale; the range is as in
 * struct counter. */
bool rapl_is_open(const struct rapl *rapl, enum meter_kind kind, const char *id);
void rapl_add(struct rapl *rapl, const struct rapl_meter *found, uint64_t range_uj);
