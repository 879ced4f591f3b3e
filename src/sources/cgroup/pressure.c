#include "sources/cgroup/pressure.h"

#include "core/parse.h"
#include "sources/cgroup/keyed.h"

static bool find_total(struct span line, uint64_t *ret_us)
{
    while (line.len > 0) {
        struct span word = span_cut(&line, ' ');

        if (span_strip_prefix(&word, "total="))
            return parse_u64_max(word, USAGE_VALUE_MAX, ret_us) == 0;
    }
    return false;
}

static void parse(struct span text, enum usage_field some, enum usage_field full,
                  struct usage *usage)
{
    struct span line;

    while (keyed_next_line(&text, &line)) {
        uint64_t total_us;

        if (!find_total(line, &total_us))
            continue;
        if (span_strip_prefix(&line, "some "))
            usage_set(usage, some, total_us);
        else if (span_strip_prefix(&line, "full "))
            usage_set(usage, full, total_us);
    }
}

void pressure_parse_cpu(struct span text, struct usage *usage)
{
    parse(text, USAGE_CPU_SOME_US, USAGE_CPU_FULL_US, usage);
}

void pressure_parse_memory(struct span text, struct usage *usage)
{
    parse(text, USAGE_MEMORY_SOME_US, USAGE_MEMORY_FULL_US, usage);
}

void pressure_parse_io(struct span text, struct usage *usage)
{
    parse(text, USAGE_IO_SOME_US, USAGE_IO_FULL_US, usage);
}
