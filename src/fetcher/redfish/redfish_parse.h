/*
 * Redfish resources (DSP0266, DSP0268), as far as the node's power needs them. Pure: parsed JSON
 * in, a struct out. A property of the wrong type counts as absent.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/json_reader.h"

enum {
    REDFISH_PATH_BYTES = 256,
    REDFISH_MEMBERS_MAX = 128, /* of a collection; boards with eight GPUs have about ninety */
};

/* Path of a resource; "" if there is none. Holds nothing that redfish_is_path() rejects. */
struct redfish_path {
    char text[REDFISH_PATH_BYTES];
};

/* Accepts paths below /redfish/v1 of the same server, without query, fragment or dot segments:
 * links to other places are not followed. */
bool redfish_is_path(const char *text);

struct redfish_members {
    struct redfish_path paths[REDFISH_MEMBERS_MAX];
    size_t count;
};

/* How likely a chassis is the whole node, most likely first. */
enum redfish_rank {
    REDFISH_NODE,    /* built to hold one: rack mount, blade, sled, tower ... */
    REDFISH_UNKNOWN, /* no type given */
    REDFISH_PART,    /* of a node (module, card), or of the room (rack, enclosure) */
    REDFISH_NO_NODE, /* links to no system, or is not in use */
};

struct redfish_chassis {
    enum redfish_rank rank;
    struct redfish_path system; /* the first that it links to */
    struct redfish_path environment, power_subsystem, power;
};

/* The "@odata.id" of a resource, or of the one that `key` links to. */
struct redfish_path redfish_id(const struct json *resource);
struct redfish_path redfish_link(const struct json *resource, const char *key);

/* False where the state is Absent, UnavailableOffline, ...; many BMCs do not report a state. */
bool redfish_is_in_use(const struct json *resource);

void redfish_parse_members(const struct json *collection, struct redfish_members *ret_members);
struct redfish_chassis redfish_parse_chassis(const struct json *resource);

/* The sensor `key`: PowerWatts of EnvironmentMetrics, InputPowerWatts of a power supply, which may
 * be 0. 0, or -ENODATA: none that a node can draw. */
int redfish_parse_sensor(const struct json *resource, const char *key, uint64_t *ret_power_mw);

/* The deprecated Power resource: the power control of the whole system, else the sum over the
 * power supplies. `system` is the system's path, "" if unknown. 0 or -ENODATA. */
int redfish_parse_power(const struct json *resource, const char *system, uint64_t *ret_power_mw);

/* The message of an error reply; "" if it has none. */
const char *redfish_error_message(const struct json *reply);
