#include "cli/daemon_client.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/http_client.h"
#include "client/http_loopback.h"
#include "config/options.h"
#include "config/secret_file.h"
#include "core/fs.h"
#include "core/macros.h"

enum {
    URL_BYTES = 512,
    PATH_BYTES = 128, /* of documents */
    /* A node with 16,384 workloads has about 20 MB. */
    REPLY_MAX_BYTES = 64 << 20,
    HEADER_BYTES = 1024,
    SECRET_BYTES = 256,
};

struct daemon_client {
    struct http_client *http;
    struct http_reply reply;
    char address[URL_BYTES];
    char base[URL_BYTES];    /* of every request's URL */
    const char *socket_path; /* in `address`; NULL: TCP */
    char *ca_path;           /* NULL: the system's CAs */
    struct buffer login;     /* the header; empty: none */
};

static int bad_address(const char *why, struct error *err)
{
    return error_set(err, -EINVAL,
                     "--daemon: %s; write http://HOST:PORT, https://HOST:PORT or unix:PATH", why);
}

static int set_address(struct daemon_client *client, const struct options *options,
                       struct error *err)
{
    struct span text = span_of(options->daemon_url), rest = text, authority;
    bool is_plain;

    snprintf(client->address, sizeof(client->address), "%s", options->daemon_url);
    if (span_strip_prefix(&rest, "unix:")) {
        if (rest.len == 0 || rest.data[0] != '/')
            return bad_address("the path of a socket begins with '/'", err);
        client->socket_path = client->address + strlen("unix:");
        /* Whoever names a CA expects TLS, which is on for all sockets of a daemon or for none. */
        snprintf(client->base, sizeof(client->base), "%s://localhost",
                 options->daemon_ca_path ? "https" : "http");
        return 0;
    }
    is_plain = span_strip_prefix(&rest, "http://");
    if (!is_plain && !span_strip_prefix(&rest, "https://"))
        return bad_address("not the address of a daemon", err);
    for (size_t i = 0; i < rest.len; i++)
        if (rest.data[i] <= ' ' || rest.data[i] > '~' || strchr("?#@", rest.data[i]))
            return bad_address("it has characters that no address has (a password belongs into the "
                               "file of --daemon.credentials-file)",
                               err);
    while (span_strip_suffix(&text, "/"))
        ;
    authority = span_cut(&rest, '/');
    if (authority.len == 0)
        return bad_address("the host is missing", err);
    if (is_plain && options->daemon_credentials_path && !http_is_loopback(authority))
        return error_set(err, -EINVAL,
                         "--daemon: plain http exposes the password of --daemon.credentials-file "
                         "to the network; use https");
    snprintf(client->base, sizeof(client->base), "%.*s", (int)text.len, text.data);
    return 0;
}

static int set_login(struct daemon_client *client, const char *path, struct error *err)
{
    static const struct secret_file_form form = {
        .flag = "--daemon.credentials-file",
        .contents = "a password",
        .keys = "username and password",
        .example = "two lines, username: '...' and password: '...'",
    };
    char user[SECRET_BYTES], password[SECRET_BYTES];
    const struct secret_file_entry entries[] = {{"username", user, sizeof(user)},
                                                {"password", password, sizeof(password)}};
    int r;

    if (!path)
        return 0;
    r = secret_file_read(&form, path, entries, ARRAY_SIZE(entries), err);
    if (r == 0 && (user[0] == '\0' || password[0] == '\0'))
        r = error_set(err, -EINVAL, "%.300s: must have both username and password", path);
    if (r == 0)
        http_put_basic(&client->login, user, password);
    if (r == 0 && buffer_failed(&client->login))
        r = error_set(err, -ENOMEM, "out of memory");
    explicit_bzero(user, sizeof(user));
    explicit_bzero(password, sizeof(password));
    return r;
}

/* curl reads the file anew for each connection, and says less of what is wrong with it. */
static int set_ca(struct daemon_client *client, const char *path, struct error *err)
{
    int fd;

    if (!path)
        return 0;
    fd = fs_open_regular(path);
    if (fd < 0)
        return error_set(err, fd, "--daemon.ca-file: cannot open %.300s: %s", path,
                         fs_strerror(fd));
    close(fd);
    client->ca_path = strdup(path);
    return client->ca_path ? 0 : error_set(err, -ENOMEM, "out of memory");
}

int daemon_client_open(const struct options *options, struct daemon_client **ret_client,
                       struct error *err)
{
    struct daemon_client *client = calloc(1, sizeof(*client));
    int r = client ? http_client_new(&client->http) : -ENOMEM;

    if (r < 0) {
        free(client);
        return error_set(err, r, "out of memory");
    }
    http_reply_init(&client->reply);
    buffer_init(&client->login, HEADER_BYTES);
    r = set_address(client, options, err);
    if (r == 0)
        r = set_ca(client, options->daemon_ca_path, err);
    if (r == 0)
        r = set_login(client, options->daemon_credentials_path, err);
    if (r < 0)
        daemon_client_close(client);
    else
        *ret_client = client;
    return r;
}

void daemon_client_close(struct daemon_client *client)
{
    if (!client)
        return;
    http_client_free(client->http);
    http_reply_done(&client->reply);
    buffer_wipe(&client->login);
    free(client->ca_path);
    free(client);
}

const char *daemon_client_address(const struct daemon_client *client)
{
    return client->address;
}

/* What a user can do about a request that failed. */
static int explain_failure(int r, const struct error *why, struct error *err)
{
    switch (-r) {
    case ENOENT:
    case ENOTDIR:
    case ECONNREFUSED:
        return error_set(err, -ECONNREFUSED,
                         "%.700s; does wattribute run there? Start it, or name another with "
                         "--daemon",
                         why->text);
    case EKEYREJECTED:
        return error_set(err, r, "%.700s; name the CA of its certificate with --daemon.ca-file",
                         why->text);
    default:
        return error_set(err, r, "%.900s", why->text);
    }
}

static int explain_status(const struct daemon_client *client, const char *path, int status,
                          struct error *err)
{
    switch (status) {
    case 200:
        return 0;
    case 401:
    case 403:
        return error_set(err, -EACCES, "%s%s: status %d; %s", client->address, path, status,
                         client->login.len > 0
                             ? "the user or the password of --daemon.credentials-file is wrong"
                             : "it wants a password: name a file with it by "
                               "--daemon.credentials-file");
    case 404:
        return error_set(err, -ENOENT,
                         "%s%s: no such document; is it a wattribute of this version?",
                         client->address, path);
    case 503:
        return error_set(err, -EAGAIN, "%s%s: it has nothing to show yet, or too many clients",
                         client->address, path);
    default:
        return error_set(err, -EPROTO, "%s%s: status %d; is it wattribute?", client->address, path,
                         status);
    }
}

int daemon_client_get(struct daemon_client *client, const char *path, uint64_t timeout_us,
                      struct span *ret_body, struct error *err)
{
    const char *headers[] = {client->login.len > 0 ? client->login.data : NULL, NULL};
    char url[URL_BYTES + PATH_BYTES];
    struct http_request request = {
        .url = url,
        .socket_path = client->socket_path,
        .headers = headers,
        .ca_path = client->ca_path,
        .timeout_us = timeout_us,
        .max_bytes = REPLY_MAX_BYTES,
    };
    struct error why = {""};
    int r;

    snprintf(url, sizeof(url), "%s%s", client->base, path);
    r = http_client_do(client->http, &request, &client->reply, &why);
    if (r < 0)
        return explain_failure(r, &why, err);
    r = explain_status(client, path, client->reply.status, err);
    if (r == 0)
        *ret_body = (struct span){client->reply.body.data, client->reply.body.len};
    return r;
}

void daemon_client_watch(struct daemon_client *client, int fd, bool (*attend)(int fd))
{
    http_client_watch(client->http, fd, attend);
}

void daemon_client_cancel(struct daemon_client *client)
{
    http_client_cancel(client->http);
}
