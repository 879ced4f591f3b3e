/*
 * Finds where a BMC reports the power of the whole node, once, and reads it from then on.
 *
 * In this order, on the chassis that links to a computer system: EnvironmentMetrics, the inputs of
 * all power supplies, the deprecated Power. Chassis without a system (racks, GPUs, drive cages)
 * are not the node.
 */
#pragma once

#include "fetcher/redfish/redfish_session.h"

enum { REDFISH_SUPPLIES_MAX = 16 };

struct redfish_place {
    enum redfish_kind { REDFISH_ENVIRONMENT, REDFISH_SUPPLIES, REDFISH_POWER } kind;
    struct redfish_path system;                      /* of REDFISH_POWER */
    struct redfish_path paths[REDFISH_SUPPLIES_MAX]; /* all are read; several only of supplies */
    size_t count;
};

extern const char *const redfish_kind_words[];

/* Both block, and return 0 or -errno of redfish_session_get, with a text. */

/* -ENODATA: there is none; -E2BIG: the search takes too many requests. */
int redfish_find(struct redfish_session *session, struct redfish_place *ret_place,
                 uint64_t *ret_power_mw, struct error *err);

/* Takes one request, or one per supply. -ENODATA: no power that a node can draw. */
int redfish_read(struct redfish_session *session, const struct redfish_place *place,
                 uint64_t *ret_power_mw, struct error *err);
