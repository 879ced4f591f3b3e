/* The gate that every NVML function passes, and what the functions ask the scenario. */
#include "call.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A board has at most 64 MIG devices in the exporter's books, and 16 boards are in a scenario. */
enum { MIG_SLOT_BITS = 6 };

static unsigned count_unloads(const struct fake *fake, uint64_t t_us)
{
    const struct directives *directives = &fake->scenario->directives;
    unsigned count = 0;

    for (size_t i = 0; i < directives->count && directives->items[i].t_us <= t_us; i++)
        count += directives->items[i].sort == DIRECTIVE_DRIVER && !directives->items[i].values[0];
    return count;
}

/* Sleeps, or waits for fake_nvml_release_hangs where the clock stands; without the lock. */
static void hang(struct fake *fake, uint64_t ms)
{
    uint64_t releases = fake->releases;

    fake->hanging++;
    pthread_cond_broadcast(&fake->changed);
    if (fake->clock.manual) {
        while (releases == fake->releases)
            pthread_cond_wait(&fake->changed, &fake->mutex);
    } else {
        struct timespec left = {.tv_sec = (time_t)(ms / 1000),
                                .tv_nsec = (long)(ms % 1000 * 1000000)};

        pthread_mutex_unlock(&fake->mutex);
        while (nanosleep(&left, &left) != 0 && errno == EINTR)
            ;
        pthread_mutex_lock(&fake->mutex);
    }
    fake->hanging--;
    pthread_cond_broadcast(&fake->changed);
}

const struct directive *call_last(const struct call *call, enum directive_sort sort, uint64_t key)
{
    return directives_last(&call->fake->scenario->directives, sort, key, call->gpu,
                           call->play.t_us);
}

static int driver_code(const struct call *call)
{
    const struct fake *fake = call->fake;
    const struct directive *driver = call_last(call, DIRECTIVE_DRIVER, 0);

    if (driver && !driver->values[0])
        return NVML_DRIVER_NOT_LOADED;
    /* The driver that this initialisation was made with is gone. */
    if (fake->init_count > 0 && count_unloads(fake, call->play.t_us) != fake->unloads_at_init)
        return NVML_UNINITIALIZED;
    return NVML_SUCCESS;
}

static int scripted_code(const struct call *call)
{
    const struct directive *error = call_last(call, DIRECTIVE_ERROR, call->symbol);

    if (call->gpu != DIRECTIVE_ALL && call_directive(call, DIRECTIVE_LOST, 0))
        return NVML_GPU_IS_LOST;
    return error ? (int)error->values[1] : NVML_SUCCESS;
}

static void pass_hang(struct call *call)
{
    const struct directive *directive = call_last(call, DIRECTIVE_HANG, call->symbol);

    if (!directive || directive->values[1] == 0)
        return;
    hang(call->fake, directive->values[1]);
    if (call->fake->scenario)
        call->play = play_now(&call->fake->clock, call->fake->scenario);
}

int call_apply(struct call *call, int gpu)
{
    const struct fake *fake = call->fake;
    uint32_t generation = fake->generation;

    call->gpu = gpu;
    pass_hang(call);
    if (fake->init_count == 0 || fake->generation != generation)
        return call->code = NVML_UNINITIALIZED;
    call->code = driver_code(call);
    if (!call->code)
        call->code = scripted_code(call);
    return call->code;
}

static struct call enter(enum symbol symbol)
{
    struct fake *fake = fake_lock();
    struct call call = {.fake = fake, .symbol = symbol, .gpu = DIRECTIVE_ALL};

    fake->calls[symbol]++;
    if (fake->scenario)
        call.play = play_now(&fake->clock, fake->scenario);
    return call;
}

void call_end(struct call *call)
{
    fake_unlock(call->fake);
}

struct call call_open(enum symbol symbol)
{
    struct call call = enter(symbol);

    if (call.fake->init_count == 0)
        call.code = NVML_UNINITIALIZED;
    return call;
}

struct call call_begin(enum symbol symbol)
{
    struct call call = call_open(symbol);

    if (!call.code)
        call_apply(&call, DIRECTIVE_ALL);
    return call;
}

/* The upper half is of the initialisation, the lower of the device's UUID: "UUIDs are immutable for
 * the lifetime of a MIG device" (nvml.h, nvmlDeviceGetUUID). */
static uint32_t mig_serial(const struct call *call, const struct instance *instance)
{
    uint32_t hash = 2166136261;

    for (const char *c = instance->uuid; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 16777619;
    return call->fake->generation << 16 | (hash >> 16 ^ (hash & 0xffff));
}

void *call_mig_handle(const struct call *call, const struct instance *instance)
{
    return handle_make(HANDLE_MIG, mig_serial(call, instance),
                       (unsigned)call->gpu << MIG_SLOT_BITS | (unsigned)instance->index);
}

/* "If the compute instance is destroyed [...] the MIG device handle would remain invalid" (nvml.h,
 * nvmlDeviceGetMigDeviceHandleByIndex); which code it answers then is not said. */
static void find_instance(struct call *call, unsigned slot, uint32_t serial)
{
    const struct record *layout = call_layout(call);

    for (size_t i = 0; layout && layout->values[0] && i < layout->count; i++)
        if (layout->instances[i].index == slot && mig_serial(call, &layout->instances[i]) == serial)
            call->instance = &layout->instances[i];
    if (!call->instance)
        call->code = (int)call_directive(call, DIRECTIVE_DESTROYED, NVML_INVALID_ARGUMENT);
}

struct call call_begin_any(enum symbol symbol, void *dev)
{
    uint32_t serial = 0;
    int index = handle_open(HANDLE_MIG, dev, &serial);
    struct call call;

    if (index < 0)
        return call_begin_device(symbol, dev);
    call = call_open(symbol);
    if (!call.code && serial >> 16 != (call.fake->generation & 0xffff)) {
        call.fake->stale_uses++;
        call.code = NVML_INVALID_ARGUMENT;
    }
    if (!call.code && call_apply(&call, index >> MIG_SLOT_BITS) == NVML_SUCCESS)
        find_instance(&call, (unsigned)index & ((1 << MIG_SLOT_BITS) - 1), serial);
    return call;
}

struct call call_begin_device(enum symbol symbol, void *dev)
{
    struct call call = call_open(symbol);
    struct fake *fake = call.fake;
    uint32_t generation = 0;
    int gpu = handle_open(HANDLE_DEVICE, dev, &generation);
    bool stale = gpu >= 0 && (fake->init_count == 0 || generation != fake->generation);

    fake->stale_uses += stale;
    /* Power and energy are the board's (reference page, 9.1), and so are clocks and all else that
     * this call is for: an H100 with driver 535 answers so of power and clocks. */
    if (!call.code && handle_open(HANDLE_MIG, dev, &generation) >= 0)
        call.code = NVML_NOT_SUPPORTED;
    if (!call.code && (gpu < 0 || stale))
        call.code = NVML_INVALID_ARGUMENT;
    if (!call.code)
        call_apply(&call, gpu);
    return call;
}

/* Initialisation. */

struct call call_begin_init(enum symbol symbol)
{
    struct call call = enter(symbol);
    struct fake *fake = call.fake;
    const struct directive *driver;

    if (!fake->scenario && fake_read_scenario(fake, getenv("FAKE_NVML_SCENARIO")) != 0) {
        call.code = NVML_UNKNOWN;
        return call;
    }
    play_clock_start(&fake->clock);
    call.play = play_now(&fake->clock, fake->scenario);
    pass_hang(&call);
    if (!fake->scenario) {
        call.code = NVML_UNKNOWN;
        return call;
    }
    driver = call_last(&call, DIRECTIVE_DRIVER, 0);
    call.code = driver && !driver->values[0] ? NVML_DRIVER_NOT_LOADED : scripted_code(&call);
    return call;
}

int call_init(struct call *call)
{
    struct fake *fake = call->fake;

    if (call->code)
        return call->code;
    if (fake->init_count++ == 0) {
        fake->generation++;
        fake->unloads_at_init = count_unloads(fake, call->play.t_us);
    }
    return NVML_SUCCESS;
}

int call_shutdown(struct call *call)
{
    if (call->code)
        return call->code;
    pass_hang(call);
    if (call->fake->init_count == 0)
        return NVML_UNINITIALIZED;
    /* It does not matter here that the driver is gone. */
    call->code = scripted_code(call);
    call->fake->init_count -= call->code == NVML_SUCCESS;
    return call->code;
}

/* What a call asks the scenario. */

const struct gpu *call_gpu(const struct call *call)
{
    return &call->fake->scenario->gpus[call->gpu];
}

const struct record *call_layout(const struct call *call)
{
    return series_near(&call_gpu(call)->series[KIND_LAYOUT], call->play.t_us);
}

bool call_is_mig(const struct call *call)
{
    const struct record *layout = call_layout(call);

    return layout ? layout->values[0] : call_directive(call, DIRECTIVE_MIG, 0);
}

const struct record *call_record(const struct call *call, enum kind kind)
{
    return series_near(&call_gpu(call)->series[kind], call->play.t_us);
}

uint64_t call_directive(const struct call *call, enum directive_sort sort, uint64_t otherwise)
{
    return directives_value(&call->fake->scenario->directives, sort, call->gpu, call->play.t_us,
                            otherwise);
}

uint64_t call_stamp_us(const struct call *call, int64_t elapsed_us)
{
    return play_stamp_us(&call->fake->clock, call->fake->scenario, elapsed_us);
}

const struct pids *call_pids(struct call *call)
{
    const struct directive *directive = call_last(call, DIRECTIVE_PIDS, 0);
    char path[PATH_MAX];

    if (!directive)
        pids_refresh(&call->fake->pids, getenv("FAKE_NVML_PIDS"));
    else if (directive->text[0] == '/')
        pids_refresh(&call->fake->pids, directive->text);
    else if (snprintf(path, sizeof(path), "%s/%s", call->fake->scenario->folder, directive->text) <
             (int)sizeof(path))
        pids_refresh(&call->fake->pids, path);
    return &call->fake->pids;
}

/* What a round of a trace that loops adds to the counter. */
static uint64_t energy_of_round_mj(const struct call *call)
{
    const struct series *series = &call_gpu(call)->series[KIND_ENERGY];
    const struct record *last = series_at(series, call->fake->scenario->loop_us - 1);

    return last && last->values[0] > series->records[0].values[0]
               ? last->values[0] - series->records[0].values[0]
               : 0;
}

int call_energy_mj(const struct call *call, uint64_t *ret_mj)
{
    const struct record *record = call_record(call, KIND_ENERGY);
    const struct directive *driver = call_last(call, DIRECTIVE_DRIVER, 0);
    uint64_t energy_mj;

    if (!record || call_directive(call, DIRECTIVE_NO_ENERGY, 0))
        return NVML_NOT_SUPPORTED;
    energy_mj = record->values[0];
    if (call->fake->scenario->loop_us)
        energy_mj += call->play.round * energy_of_round_mj(call);
    /* The counter starts when the driver is loaded. */
    if (driver && driver->values[0]) {
        uint64_t base_mj =
            series_near(&call_gpu(call)->series[KIND_ENERGY], driver->t_us)->values[0];

        energy_mj -= base_mj <= energy_mj ? base_mj : 0;
    }
    *ret_mj = energy_mj;
    return NVML_SUCCESS;
}

int copy_out(char *buf, unsigned len, const char *text)
{
    if (!buf)
        return NVML_INVALID_ARGUMENT;
    if (strlen(text) >= len)
        return NVML_INSUFFICIENT_SIZE;
    strcpy(buf, text);
    return NVML_SUCCESS;
}
