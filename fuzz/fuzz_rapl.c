/* What sysfs says of RAPL: any bytes are parsed within their bounds, a scale is a power of two,
 * and a counter that is fed with them never goes back. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/counter.h"
#include "sources/rapl/rapl.h"

enum { CPUS_MAX = 8 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_scale(struct span text)
{
    uint8_t shift;

    if (rapl_parse_scale(text, &shift) == 0 && shift > 63)
        abort();
}

static void check_numbers(struct span text)
{
    uint32_t value;

    (void)rapl_parse_number(text, &value);
    if (rapl_parse_hex(text, 0xff, &value) == 0 && value > 0xff)
        abort();
}

static void check_cpus(struct span text)
{
    uint32_t cpus[CPUS_MAX];
    size_t count;

    if (rapl_parse_cpus(text, cpus, CPUS_MAX, &count) == 0 && count > CPUS_MAX)
        abort();
}

static void check_names(struct span text)
{
    struct rapl_directory directory;
    enum meter_kind kind;
    char id[RAPL_ID_BYTES];
    uint8_t event;

    (void)rapl_parse_directory(text, &directory);
    (void)rapl_parse_event(text, &event);
    (void)rapl_modalias_is_amd(text);
    if (rapl_parse_constraint(text) > METER_LIMITS)
        abort();
    if (rapl_parse_name(text, &kind, id) == 0 && strnlen(id, sizeof(id)) == sizeof(id))
        abort();
}

static void check_counter(const uint8_t *data, size_t size)
{
    struct counter counter = {.has_last = false};
    uint64_t words[4];

    for (; size >= sizeof(words); data += sizeof(words), size -= sizeof(words)) {
        uint64_t total = counter.total;

        memcpy(words, data, sizeof(words));
        if (!counter.has_last || words[3] % 4 == 0)
            counter_limit(&counter, words[0], words[1]);
        (void)counter_add(&counter, words[2], words[3]);
        if (counter.total < total || (counter.range > 0 && counter.total - total > counter.range))
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span text = {(const char *)data, size};

    if (size == 0)
        return 0;
    check_scale(text);
    check_numbers(text);
    check_cpus(text);
    check_names(text);
    check_counter(data, size);
    return 0;
}
