/*
 * Where a BMC tells the power of the whole node: looked for once, then asked again and again.
 *
 * In this order, of the chassis that links to a computer system: EnvironmentMetrics, the inputs of
 * all power supplies, the deprecated Power. Chassis without a system (racks, GPUs, drive cages)
 * are not the node.
 */
#pragma once

#include "fetcher/redfish/redfish_session.h"

enum { REDFISH_SUPPLIES_MAX = 16 };

struct redfish_place {
    enum redfish_kind { REDFISH_ENVIRONMENT, REDFISH_SUPPLIES, REDFISH_POWER } kind;
    struct redfish_path system;                      /* of REDFISH_POWER */
    struct redfish_path paths[REDFISH_SUPPLIES_MAX]; /* each is asked; more than one of supplies */
    size_t count;
};

/* For people: what stands there. */
extern const char *const redfish_kind_words[];

/* Looks for it, and reads it. 0 or -errno of redfish_session_get; -ENODATA: there is none, -E2BIG:
 * it would take too many questions to know. */
int redfish_find(struct redfish_session *session, struct redfish_place *ret_place,
                 uint64_t *ret_power_mw, struct error *err);

/* Reads it, with one question, or one for each supply. Likewise. */
int redfish_read(struct redfish_session *session, const struct redfish_place *place,
                 uint64_t *ret_power_mw, struct error *err);
