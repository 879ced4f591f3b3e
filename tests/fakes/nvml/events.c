/* Events: the XIDs of the scenario, told once to each set that was registered before them. */
#include <string.h>
#include <time.h>

#include "call.h"

/* How often a waiting call looks at the clock. */
enum { LOOK_NS = 5000000 };

static struct event_set *find_set(struct fake *fake, void *handle)
{
    uint32_t serial;
    int at = handle_open(HANDLE_EVENT_SET, handle, &serial);

    if (at < 0 || at >= FAKE_EVENT_SETS || serial == 0 || fake->event_sets[at].serial != serial)
        return NULL;
    return &fake->event_sets[at];
}

int nvmlEventSetCreate(void **ret_set)
{
    _call_ struct call call = call_begin(SYMBOL_nvmlEventSetCreate);

    if (call.code)
        return call.code;
    if (!ret_set)
        return NVML_INVALID_ARGUMENT;
    for (unsigned i = 0; i < FAKE_EVENT_SETS; i++) {
        struct event_set *set = &call.fake->event_sets[i];

        if (set->serial != 0)
            continue;
        *set =
            (struct event_set){.serial = ++call.fake->serial, .told_us = INT64_MIN, .told_gpu = -1};
        *ret_set = handle_make(HANDLE_EVENT_SET, set->serial, i);
        return NVML_SUCCESS;
    }
    return NVML_INSUFFICIENT_RESOURCES;
}

int nvmlEventSetFree(void *handle)
{
    /* It works without driver: whoever lost it must be able to clean up. */
    _call_ struct call call = call_open(SYMBOL_nvmlEventSetFree);
    struct event_set *set = find_set(call.fake, handle);

    if (call.code)
        return call.code;
    if (!set)
        return NVML_INVALID_ARGUMENT;
    set->serial = 0;
    return NVML_SUCCESS;
}

int nvmlDeviceGetSupportedEventTypes(void *dev, unsigned long long *types)
{
    _call_ struct call call = call_begin_device(SYMBOL_nvmlDeviceGetSupportedEventTypes, dev);

    if (call.code)
        return call.code;
    if (!types)
        return NVML_INVALID_ARGUMENT;
    *types = NVML_EVENTS_SUPPORTED;
    return NVML_SUCCESS;
}

int nvmlDeviceRegisterEvents(void *dev, unsigned long long types, void *handle)
{
    _call_ struct call call = call_begin_device(SYMBOL_nvmlDeviceRegisterEvents, dev);
    struct event_set *set = find_set(call.fake, handle);

    if (call.code)
        return call.code;
    if (!set)
        return NVML_INVALID_ARGUMENT;
    if (types & ~(unsigned long long)NVML_EVENTS_SUPPORTED)
        return NVML_NOT_SUPPORTED;
    if (set->types[call.gpu] == 0)
        set->since_us[call.gpu] = (int64_t)call.play.elapsed_us;
    set->types[call.gpu] |= types;
    return NVML_SUCCESS;
}

/* Whether an event comes after the last one that was told: by time, directive, GPU. */
static bool is_new(const struct event_set *set, int64_t t_us, size_t directive, int gpu)
{
    if (t_us != set->told_us)
        return t_us > set->told_us;
    if (directive != set->told_directive)
        return directive > set->told_directive;
    return gpu > set->told_gpu;
}

/* The next event of one directive in a round; remembers it as told. */
static bool tell(const struct call *call, struct event_set *set, uint64_t round, size_t at,
                 struct nvml_event_data *data)
{
    const struct scenario *scenario = call->fake->scenario;
    const struct directive *xid = &scenario->directives.items[at];
    int64_t t_us = play_elapsed_us(scenario, round, xid->t_us);

    if (xid->sort != DIRECTIVE_XID || t_us > (int64_t)call->play.elapsed_us)
        return false;
    for (int gpu = 0; gpu < (int)scenario->gpu_count; gpu++) {
        if ((xid->gpu != DIRECTIVE_ALL && xid->gpu != gpu) || !(set->types[gpu] & NVML_EVENT_XID) ||
            t_us <= set->since_us[gpu] || !is_new(set, t_us, at, gpu))
            continue;
        set->told_us = t_us;
        set->told_directive = at;
        set->told_gpu = gpu;
        *data = (struct nvml_event_data){
            .device = handle_make(HANDLE_DEVICE, call->fake->generation, (unsigned)gpu),
            .event_type = NVML_EVENT_XID,
            .event_data = xid->values[0],
            .gpu_instance_id = NVML_NO_INSTANCE,
            .compute_instance_id = NVML_NO_INSTANCE,
        };
        return true;
    }
    return false;
}

static bool next_event(const struct call *call, struct event_set *set, struct nvml_event_data *data)
{
    const struct directives *directives = &call->fake->scenario->directives;

    for (uint64_t round = 0; round <= call->play.round; round++)
        for (size_t i = 0; i < directives->count; i++)
            if (tell(call, set, round, i, data))
                return true;
    return false;
}

static struct timespec after(struct timespec time, int64_t ns)
{
    ns += time.tv_nsec;
    time.tv_sec += ns / 1000000000;
    time.tv_nsec = ns % 1000000000;
    return time;
}

static bool is_before(struct timespec a, struct timespec b)
{
    return a.tv_sec != b.tv_sec ? a.tv_sec < b.tv_sec : a.tv_nsec < b.tv_nsec;
}

/* Waits until the deadline, a change or the next look at the clock. False: the deadline is over. */
static bool wait_more(struct fake *fake, struct timespec deadline)
{
    struct timespec now, until;

    clock_gettime(CLOCK_REALTIME, &now);
    if (fake->clock.manual || !is_before(now, deadline))
        return false;
    until = after(now, LOOK_NS);
    if (is_before(deadline, until))
        until = deadline;
    pthread_cond_timedwait(&fake->changed, &fake->mutex, &until);
    return true;
}

static int wait_event(enum symbol symbol, void *handle, struct nvml_event_data *ret_data,
                      unsigned timeout_ms, size_t size)
{
    _call_ struct call call = call_begin(symbol);
    struct fake *fake = call.fake;
    struct nvml_event_data data;
    struct timespec deadline;

    if (call.code)
        return call.code;
    if (!ret_data)
        return NVML_INVALID_ARGUMENT;
    clock_gettime(CLOCK_REALTIME, &deadline);
    deadline = after(deadline, (int64_t)timeout_ms * 1000000);
    do {
        struct event_set *set = find_set(fake, handle);

        if (!set)
            return NVML_INVALID_ARGUMENT;
        if (fake->init_count == 0)
            return NVML_UNINITIALIZED;
        call.play = play_now(&fake->clock, fake->scenario);
        if (next_event(&call, set, &data)) {
            memcpy(ret_data, &data, size);
            return NVML_SUCCESS;
        }
    } while (wait_more(fake, deadline));
    return NVML_TIMEOUT;
}

int nvmlEventSetWait_v2(void *set, struct nvml_event_data *data, unsigned timeout_ms)
{
    return wait_event(SYMBOL_nvmlEventSetWait_v2, set, data, timeout_ms, sizeof(*data));
}

int nvmlEventSetWait(void *set, struct nvml_event_data *data, unsigned timeout_ms)
{
    return wait_event(SYMBOL_nvmlEventSetWait, set, data, timeout_ms, NVML_EVENT_DATA_V1_SIZE);
}
