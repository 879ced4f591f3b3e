#include "server/web.h"

#include <errno.h>
#include <malloc.h>
#include <string.h>

#include "core/log.h"
#include "core/macros.h"
#include "process/sandbox.h"

/* All that the server shows and asks for. It was checked by the collector: what fails here is
 * memory. */
static int apply(struct server_web *web)
{
    const struct web_config *config = &web->config;
    int r = auth_set_users(web->auth, config->users, config->user_count);

    if (r == 0)
        r = http_server_set_headers(web->server, config->headers, config->header_count);
    if (r == 0 && web->tls)
        http_server_set_tls(web->server, web->tls);
    return r;
}

static int take(struct server_web *web, struct span packed, struct error *err)
{
    struct web_config config = {0}, old = web->config;
    struct tls *tls = NULL;
    int r = web_config_unpack(packed, &config);

    if (r < 0) {
        web_config_done(&config);
        return error_set(err, r, "cannot read the web config from the collector: %s", strerror(-r));
    }
    r = config.has_tls ? tls_new(&config.tls, &tls, err) : 0;
    if (r < 0) {
        web_config_done(&config);
        return r;
    }
    tls_unref(web->tls);
    web->tls = tls;
    web->config = config;
    if (web->server)
        r = apply(web);
    web_config_done(&old); /* the server had its headers until now */
    return r < 0 ? error_set(err, r, "cannot use the new web config: %s", strerror(-r)) : 0;
}

int server_web_open(struct server_web *web, struct span packed, struct error *err)
{
    return take(web, packed, err);
}

static int lock_up_worker(void)
{
    struct error err;
    int r = sandbox_filter_calls(SYSCALL_SERVER, &err);

    if (r < 0)
        log_error("passwords cannot be checked, who gives one is turned away", "error", err.text);
    return r;
}

int server_web_start(struct server_web *web, struct http_server *server, struct error *err)
{
    int r;

    /* One heap is enough, and to shrink another, glibc reads a file of /proc. */
    mallopt(M_ARENA_MAX, 1);
    r = auth_new(lock_up_worker, &web->auth);
    if (r == 0)
        r = http_server_set_auth(server, web->auth);
    web->server = server;
    if (r == 0)
        r = apply(web);
    return r < 0 ? error_set(err, r, "cannot set up TLS and users: %s", strerror(-r)) : 0;
}

int server_web_renew(struct server_web *web, struct span packed, struct error *err)
{
    return take(web, packed, err);
}

void server_web_close(struct server_web *web)
{
    auth_free(web->auth);
    tls_unref(web->tls);
    web_config_done(&web->config);
}
