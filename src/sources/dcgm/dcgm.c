#include "sources/dcgm/dcgm.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/macros.h"

/* As often as NVML's samples come; DCGM takes 100 ms and more. */
static const uint64_t UPDATE_US = 200000;
static const uint32_t CONNECT_MS = 2000;
static const double KEEP_S = 5;

/* Values so far apart leave a time between them of which nothing is known: they are the mean of an
 * update, not of the time since the last value. */
static const uint64_t GAP_US = USEC_PER_SEC;

/* Values from further away, by either clock, are not of the energy that is booked now. */
static const uint64_t AGE_MAX_US = 2 * USEC_PER_SEC;

/* Between two attempts to watch a board that was refused: a profiler may have it. */
static const uint64_t RETRY_US = 60 * USEC_PER_SEC;

/*
 * The field of each of sample_gpm_ids: graphics, SM, occupancy, integer, tensor, HMMA, DRAM, fp64,
 * fp32, fp16 (dcgm_fields.h, DCGM_FI_PROF_*). All are ratios of the same cycles that GPM has in
 * percent: DCGM itself reads GPM where there is one (DcgmGpmManager.cpp).
 */
static const uint16_t fields_of_gpm[SAMPLE_GPM_COUNT] = {1001, 1002, 1003, 1016, 1004,
                                                         1014, 1005, 1006, 1007, 1008};

/* What is tried, the most first: older host engines do not know all fields, older boards do not
 * have them, or cannot count them at the same time (DCGM_ST_PROFILING_MULTI_PASS). */
static const uint16_t field_sets[][DCGM_FIELDS_MAX] = {
    {1001, 1002, 1003, 1004, 1005, 1006, 1007, 1008, 1014, 1016},
    {1001, 1002, 1003, 1004, 1005, 1006, 1007, 1008},
    {1001, 1002, 1004, 1005},
};

int dcgm_connect(struct dcgm *dcgm, struct error *err)
{
    struct dcgm_connect_params params = {
        .version = DCGM_VERSION(struct dcgm_connect_params, 2),
        .timeout_ms = CONNECT_MS,
    };
    int r = dcgm_find_engine(dcgm->context->host, err), code;

    if (r < 0)
        return r;
    code = dcgm->is_initialised ? DCGM_OK : dcgm->library.init();
    dcgm->is_initialised |= code == DCGM_OK;
    if (code == DCGM_OK)
        code = dcgm->library.connect(DCGM_ADDRESS, &params, &dcgm->handle);
    dcgm->is_connected = code == DCGM_OK;
    if (code == DCGM_VER_MISMATCH)
        return error_set(err, -ENODEV,
                         "the host engine at " DCGM_ADDRESS
                         " and libdcgm have different versions: %s",
                         dcgm_library_error(&dcgm->library, code));
    if (code != DCGM_OK)
        return error_set(err, -ENODEV, "no host engine answers at " DCGM_ADDRESS ": %s",
                         dcgm_library_error(&dcgm->library, code));
    return 0;
}

/* Local: what was watched ends with the connection. */
void dcgm_disconnect(struct dcgm *dcgm)
{
    if (dcgm->is_connected)
        (void)dcgm->library.disconnect(dcgm->handle);
    if (dcgm->is_initialised)
        (void)dcgm->library.shutdown();
    dcgm->is_connected = dcgm->is_initialised = false;
    memset(dcgm->watches, 0, sizeof(dcgm->watches));
}

static int lost_connection(const struct dcgm *dcgm, int code, struct error *err)
{
    return error_set(err, -ENODEV, "the host engine at " DCGM_ADDRESS ": %s",
                     dcgm_library_error(&dcgm->library, code));
}

/* Whether this is our version of a value, and the host engine had one. */
static bool is_valid(const struct dcgm_value *value, char type)
{
    return value->version == DCGM_VERSION(struct dcgm_value, 2) && value->status == DCGM_OK &&
           value->type == type;
}

/* DCGM's id of the board. */
static int find_board(struct dcgm *dcgm, struct dcgm_watch *watch, struct error *err)
{
    uint32_t ids[DCGM_GPUS_MAX];
    uint16_t field = DCGM_FIELD_UUID;
    int count = 0, code = dcgm->library.devices(dcgm->handle, ids, &count);

    if (code != DCGM_OK)
        return lost_connection(dcgm, code, err);
    for (int i = 0; i < MIN(count, (int)DCGM_GPUS_MAX); i++) {
        struct dcgm_entity entity = {DCGM_ENTITY_GPU, ids[i]};
        struct dcgm_value *value = &dcgm->values[0];

        *value = (struct dcgm_value){0};
        code = dcgm->library.values(dcgm->handle, &entity, 1, &field, 1, DCGM_LIVE, value);
        if (code == DCGM_OK && is_valid(value, DCGM_TYPE_STRING) &&
            strncmp(value->text, watch->uuid, sizeof(value->text)) == 0) {
            watch->id = ids[i];
            return 0;
        }
    }
    return error_set(err, -ENOTSUP, "the host engine does not have %s", watch->uuid);
}

static int watch_fields(struct dcgm *dcgm, uintptr_t group, const uint16_t *set, size_t count)
{
    const struct dcgm_library *library = &dcgm->library;
    uintptr_t fields = 0;
    char name[64];
    int code;

    /* Names are unique in the host engine, which may not have noticed yet that we were gone. */
    snprintf(name, sizeof(name), "wattribute-%d-%u", getpid(), dcgm->groups++);
    code = library->fields_create(dcgm->handle, (int)count, set, name, &fields);
    if (code != DCGM_OK)
        return code;
    code = library->watch(dcgm->handle, group, fields, (long long)UPDATE_US, KEEP_S, 0);
    if (code != DCGM_OK)
        (void)library->fields_destroy(dcgm->handle, fields);
    return code;
}

static size_t set_size(const uint16_t *set)
{
    size_t count = 0;

    while (count < DCGM_FIELDS_MAX && set[count] != 0)
        count++;
    return count;
}

/* One group for each board: DCGM refuses to profile boards of several models as one. */
int dcgm_watch(struct dcgm *dcgm, struct dcgm_watch *watch, struct error *err)
{
    const struct dcgm_library *library = &dcgm->library;
    uintptr_t group = 0;
    char name[64];
    bool is_added;
    int r = find_board(dcgm, watch, err), code;

    if (r < 0)
        return r;
    snprintf(name, sizeof(name), "wattribute-%d-%u", getpid(), dcgm->groups++);
    code = library->group_create(dcgm->handle, DCGM_GROUP_EMPTY, name, &group);
    if (code != DCGM_OK)
        return lost_connection(dcgm, code, err);
    code = library->group_add(dcgm->handle, group, watch->id);
    is_added = code == DCGM_OK;
    for (size_t i = 0; is_added && code != DCGM_CONNECTION_NOT_VALID && i < ARRAY_SIZE(field_sets);
         i++) {
        size_t count = set_size(field_sets[i]);

        code = watch_fields(dcgm, group, field_sets[i], count);
        if (code != DCGM_OK)
            continue;
        memcpy(watch->fields, field_sets[i], sizeof(watch->fields));
        watch->field_count = count;
        return 0;
    }
    (void)library->group_destroy(dcgm->handle, group);
    if (code == DCGM_CONNECTION_NOT_VALID)
        return lost_connection(dcgm, code, err);
    return error_set(err, -ENOTSUP, "its profiling fields cannot be watched: %s",
                     dcgm_library_error(library, code));
}

/* A ratio, as GPM's percent. What is blank, from DCGM_FP64_BLANK on, is far above 1. */
static void add_value(struct sample_gpm *reading, const struct dcgm_value *value)
{
    for (size_t i = 0; i < SAMPLE_GPM_COUNT; i++)
        if (value->field == fields_of_gpm[i] && value->real >= 0 && value->real <= 1) {
            reading->valid |= (uint16_t)(1 << i);
            reading->millipercent[i] = (uint32_t)lround(value->real * 100000);
        }
}

static bool is_current(const struct dcgm *dcgm, int64_t t_us)
{
    const struct clock *clock = dcgm->context->clock;
    uint64_t now_us = clock->realtime_us(clock);

    return t_us > (int64_t)(now_us - AGE_MAX_US) && t_us < (int64_t)(now_us + AGE_MAX_US);
}

/* The newest values, each once. The first, and those after a gap, only begin. */
static int read_board(struct dcgm *dcgm, uint32_t gpu, struct error *err)
{
    struct dcgm_watch *watch = &dcgm->watches[gpu];
    struct dcgm_entity entity = {DCGM_ENTITY_GPU, watch->id};
    struct sample_gpm reading = {.instance = SAMPLE_NO_INSTANCE};
    uint64_t t_us = 0;
    int code;

    memset(dcgm->values, 0, sizeof(dcgm->values));
    code = dcgm->library.values(dcgm->handle, &entity, 1, watch->fields,
                                (uint32_t)watch->field_count, 0, dcgm->values);
    if (code != DCGM_OK)
        return lost_connection(dcgm, code, err);
    for (size_t i = 0; i < watch->field_count; i++) {
        const struct dcgm_value *value = &dcgm->values[i];

        if (!is_valid(value, DCGM_TYPE_DOUBLE) || !is_current(dcgm, value->t_us))
            continue;
        add_value(&reading, value);
        t_us = MAX(t_us, (uint64_t)value->t_us);
    }
    /* They are older than those before only if the clock was set back. */
    if (!reading.valid || (t_us <= watch->t_us && watch->t_us - t_us <= AGE_MAX_US))
        return 0;
    if (t_us < watch->t_us || t_us - watch->t_us > GAP_US)
        reading.valid = 0;
    watch->t_us = t_us;
    gpu_counters_give(dcgm->context->counters, gpu, t_us, &reading);
    return 0;
}

/* Follows what the board wants. */
static int look_after_board(struct dcgm *dcgm, uint32_t gpu, const char *uuid, bool is_due,
                            struct error *err)
{
    struct dcgm_watch *watch = &dcgm->watches[gpu];
    bool is_another = strcmp(watch->uuid, uuid) != 0;
    int r = 0;

    if (is_another) {
        *watch = (struct dcgm_watch){0};
        snprintf(watch->uuid, sizeof(watch->uuid), "%s", uuid);
    }
    if (watch->field_count == 0 && (is_another || is_due))
        r = dcgm_watch(dcgm, watch, err);
    if (r == 0 && watch->field_count > 0)
        r = read_board(dcgm, gpu, err);
    return r == -ENOTSUP ? 0 : r;
}

static bool is_any_wanted(struct gpu_counters *counters)
{
    char uuid[GPU_COUNTERS_UUID_BYTES];

    for (uint32_t gpu = 0; gpu < SAMPLE_GPU_MAX; gpu++)
        if (gpu_counters_wanted(counters, gpu, uuid))
            return true;
    return false;
}

/* Watches end with their connection; boards that are still wanted are watched by the next one. */
static void drop_unwanted(struct dcgm *dcgm)
{
    char uuid[GPU_COUNTERS_UUID_BYTES];

    for (uint32_t gpu = 0; gpu < SAMPLE_GPU_MAX; gpu++)
        if (dcgm->watches[gpu].field_count > 0 &&
            !gpu_counters_wanted(dcgm->context->counters, gpu, uuid))
            dcgm_disconnect(dcgm);
}

/* The boards pass on what is read here. */
static int dcgm_read(void *state, struct batch *batch, struct error *err)
{
    struct dcgm *dcgm = state;
    const struct clock *clock = dcgm->context->clock;
    struct gpu_counters *counters = dcgm->context->counters;
    uint64_t mono_us = clock->monotonic_us(clock);
    bool is_due = mono_us >= dcgm->retry_us;
    char uuid[GPU_COUNTERS_UUID_BYTES];
    int r = 0;

    (void)batch;
    drop_unwanted(dcgm);
    if (!is_any_wanted(counters))
        return 0;
    if (!dcgm->is_connected)
        r = dcgm_connect(dcgm, err);
    if (is_due)
        dcgm->retry_us = mono_us + RETRY_US;
    for (uint32_t gpu = 0; gpu < SAMPLE_GPU_MAX && r == 0; gpu++)
        if (gpu_counters_wanted(counters, gpu, uuid))
            r = look_after_board(dcgm, gpu, uuid, is_due, err);
    return r;
}

/* Again later if the board that wants counters, the library or the host engine comes. */
static int dcgm_open(const struct source_context *context, void **ret_state, struct error *err)
{
    _cleanup_free_ struct dcgm *dcgm = NULL;
    int r;

    if (context->replay_path || !context->counters || !is_any_wanted(context->counters))
        return -ENODEV;
    dcgm = calloc(1, sizeof(*dcgm));
    if (!dcgm)
        return error_set(err, -ENOMEM, "out of memory");
    dcgm->context = context;
    r = dcgm_find_engine(context->host, err);
    if (r == 0)
        r = dcgm_library_open(context->dcgm_library, &dcgm->library, err);
    if (r < 0)
        return r;
    *ret_state = TAKE_PTR(dcgm);
    return 0;
}

static void dcgm_close(void *state)
{
    struct dcgm *dcgm = state;

    if (!dcgm)
        return;
    dcgm_disconnect(dcgm);
    dcgm_library_close(&dcgm->library);
    free(dcgm);
}

const struct source_ops dcgm_source = {
    .name = "dcgm",
    .flag = "collector.dcgm",
    .help = "read the activity of NVIDIA GPUs without GPM from DCGM's host engine",
    .is_no_meter = true,
    .interval_max_us = 200000,
    .open = dcgm_open,
    .read = dcgm_read,
    .close = dcgm_close,
    .check = dcgm_check,
};
