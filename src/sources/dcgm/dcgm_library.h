/*
 * libdcgm, NVIDIA's Data Center GPU Manager, loaded at run time, with our own declarations of the
 * part of its ABI that we use. They follow dcgm_agent.h, dcgm_structs.h and dcgm_fields.h of DCGM
 * 3.3.9 and 4.6.0, which agree on all of them.
 *
 * Only libraries of these two ABIs are loaded, by their soname: dcgmEntitiesGetLatestValues takes
 * no version word, so a later one could write past our array.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "core/error.h"

enum dcgm_return {
    DCGM_OK = 0,
    DCGM_VER_MISMATCH = -12,
    DCGM_CONNECTION_NOT_VALID = -21,
};

enum {
    DCGM_GPUS_MAX = 32,   /* DCGM_MAX_NUM_DEVICES */
    DCGM_GROUP_EMPTY = 1, /* dcgmGroupType_t */
    DCGM_ENTITY_GPU = 1,  /* DCGM_FE_GPU */
    DCGM_LIVE = 1,        /* DCGM_FV_FLAG_LIVE_DATA: ask the driver, whether it is watched or not */
    DCGM_FIELD_UUID = 54, /* DCGM_FI_DEV_UUID */
    DCGM_TYPE_DOUBLE = 'd', /* DCGM_FT_DOUBLE */
    DCGM_TYPE_STRING = 's', /* DCGM_FT_STRING */
    DCGM_STRING_BYTES = 256,
    DCGM_BLOB_BYTES = 4096,
};

/* MAKE_DCGM_VERSION */
#define DCGM_VERSION(type, version) ((uint32_t)sizeof(type) | (uint32_t)(version) << 24)

/* dcgmConnectV2Params_v2 */
struct dcgm_connect_params {
    uint32_t version;
    uint32_t persists; /* what was watched, after the connection; 0: no */
    uint32_t timeout_ms;
    uint32_t is_unix_socket;
};

/* dcgmGroupEntityPair_t */
struct dcgm_entity {
    int group;
    uint32_t id;
};

/* dcgmFieldValue_v2 */
struct dcgm_value {
    uint32_t version;
    struct dcgm_entity entity;
    uint16_t field, type;
    int status;
    uint32_t unused;
    int64_t t_us; /* since 1970 */
    union {
        int64_t number;
        double real; /* from DCGM_FP64_BLANK (140737488355328.0) on: none */
        char text[DCGM_STRING_BYTES];
        char blob[DCGM_BLOB_BYTES];
    };
};

_Static_assert(sizeof(struct dcgm_connect_params) == 16, "dcgmConnectV2Params_v2");
_Static_assert(sizeof(struct dcgm_value) == 4128, "dcgmFieldValue_v2");
_Static_assert(offsetof(struct dcgm_value, t_us) == 24, "dcgmFieldValue_v2");

/* Each function: its member, its parameters, its name. All return a code of enum dcgm_return. */
/* clang-format off */
#define DCGM_FUNCTIONS(FUNCTION)                                                                   \
    FUNCTION(init, (void), "dcgmInit")                                                             \
    FUNCTION(shutdown, (void), "dcgmShutdown")                                                     \
    FUNCTION(connect, (const char *address, struct dcgm_connect_params *, uintptr_t *ret_handle),  \
             "dcgmConnect_v2")                                                                     \
    FUNCTION(disconnect, (uintptr_t handle), "dcgmDisconnect")                                     \
    FUNCTION(devices, (uintptr_t handle, uint32_t ids[DCGM_GPUS_MAX], int *ret_count),             \
             "dcgmGetAllSupportedDevices")                                                         \
    FUNCTION(group_create, (uintptr_t handle, int type, const char *name, uintptr_t *ret_group),   \
             "dcgmGroupCreate")                                                                    \
    FUNCTION(group_add, (uintptr_t handle, uintptr_t group, uint32_t gpu), "dcgmGroupAddDevice")   \
    FUNCTION(group_destroy, (uintptr_t handle, uintptr_t group), "dcgmGroupDestroy")               \
    FUNCTION(fields_create, (uintptr_t handle, int count, const uint16_t *fields,                  \
             const char *name, uintptr_t *ret_fields), "dcgmFieldGroupCreate")                     \
    FUNCTION(fields_destroy, (uintptr_t handle, uintptr_t fields), "dcgmFieldGroupDestroy")        \
    FUNCTION(watch, (uintptr_t handle, uintptr_t group, uintptr_t fields, long long interval_us,   \
             double keep_s, int keep_samples), "dcgmWatchFields")                                  \
    FUNCTION(values, (uintptr_t handle, struct dcgm_entity *, uint32_t entity_count,               \
             uint16_t *fields, uint32_t field_count, uint32_t flags, struct dcgm_value *),         \
             "dcgmEntitiesGetLatestValues")
/* clang-format on */

struct dcgm_library {
    void *handle;
    const char *(*error_string)(int code);
#define DCGM_MEMBER(member, parameters, name)                                                      \
    int(*member) parameters; // NOLINT(bugprone-macro-parentheses)
    DCGM_FUNCTIONS(DCGM_MEMBER)
};

/* `file` NULL: NVIDIA's own, the newest first. -ENODEV: there is none. -ENOTSUP with a text: it is
 * no library of DCGM. Talks to nobody. What was loaded stays in memory: its threads outlive it. */
int dcgm_library_open(const char *file, struct dcgm_library *ret_library, struct error *err);
void dcgm_library_close(struct dcgm_library *library);

/* The library's own words for a code. */
const char *dcgm_library_error(const struct dcgm_library *library, int code);
