#include "server/front_web.h"

#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>

#include "core/log.h"
#include "core/macros.h"
#include "process/channel.h"
#include "process/sandbox.h"

enum { FIRST_CONFIG_MS = 5000 };

static int unpack(int fd, size_t len, struct web_config *ret_config)
{
    void *data = mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0);
    int r;

    if (data == MAP_FAILED)
        return -errno;
    r = web_config_unpack((struct span){data, len}, ret_config);
    munmap(data, len);
    if (r < 0)
        web_config_done(ret_config);
    return r;
}

/* All that the server shows and asks for. It was checked by the collector: what fails here is
 * memory. */
static int apply(struct front_web *web)
{
    const struct web_config *config = &web->config;
    int r = auth_set_users(web->auth, config->users, config->user_count);

    if (r == 0)
        r = http_server_set_headers(web->server, config->headers, config->header_count);
    if (r == 0 && web->tls)
        http_server_set_tls(web->server, web->tls);
    return r;
}

static int take(struct front_web *web, int fd, size_t len, struct error *err)
{
    struct web_config config = {0}, old = web->config;
    struct tls *tls = NULL;
    int r = unpack(fd, len, &config);

    if (r < 0)
        return error_set(err, r, "cannot read the web config from the collector: %s", strerror(-r));
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

static int receive_first(struct front_web *web, int channel_fd, struct error *err)
{
    _cleanup_close_ int fd = -1;
    struct channel_reply reply;
    int r = channel_receive_reply(channel_fd, &reply, &fd);

    if (r == 0 && reply.status != CHANNEL_CONFIG)
        r = -EPROTO;
    return r < 0 ? error_set(err, r, "no web config came from the collector: %s", strerror(-r))
                 : take(web, fd, reply.body_bytes, err);
}

int front_web_open(struct front_web *web, int channel_fd, struct error *err)
{
    struct pollfd channel = {.fd = channel_fd, .events = POLLIN};

    /* If none comes, what follows says so. */
    (void)poll(&channel, 1, FIRST_CONFIG_MS);
    return receive_first(web, channel_fd, err);
}

static int lock_up_worker(void)
{
    struct error err;
    int r = sandbox_filter_calls(SYSCALL_SERVER, &err);

    if (r < 0)
        log_error("passwords cannot be checked, who gives one is turned away", "error", err.text);
    return r;
}

int front_web_start(struct front_web *web, struct http_server *server, struct error *err)
{
    int r;

    /* As with the thread that asks the API: one heap is enough, and shrinking another would read a
     * file of /proc. */
    mallopt(M_ARENA_MAX, 1);
    r = auth_new(lock_up_worker, &web->auth);
    if (r == 0)
        r = http_server_set_auth(server, web->auth);
    web->server = server;
    if (r == 0)
        r = apply(web);
    return r < 0 ? error_set(err, r, "cannot set up TLS and users: %s", strerror(-r)) : 0;
}

int front_web_renew(struct front_web *web, int config_fd, size_t config_bytes, struct error *err)
{
    return take(web, config_fd, config_bytes, err);
}

void front_web_close(struct front_web *web)
{
    auth_free(web->auth);
    tls_unref(web->tls);
    web_config_done(&web->config);
}
