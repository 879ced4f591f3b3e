/*
 * A session with a BMC: logged in once, a token with each question, logged out at the end. BMCs
 * have room for few sessions (often 4 to 16), so none is opened per question and none left behind.
 *
 * Where a BMC has no sessions, user and password go with each question (basic authentication).
 */
#pragma once

#include <stdint.h>

#include "client/http_client.h"
#include "client/http_trust.h"
#include "fetcher/redfish/redfish_parse.h"

/* As http_client_do, or what a test has in its place. */
typedef int redfish_send(void *context, const struct http_request *request,
                         struct http_reply *ret_reply, struct error *err);

struct redfish_session_options {
    const char *url;     /* "https://HOST:PORT", without a slash at the end */
    const char *resolve; /* as in struct http_request */
    const struct http_trust *trust;
    const char *user, *password;
    redfish_send *send;
    void *context;
};

enum { REDFISH_TOKEN_BYTES = 1024 };

struct redfish_session {
    struct redfish_session_options options;
    enum { REDFISH_CLOSED, REDFISH_TOKEN, REDFISH_BASIC } kind;
    struct redfish_root root;
    char token[REDFISH_TOKEN_BYTES];
    struct redfish_path location; /* of the session itself; "": unknown */
    uint64_t logins;

    struct http_reply reply; /* the last one, and its headers */
    char seen_token[REDFISH_TOKEN_BYTES];
    char seen_location[512];
};

/* The options' strings must outlive it. */
void redfish_session_init(struct redfish_session *session,
                          const struct redfish_session_options *options);

/* Forgets what it knows; a session that was not closed stays open at the BMC until that ends it. */
void redfish_session_done(struct redfish_session *session);

/* Where everything begins: asks for the root and logs in, if that is still to be done. */
int redfish_session_open(struct redfish_session *session, struct error *err);

/*
 * Asks for a resource, after logging in if need be: also once more where the session is not known
 * any longer. The text is the session's and valid until the next call.
 *
 * 0 or -errno of http_client_do, or -EACCES (it refuses the user or the password), -EPERM (it
 * refuses this resource), -EBUSY (it starts, or has too much to do), -ENODATA (there is no such
 * resource), -EREMOTEIO (another answer than was asked for).
 */
int redfish_session_get(struct redfish_session *session, const char *path, struct span *ret_text,
                        struct error *err);

/* Logs out, within `timeout_us`. */
void redfish_session_close(struct redfish_session *session, uint64_t timeout_us);
