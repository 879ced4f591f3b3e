/* The functions with which a test steers the fake. */
#include <errno.h>
#include <string.h>

#include "fake.h"
#include "fake_nvml.h"

int fake_nvml_load(const char *path)
{
    struct fake *fake = fake_lock();
    int r = -EBUSY;

    if (fake->init_count == 0) {
        scenario_free(fake->scenario);
        fake->scenario = NULL;
        fake->clock.started = false;
        r = fake_read_scenario(fake, path);
    }
    fake_unlock(fake);
    return r;
}

void fake_nvml_set_time_us(uint64_t elapsed_us)
{
    struct fake *fake = fake_lock();

    fake->clock.manual = true;
    fake->clock.manual_us = elapsed_us;
    pthread_cond_broadcast(&fake->changed);
    fake_unlock(fake);
}

void fake_nvml_reset(void)
{
    struct fake *fake = fake_lock();

    scenario_free(fake->scenario);
    fake->scenario = NULL;
    pids_destroy(&fake->pids);
    fake->clock = (struct play_clock){0};
    fake->init_count = 0;
    fake->stale_uses = 0;
    fake->releases++;
    memset(fake->calls, 0, sizeof(fake->calls));
    memset(fake->samples, 0, sizeof(fake->samples));
    memset(fake->event_sets, 0, sizeof(fake->event_sets));
    pthread_cond_broadcast(&fake->changed);
    fake_unlock(fake);
}

uint64_t fake_nvml_call_count(const char *symbol)
{
    int i = symbol_find(symbol);
    struct fake *fake = fake_lock();
    uint64_t count = i < 0 ? 0 : fake->calls[i];

    fake_unlock(fake);
    return count;
}

unsigned fake_nvml_open_handles(void)
{
    struct fake *fake = fake_lock();
    unsigned count = 0;

    for (unsigned i = 0; i < FAKE_SAMPLES; i++)
        count += fake->samples[i].serial != 0;
    for (unsigned i = 0; i < FAKE_EVENT_SETS; i++)
        count += fake->event_sets[i].serial != 0;
    fake_unlock(fake);
    return count;
}

unsigned fake_nvml_init_count(void)
{
    struct fake *fake = fake_lock();
    unsigned count = fake->init_count;

    fake_unlock(fake);
    return count;
}

uint64_t fake_nvml_stale_uses(void)
{
    struct fake *fake = fake_lock();
    uint64_t count = fake->stale_uses;

    fake_unlock(fake);
    return count;
}

void fake_nvml_wait_hanging(unsigned calls)
{
    struct fake *fake = fake_lock();

    while (fake->hanging < calls)
        pthread_cond_wait(&fake->changed, &fake->mutex);
    fake_unlock(fake);
}

void fake_nvml_release_hangs(void)
{
    struct fake *fake = fake_lock();

    fake->releases++;
    pthread_cond_broadcast(&fake->changed);
    fake_unlock(fake);
}
