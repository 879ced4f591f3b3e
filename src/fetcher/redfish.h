/*
 * The node's power from its BMC, by Redfish.
 *
 * A session is one login, a token with each request, and a logout at the end. BMCs have room for
 * few sessions (often 4 to 16), so none is opened per request and none is left behind. Where a BMC
 * has no sessions, user and password go with each request (basic authentication).
 */
#pragma once

#include <stdint.h>

#include "client/http_client.h"
#include "client/http_trust.h"
#include "fetcher/redfish/redfish_parse.h"

struct redfish_session_options {
    struct http_client *client;
    const char *url;     /* "https://HOST:PORT", without a trailing slash */
    const char *resolve; /* as in struct http_request */
    const struct http_trust *trust;
    const char *user, *password;
};

enum { REDFISH_TOKEN_BYTES = 1024 };

struct redfish_session {
    struct redfish_session_options options;
    enum { REDFISH_CLOSED, REDFISH_TOKEN, REDFISH_BASIC } kind;
    struct redfish_path chassis, sessions; /* from the service root */
    char token[REDFISH_TOKEN_BYTES];
    struct redfish_path location; /* of the session itself; "": unknown */
    uint64_t logins;

    /* The last reply */
    struct http_reply reply;
    char reply_token[REDFISH_TOKEN_BYTES];
    char reply_location[512];
    struct json *resource; /* NULL: not JSON */
    int parse_result;
};

/* The options' strings must outlive the session. */
void redfish_session_init(struct redfish_session *session,
                          const struct redfish_session_options *options);

/* Wipes secrets. A session that was not closed stays open at the BMC until it expires there. */
void redfish_session_done(struct redfish_session *session);

/* Reads the service root and logs in, unless the session is open. Errors as below. */
int redfish_session_open(struct redfish_session *session, struct error *err);

/*
 * Reads a resource, after a login if need be; logs in again once if the session has expired. The
 * resource belongs to the session and is valid until the next call.
 *
 * 0 or -errno of http_client_do, or -EACCES (user or password rejected), -EPERM (no permission for
 * this resource), -EBUSY (the BMC is starting or overloaded), -ENODATA (no such resource), -EBADMSG
 * (not JSON), -EREMOTEIO (any other status).
 */
int redfish_session_get(struct redfish_session *session, const char *path,
                        const struct json **ret_resource, struct error *err);

/* Logs out; blocks for two seconds at most. */
void redfish_session_close(struct redfish_session *session);

enum { REDFISH_SUPPLIES_MAX = 16 };

/* Where a BMC reports the power of the whole node. */
struct redfish_place {
    enum redfish_kind { REDFISH_ENVIRONMENT, REDFISH_SUPPLIES, REDFISH_POWER } kind;
    struct redfish_path system;                      /* of REDFISH_POWER */
    struct redfish_path paths[REDFISH_SUPPLIES_MAX]; /* all are read; several only of supplies */
    size_t count;
};

extern const char *const redfish_kind_words[];

/*
 * Finds the place and reads it. In this order, on the chassis that links to a computer system:
 * EnvironmentMetrics, the inputs of all power supplies, the deprecated Power. Chassis without a
 * system (racks, GPUs, drive cages) are not the node. As redfish_session_get; -ENODATA: there is
 * none, -E2BIG: the search takes too many requests.
 */
int redfish_find(struct redfish_session *session, struct redfish_place *ret_place,
                 uint64_t *ret_power_mw, struct error *err);

/* Takes one request, or one per supply. As redfish_session_get; -ENODATA: no power that a node can
 * draw. */
int redfish_read(struct redfish_session *session, const struct redfish_place *place,
                 uint64_t *ret_power_mw, struct error *err);
