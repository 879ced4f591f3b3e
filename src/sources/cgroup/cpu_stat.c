#include "sources/cgroup/cpu_stat.h"

#include "core/macros.h"
#include "sources/cgroup/keyed.h"

enum {
    NS_PER_US = 1000,
    TICK_US = 10000, /* USER_HZ is 100 on all that we run on; it only divides, see above */
};

void cpu_stat_parse(struct span text, struct usage *usage)
{
    static const struct keyed_field fields[] = {
        {"usage_usec", USAGE_CPU_US, 1},
        {"user_usec", USAGE_CPU_USER_US, 1},
        {"system_usec", USAGE_CPU_SYSTEM_US, 1},
        {"nr_periods", USAGE_CPU_PERIODS, 1},
        {"nr_throttled", USAGE_CPU_THROTTLED_PERIODS, 1},
        {"throttled_usec", USAGE_CPU_THROTTLED_US, 1},
    };

    keyed_parse(text, fields, ARRAY_SIZE(fields), usage);
}

void cpu_stat_parse_v1(struct span text, struct usage *usage)
{
    static const struct keyed_field fields[] = {
        {"nr_periods", USAGE_CPU_PERIODS, 1},
        {"nr_throttled", USAGE_CPU_THROTTLED_PERIODS, 1},
        {"throttled_time", USAGE_CPU_THROTTLED_US, NS_PER_US},
    };

    keyed_parse(text, fields, ARRAY_SIZE(fields), usage);
}

static void set_ticks(struct usage *usage, enum usage_field field, uint64_t ticks)
{
    if (ticks <= USAGE_VALUE_MAX / TICK_US)
        usage_set(usage, field, ticks * TICK_US);
}

void cpu_stat_parse_cpuacct(struct span text, struct usage *usage)
{
    static const struct keyed_field fields[] = {
        {"user", USAGE_CPU_USER_US, 1},
        {"system", USAGE_CPU_SYSTEM_US, 1},
    };
    struct usage ticks;

    ticks.valid = 0;
    keyed_parse(text, fields, ARRAY_SIZE(fields), &ticks);
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
        if (usage_has(&ticks, fields[i].field))
            set_ticks(usage, fields[i].field, ticks.values[fields[i].field]);
}

void cpu_stat_parse_cpuacct_usage(struct span text, struct usage *usage)
{
    uint64_t used_ns;

    if (keyed_parse_number(text, &used_ns) == 0)
        usage_set(usage, USAGE_CPU_US, used_ns / NS_PER_US);
}

static uint64_t user_part(uint64_t total, uint64_t user, uint64_t system)
{
    /* As the kernel does where no tick has hit yet (cputime_adjust). */
    if (user + system == 0)
        return total;
    return (uint64_t)((unsigned __int128)total * user / (user + system));
}

void cpu_stat_divide(struct usage *usage, const struct usage *last)
{
    const uint32_t all =
        USAGE_BIT(USAGE_CPU_US) | USAGE_BIT(USAGE_CPU_USER_US) | USAGE_BIT(USAGE_CPU_SYSTEM_US);
    uint64_t *user = &usage->values[USAGE_CPU_USER_US];
    uint64_t *system = &usage->values[USAGE_CPU_SYSTEM_US];
    uint64_t total = usage->values[USAGE_CPU_US];
    uint64_t last_user = last->values[USAGE_CPU_USER_US];
    uint64_t last_system = last->values[USAGE_CPU_SYSTEM_US];

    if ((usage->valid & all) != all)
        return;
    *user = user_part(total, *user, *system);
    if ((last->valid & all) == all && total >= last_user + last_system)
        *user = MIN(MAX(*user, last_user), total - last_system);
    *system = total - *user;
}
