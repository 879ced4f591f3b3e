/*
 * A libdcgm.so.4 with a made-up host engine behind it. Declarations and answers follow dcgm_agent.h
 * and dcgm_structs.h of DCGM 4.6.0; they are this file's own, so that a wrong one of the exporter's
 * shows.
 */
#include "fake_dcgm.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    ST_OK = 0,
    ST_BADPARAM = -1,
    ST_UNINITIALIZED = -10,
    ST_VER_MISMATCH = -12,
    ST_UNKNOWN_FIELD = -13,
    ST_NOT_WATCHED = -16,
    ST_CONNECTION_NOT_VALID = -21,
    ST_PROFILING_NOT_SUPPORTED = -36,
    FIELD_FIRST = 1001,
    FIELDS = 16,
    GPUS = 8,
    GROUPS = 64,
};

/* "Represents an undefined double" (dcgm_structs.h, DCGM_FP64_BLANK). */
#define FP64_BLANK 140737488355328.0

typedef struct {
    unsigned int version, persistAfterDisconnect, timeoutMs, addressIsUnixSocket;
} dcgmConnectV2Params_v2;

typedef struct {
    int entityGroupId;
    unsigned int entityId;
} dcgmGroupEntityPair_t;

typedef struct {
    unsigned int version;
    int entityGroupId;
    unsigned int entityId;
    unsigned short fieldId, fieldType;
    int status;
    unsigned int unused;
    int64_t ts;
    union {
        int64_t i64;
        double dbl;
        char str[256];
        char blob[4096];
    } value;
} dcgmFieldValue_v2;

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    enum fake_dcgm_engine engine;
    bool is_set;
    uint32_t connection; /* counts; 0: none */
    unsigned init_count, hanging, groups, field_groups;
    char uuids[GPUS][96];
    int gpu_count;
    bool is_watched[FIELDS];
    unsigned short field_sets[GROUPS][FIELDS];
    struct {
        double value;
        uint64_t t_us; /* 0: none */
    } values[FIELDS];
} fake = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void lock(void)
{
    pthread_mutex_lock(&fake.mutex);
}

static int unlock(int code)
{
    pthread_mutex_unlock(&fake.mutex);
    return code;
}

void fake_dcgm_reset(enum fake_dcgm_engine engine, const char *uuid)
{
    lock();
    fake.engine = engine;
    fake.is_set = true;
    fake.connection = fake.init_count = fake.groups = fake.field_groups = 0;
    fake.gpu_count = 1;
    snprintf(fake.uuids[0], sizeof(fake.uuids[0]), "%s", uuid);
    memset(fake.is_watched, 0, sizeof(fake.is_watched));
    memset(fake.values, 0, sizeof(fake.values));
    (void)unlock(0);
}

/* "all field watches created by a connection are removed once a connection goes away"
 * (dcgmConnectV2Params_v2). */
static void drop_connection(void)
{
    fake.connection = 0;
    memset(fake.is_watched, 0, sizeof(fake.is_watched));
}

void fake_dcgm_set_engine(enum fake_dcgm_engine engine)
{
    lock();
    if (engine == FAKE_DCGM_ABSENT || fake.engine == FAKE_DCGM_ABSENT)
        drop_connection();
    fake.engine = engine;
    pthread_cond_broadcast(&fake.changed);
    (void)unlock(0);
}

void fake_dcgm_set_value(uint16_t field, double value, uint64_t t_us)
{
    lock();
    fake.values[field - FIELD_FIRST].value = value;
    fake.values[field - FIELD_FIRST].t_us = t_us;
    (void)unlock(0);
}

void fake_dcgm_wait_hanging(void)
{
    lock();
    while (fake.hanging == 0)
        pthread_cond_wait(&fake.changed, &fake.mutex);
    (void)unlock(0);
}

unsigned fake_dcgm_watched(void)
{
    unsigned count = 0;

    lock();
    for (int i = 0; i < FIELDS; i++)
        count += fake.is_watched[i];
    (void)unlock(0);
    return count;
}

unsigned fake_dcgm_init_count(void)
{
    lock();
    return (unsigned)unlock((int)fake.init_count);
}

static void read_environment(void)
{
    const char *uuids = getenv("FAKE_DCGM_GPUS");

    if (fake.is_set || !uuids)
        return;
    fake.engine = getenv("FAKE_DCGM_SILENT") ? FAKE_DCGM_SILENT : FAKE_DCGM_RUNS;
    for (fake.gpu_count = 0; *uuids && fake.gpu_count < GPUS; fake.gpu_count++) {
        size_t len = strcspn(uuids, ",");

        snprintf(fake.uuids[fake.gpu_count], sizeof(fake.uuids[0]), "%.*s", (int)len, uuids);
        uuids += len + (uuids[len] == ',');
    }
}

FAKE_DCGM_API const char *errorString(int result);
const char *errorString(int result)
{
    switch (result) {
    case ST_VER_MISMATCH:
        return "API version mismatch";
    case ST_CONNECTION_NOT_VALID:
        return "The connection to the host engine is not valid any longer";
    case ST_PROFILING_NOT_SUPPORTED:
        return "Profiling is not supported for this group of GPUs or GPU";
    default:
        return NULL;
    }
}

FAKE_DCGM_API int dcgmInit(void);
int dcgmInit(void)
{
    lock();
    read_environment();
    fake.init_count++;
    return unlock(ST_OK);
}

/* "Any [...] remote connections will automatically be shut down as well." */
FAKE_DCGM_API int dcgmShutdown(void);
int dcgmShutdown(void)
{
    lock();
    drop_connection();
    fake.init_count--;
    return unlock(ST_OK);
}

/* With the lock held. */
static void hang_while(enum fake_dcgm_engine engine)
{
    while (fake.engine == engine) {
        fake.hanging++;
        pthread_cond_broadcast(&fake.changed);
        pthread_cond_wait(&fake.changed, &fake.mutex);
        fake.hanging--;
    }
}

FAKE_DCGM_API int dcgmConnect_v2(const char *address, dcgmConnectV2Params_v2 *params,
                                 uintptr_t *ret_handle);
int dcgmConnect_v2(const char *address, dcgmConnectV2Params_v2 *params, uintptr_t *ret_handle)
{
    lock();
    if (fake.init_count == 0)
        return unlock(ST_UNINITIALIZED);
    if (params->version != (sizeof(*params) | 2u << 24) || fake.engine == FAKE_DCGM_OTHER_ENGINE)
        return unlock(ST_VER_MISMATCH);
    if (strcmp(address, "127.0.0.1:5555") != 0 || params->addressIsUnixSocket)
        return unlock(ST_BADPARAM);
    hang_while(FAKE_DCGM_SILENT);
    if (fake.engine == FAKE_DCGM_ABSENT)
        return unlock(ST_CONNECTION_NOT_VALID);
    *ret_handle = ++fake.connection;
    return unlock(ST_OK);
}

static int check_connection(uintptr_t handle)
{
    return handle == fake.connection && handle != 0 ? ST_OK : ST_CONNECTION_NOT_VALID;
}

FAKE_DCGM_API int dcgmDisconnect(uintptr_t handle);
int dcgmDisconnect(uintptr_t handle)
{
    lock();
    if (check_connection(handle) != ST_OK)
        return unlock(ST_BADPARAM);
    drop_connection();
    return unlock(ST_OK);
}

/* Ids are DCGM's own: here they begin at 3, which is nobody's index. */
FAKE_DCGM_API int dcgmGetAllSupportedDevices(uintptr_t handle, unsigned int ids[32],
                                             int *ret_count);
int dcgmGetAllSupportedDevices(uintptr_t handle, unsigned int ids[32], int *ret_count)
{
    lock();
    for (int i = 0; i < fake.gpu_count; i++)
        ids[i] = 3 + (unsigned)i;
    *ret_count = fake.gpu_count;
    return unlock(check_connection(handle));
}

FAKE_DCGM_API int dcgmGroupCreate(uintptr_t handle, int type, const char *name, uintptr_t *ret);
int dcgmGroupCreate(uintptr_t handle, int type, const char *name, uintptr_t *ret)
{
    lock();
    *ret = ++fake.groups;
    return unlock(type == 1 && name ? check_connection(handle) : ST_BADPARAM);
}

FAKE_DCGM_API int dcgmGroupAddDevice(uintptr_t handle, uintptr_t group, unsigned int gpu);
int dcgmGroupAddDevice(uintptr_t handle, uintptr_t group, unsigned int gpu)
{
    lock();
    return unlock(group > 0 && gpu - 3 < (unsigned)fake.gpu_count ? check_connection(handle)
                                                                  : ST_BADPARAM);
}

FAKE_DCGM_API int dcgmGroupDestroy(uintptr_t handle, uintptr_t group);
int dcgmGroupDestroy(uintptr_t handle, uintptr_t group)
{
    lock();
    return unlock(group > 0 ? check_connection(handle) : ST_BADPARAM);
}

FAKE_DCGM_API int dcgmFieldGroupCreate(uintptr_t handle, int count, const unsigned short *fields,
                                       const char *name, uintptr_t *ret);
int dcgmFieldGroupCreate(uintptr_t handle, int count, const unsigned short *fields,
                         const char *name, uintptr_t *ret)
{
    unsigned short last = fake.engine == FAKE_DCGM_FEW_FIELDS ? 1008 : FIELD_FIRST + FIELDS - 1;

    lock();
    if (check_connection(handle) != ST_OK)
        return unlock(ST_CONNECTION_NOT_VALID);
    if (count > FIELDS || !name || fake.field_groups + 1 >= GROUPS)
        return unlock(ST_BADPARAM);
    for (int i = 0; i < count; i++)
        if (fields[i] > last)
            return unlock(ST_UNKNOWN_FIELD);
    *ret = ++fake.field_groups;
    memset(fake.field_sets[*ret], 0, sizeof(fake.field_sets[*ret]));
    memcpy(fake.field_sets[*ret], fields, (size_t)count * sizeof(*fields));
    return unlock(ST_OK);
}

FAKE_DCGM_API int dcgmFieldGroupDestroy(uintptr_t handle, uintptr_t fields);
int dcgmFieldGroupDestroy(uintptr_t handle, uintptr_t fields)
{
    lock();
    return unlock(fields > 0 ? check_connection(handle) : ST_BADPARAM);
}

FAKE_DCGM_API int dcgmWatchFields(uintptr_t handle, uintptr_t group, uintptr_t fields,
                                  long long interval_us, double keep_s, int keep_samples);
int dcgmWatchFields(uintptr_t handle, uintptr_t group, uintptr_t fields, long long interval_us,
                    double keep_s, int keep_samples)
{
    lock();
    if (check_connection(handle) != ST_OK)
        return unlock(ST_CONNECTION_NOT_VALID);
    if (group == 0 || fields == 0 || interval_us < 100000 || keep_s <= 0 || keep_samples < 0)
        return unlock(ST_BADPARAM);
    if (fake.engine == FAKE_DCGM_NO_PROFILING)
        return unlock(ST_PROFILING_NOT_SUPPORTED);
    for (int i = 0; i < FIELDS && fake.field_sets[fields][i]; i++)
        fake.is_watched[fake.field_sets[fields][i] - FIELD_FIRST] = true;
    return unlock(ST_OK);
}

#ifndef FAKE_DCGM_OTHER
static void answer_profiling(unsigned short field, dcgmFieldValue_v2 *value)
{
    int at = field - FIELD_FIRST;
    bool has_value;

    if (!fake.is_set) {
        struct timespec now;

        clock_gettime(CLOCK_REALTIME, &now);
        fake.values[at].value = 0.5;
        fake.values[at].t_us = (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
    }
    has_value = fake.is_watched[at] && fake.values[at].t_us > 0;
    value->fieldType = 'd';
    value->status = fake.is_watched[at] ? ST_OK : ST_NOT_WATCHED;
    value->ts = (int64_t)fake.values[at].t_us;
    value->value.dbl = has_value ? fake.values[at].value : FP64_BLANK;
}

/* Those of DCGM_FV_FLAG_LIVE_DATA come from the driver, others from what is watched. */
FAKE_DCGM_API int dcgmEntitiesGetLatestValues(uintptr_t handle, dcgmGroupEntityPair_t *entities,
                                              unsigned int entity_count, unsigned short *fields,
                                              unsigned int field_count, unsigned int flags,
                                              dcgmFieldValue_v2 *values);
int dcgmEntitiesGetLatestValues(uintptr_t handle, dcgmGroupEntityPair_t *entities,
                                unsigned int entity_count, unsigned short *fields,
                                unsigned int field_count, unsigned int flags,
                                dcgmFieldValue_v2 *values)
{
    lock();
    if (!(flags & 1))
        hang_while(FAKE_DCGM_HANGS);
    if (check_connection(handle) != ST_OK)
        return unlock(ST_CONNECTION_NOT_VALID);
    if (entity_count != 1 || entities->entityGroupId != 1 ||
        entities->entityId - 3 >= (unsigned)fake.gpu_count)
        return unlock(ST_BADPARAM);
    for (unsigned i = 0; i < field_count; i++) {
        values[i] = (dcgmFieldValue_v2){.version = sizeof(*values) | 2u << 24,
                                        .entityGroupId = 1,
                                        .entityId = entities->entityId,
                                        .fieldId = fields[i]};
        if (fields[i] == 54 && flags & 1) {
            values[i].fieldType = 's';
            strcpy(values[i].value.str, fake.uuids[entities->entityId - 3]);
        } else if (fields[i] >= FIELD_FIRST && fields[i] < FIELD_FIRST + FIELDS) {
            answer_profiling(fields[i], &values[i]);
        } else {
            values[i].status = ST_UNKNOWN_FIELD;
        }
    }
    return unlock(ST_OK);
}
#endif
