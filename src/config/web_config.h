/*
 * The file of --web.config.file: TLS, users and headers, in the format of Prometheus's
 * exporter-toolkit. Its settings that are not supported are rejected, never ignored.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "core/arena.h"
#include "core/error.h"
#include "core/span.h"
#include "net/auth.h"
#include "net/http_server.h"
#include "net/tls.h"

enum { WEB_CONFIG_USERS_MAX = 256, WEB_CONFIG_HEADERS_MAX = 5 };

struct web_config {
    bool has_tls;
    struct tls_settings tls; /* texts of files are empty until web_config_load has read them */
    const char *cert_path, *key_path, *client_ca_path; /* NULL: none, or inline */
    struct auth_user users[WEB_CONFIG_USERS_MAX];
    size_t user_count;
    bool has_no_users;       /* and says so: basic_auth_users: {} */
    bool names_client_auth;  /* has a client_auth_type */
    bool has_no_client_sans; /* and says so: client_allowed_sans: [] */
    struct http_server_header headers[WEB_CONFIG_HEADERS_MAX];
    size_t header_count;
    struct arena strings; /* owns every text above */
};

/* Wipes the key. Accepts a zeroed struct. */
void web_config_done(struct web_config *config);

/*
 * Pure: reads no file. Relative paths are relative to the directory of `file_name`. Messages begin
 * with FILE:LINE:COLUMN. Release the config after failures, too.
 */
int web_config_parse(struct span text, const char *file_name, struct web_config *ret_config,
                     struct error *err);

/* Reads the file and those that it names (at most 1 MiB each; may block as long as they do), and
 * checks that they can be used. */
int web_config_load(const char *path, struct web_config *ret_config, struct error *err);

/* To and from the fields of the server's job, keys and all. unpack returns -EPROTO for anything
 * that pack did not write; release the config after failures, too. */
int web_config_pack(const struct web_config *config, char **ret_bytes, size_t *ret_len);
int web_config_unpack(struct span bytes, struct web_config *ret_config);
