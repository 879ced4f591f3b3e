#include "sources/cgroup/memory_stat.h"

#include "core/macros.h"
#include "sources/cgroup/keyed.h"

void memory_stat_parse(struct span text, struct usage *usage)
{
    static const struct keyed_field fields[] = {
        {"anon", USAGE_MEMORY_RSS_BYTES, 1},
        {"file", USAGE_MEMORY_CACHE_BYTES, 1},
        {"inactive_file", USAGE_MEMORY_INACTIVE_FILE_BYTES, 1},
    };

    keyed_parse(text, fields, ARRAY_SIZE(fields), usage);
}

void memory_stat_parse_events(struct span text, struct usage *usage)
{
    static const struct keyed_field fields[] = {
        {"max", USAGE_MEMORY_FAILURES, 1},
        {"oom_kill", USAGE_MEMORY_OOM_KILLS, 1},
    };

    keyed_parse(text, fields, ARRAY_SIZE(fields), usage);
}

void memory_stat_parse_v1(struct span text, struct usage *usage)
{
    static const struct keyed_field fields[] = {
        {"hierarchical_memory_limit", USAGE_MEMORY_LIMIT_BYTES, 1},
        {"total_cache", USAGE_MEMORY_CACHE_BYTES, 1},
        {"total_rss", USAGE_MEMORY_RSS_BYTES, 1},
        {"total_swap", USAGE_MEMORY_SWAP_BYTES, 1},
        {"total_inactive_file", USAGE_MEMORY_INACTIVE_FILE_BYTES, 1},
    };

    keyed_parse(text, fields, ARRAY_SIZE(fields), usage);
}

void memory_stat_parse_oom_control(struct span text, struct usage *usage)
{
    static const struct keyed_field fields[] = {{"oom_kill", USAGE_MEMORY_OOM_KILLS, 1}};

    keyed_parse(text, fields, ARRAY_SIZE(fields), usage);
}
