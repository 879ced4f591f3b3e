/*
 * RAPL: the energy counters of processor packages and their memory, Intel's and AMD's.
 *
 * The kernel shows the same registers as files of powercap, which only root may read, and as events
 * of perf. One of the two is chosen when the source is opened; never both, or a meter would count
 * twice. Meters come and go with their CPUs: one that does not answer loses its own series and is
 * searched for again.
 */
#pragma once

#include <linux/perf_event.h>
#include <sys/types.h>

#include "core/macros.h"
#include "core/span.h"
#include "model/counter.h"
#include "model/meter.h"
#include "sources/source.h"

enum {
    RAPL_METERS_MAX = 64,
    RAPL_ID_BYTES = 32,
    RAPL_DIRECTORY_BYTES = 48,
    RAPL_TEXT_BYTES = 8192
};
enum { RAPL_NUMBER_MAX = 0xffff }; /* of CPUs, sockets, dies and zones */

extern const struct source_ops rapl_source;

/* System calls that machines without RAPL cannot answer, replaced by tests. As the system's, but
 * the first returns a descriptor or -errno. */
struct rapl_calls {
    int (*perf_event_open)(struct perf_event_attr *attr, int cpu);
    ssize_t (*read)(int fd, void *buffer, size_t size_bytes);
    ssize_t (*pread)(int fd, void *buffer, size_t size_bytes, off_t offset);
};

struct rapl_meter {
    enum meter_kind kind;
    char id[RAPL_ID_BYTES];
    int fd;                 /* -1: it is gone, and searched for */
    uint8_t shift;          /* a count of perf is 2^-shift J */
    struct counter counter; /* in microjoules */
    bool has_counted;       /* was read as anything but 0 */
    uint64_t raw_uj;        /* as last read, and since when it is that */
    uint64_t still_since_us;
    struct meter_limits limits; /* of powercap only */
    bool has_limits;            /* they are of this search */
};

struct rapl;

struct rapl_backend {
    const char *name;
    uint64_t max_gap_us; /* between two reads: the count is not to be trusted after a longer one */
    bool is_lasting;     /* the count goes on while nobody has it open */
    /* Opens the meters that are not open. 0 if any may be read, -EACCES if they may not be, -ENODEV
     * if there is none; both with a text. */
    int (*find)(struct rapl *rapl, struct error *err);
    /* 0, -ENODEV if it is gone, -EBADMSG if the answer is no count, or another -errno. */
    int (*read)(const struct rapl *rapl, const struct rapl_meter *meter, uint64_t *ret_uj);
};

extern const struct rapl_backend rapl_powercap, rapl_perf;

struct rapl {
    const struct host *host;
    const struct clock *clock;
    const struct rapl_calls *calls;
    const struct rapl_backend *backend;
    bool is_amd; /* or Hygon: RAPL with quirks of its own */
    uint64_t next_search_us;
    struct rapl_meter meters[RAPL_METERS_MAX];
    size_t meter_count;
};

/* Chooses the backend and opens the meters. 0; -EACCES (there are meters, but they may not be read)
 * or -ENODEV, with the reason; or -ENOMEM. */
int rapl_new(const struct host *host, const struct clock *clock, const struct rapl_calls *calls,
             struct rapl **ret_rapl, struct error *err);
void rapl_free(void *rapl);

/* Adds a sample of each meter that answers. 0, or -EIO with a text if none does. */
int rapl_read(void *rapl, struct batch *batch, struct error *err);

/* From here on: for the backends. */

bool rapl_is_open(struct rapl *rapl, enum meter_kind kind, const char *id);

/* Of a meter that is open, once a search: of two zones that are one meter the first counts. */
void rapl_set_limits(struct rapl *rapl, const struct rapl_meter *meter,
                     const struct meter_limits *limits);

/* A meter that was found, with kind, id, descriptor and shift. Takes the descriptor, even when
 * there is no room. The range is as in struct counter. */
void rapl_add(struct rapl *rapl, const struct rapl_meter *found, uint64_t range_uj);

/* A meter's id: "0", or where packages are counted by die "0-die-1"; NULL: they are not. */
void rapl_print_id(uint32_t socket, const uint32_t *die, char id[static RAPL_ID_BYTES]);

/* A file of sysfs without its newline, in `buffer`. 0 or -errno. */
int rapl_read_file(const struct rapl *rapl, char buffer[static RAPL_TEXT_BYTES],
                   struct span *ret_text, const char *format, ...) PRINTF(4, 5);

/* From here on: parsers of files of sysfs. Pure. All return 0 or -EINVAL, some -ERANGE. */

bool rapl_modalias_is_amd(struct span modalias); /* /sys/devices/system/cpu/modalias */
int rapl_parse_number(struct span text, uint32_t *ret_value);
int rapl_parse_hex(struct span text, uint32_t max, uint32_t *ret_value);

/* A directory of powercap: "intel-rapl:0:1" or "intel-rapl-mmio:0"; the numbers are hexadecimal. */
struct rapl_directory {
    char name[RAPL_DIRECTORY_BYTES];
    bool is_mmio;
    bool is_below;     /* it is below a zone */
    size_t parent_len; /* of that zone's name */
};

/* -EINVAL for anything else, also for a control type itself. */
int rapl_parse_directory(struct span text, struct rapl_directory *ret_directory);

/* A zone's name, and the meter's id if it is of a package or psys; others have their parent's. */
int rapl_parse_name(struct span text, enum meter_kind *ret_kind, char ret_id[static RAPL_ID_BYTES]);

/* The name of a constraint: "long_term". METER_LIMITS: another. */
enum meter_limit rapl_parse_constraint(struct span text);

/* "event=0x02": the number of perf's event, of 8 bits. */
int rapl_parse_event(struct span text, uint8_t *ret_event);

/* "2.3283064365386962890625e-10": joules, which RAPL counts in powers of two, so that no rounding
 * adds up over months. -EINVAL: not a power; -ERANGE: too small a one. */
int rapl_parse_scale(struct span text, uint8_t *ret_shift);

/* "0,24" or "0-3,8". -ERANGE: more than `max`. An empty list is none. */
int rapl_parse_cpus(struct span text, uint32_t *cpus, size_t max, size_t *ret_count);
