/* The one state, the scenario that it plays, and the handles that point into it. */
#include "fake.h"

#include <errno.h>
#include <stdio.h>

static struct fake the_fake = {
    .mutex = PTHREAD_MUTEX_INITIALIZER,
    .changed = PTHREAD_COND_INITIALIZER,
};

/* Under LeakSanitizer a library that is closed must not leave its scenario behind. */
__attribute__((destructor)) static void unload(void)
{
    scenario_free(the_fake.scenario);
    pids_destroy(&the_fake.pids);
}

struct fake *fake_lock(void)
{
    pthread_mutex_lock(&the_fake.mutex);
    return &the_fake;
}

void fake_unlock(struct fake *fake)
{
    pthread_mutex_unlock(&fake->mutex);
}

int fake_read_scenario(struct fake *fake, const char *path)
{
    char why[512];

    if (!path || !*path) {
        fprintf(stderr, "fake NVML: FAKE_NVML_SCENARIO names no trace\n");
        return -EINVAL;
    }
    fake->scenario = scenario_read(path, why, sizeof(why));
    if (!fake->scenario)
        fprintf(stderr, "fake NVML: %s\n", why);
    return fake->scenario ? 0 : -EINVAL;
}

/* 0x7e57 in the upper bits is no address on x86-64: following it ends the program. */
void *handle_make(enum handle_sort sort, uint32_t serial, unsigned index)
{
    return (void *)((uintptr_t)0x7e57 << 48 | (uintptr_t)sort << 44 | (uintptr_t)serial << 12 |
                    index);
}

int handle_open(enum handle_sort sort, void *handle, uint32_t *ret_serial)
{
    uintptr_t bits = (uintptr_t)handle;

    if (bits >> 44 != ((uintptr_t)0x7e57 << 4 | sort))
        return -1;
    *ret_serial = (uint32_t)(bits >> 12);
    return (int)(bits & 0xfff);
}
