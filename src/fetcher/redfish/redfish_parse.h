/*
 * What a BMC says over Redfish (DSP0266, DSP0268), as far as the node's power needs it. Pure: the
 * text of a resource in, a struct out.
 *
 * All return 0, -ENOMEM, -EBADMSG (not JSON) or, where they say so, -ENODATA: what was looked for
 * is not there, or no value that a node can have. What has the wrong type counts as not there.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/span.h"

enum {
    REDFISH_PATH_BYTES = 256,
    REDFISH_MEMBERS_MAX = 128, /* of a collection; the boards of eight GPUs have some ninety */
};

/* Where a resource is, "": nowhere. Only what redfish_is_path() accepts ever gets into one. */
struct redfish_path {
    char text[REDFISH_PATH_BYTES];
};

/* A path below /redfish/v1 of the same server, without query, fragment and dots: links that lead
 * elsewhere are not followed. */
bool redfish_is_path(const char *text);

struct redfish_root {
    struct redfish_path chassis, sessions;
};

struct redfish_members {
    struct redfish_path paths[REDFISH_MEMBERS_MAX];
    size_t count;
};

/* How likely a chassis is the whole node, the likeliest first. */
enum redfish_rank {
    REDFISH_NODE,    /* made to hold one: rack mounted, blade, sled, tower ... */
    REDFISH_UNKNOWN, /* does not say what it is */
    REDFISH_PART,    /* of a node (module, card), or of the room (rack, enclosure) */
    REDFISH_NO_NODE, /* links to no system, or is not in use */
};

struct redfish_chassis {
    enum redfish_rank rank;
    struct redfish_path system; /* the first that it links to */
    struct redfish_path environment, power_subsystem, power;
};

struct redfish_supply {
    bool is_in_use;
    struct redfish_path metrics;
};

int redfish_parse_root(struct span text, struct redfish_root *ret_root);
int redfish_parse_members(struct span text, struct redfish_members *ret_members);
int redfish_parse_chassis(struct span text, struct redfish_chassis *ret_chassis);
int redfish_parse_subsystem(struct span text, struct redfish_path *ret_supplies);
int redfish_parse_supply(struct span text, struct redfish_supply *ret_supply);

/* The "@odata.id" of anything. */
int redfish_parse_id(struct span text, struct redfish_path *ret_path);

/* PowerWatts of EnvironmentMetrics. -ENODATA. */
int redfish_parse_environment(struct span text, uint64_t *ret_power_mw);

/* InputPowerWatts of a power supply's metrics, which may be 0: one of several may carry nothing.
 * -ENODATA. */
int redfish_parse_supply_power(struct span text, uint64_t *ret_power_mw);

/* Of the deprecated Power: the control of the whole system, else what the supplies draw. `system`
 * is the system's path, "": unknown. -ENODATA. */
int redfish_parse_power(struct span text, const char *system, uint64_t *ret_power_mw);

/* What an answer that is an error says for people, cut to the size; "" if nothing. */
void redfish_parse_refusal(struct span text, char *why, size_t size_bytes);
