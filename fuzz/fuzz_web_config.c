/* The web config and the Authorization header: any bytes give something or an error, nothing leaks,
 * and what was read survives its way to the server. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/web_config.h"
#include "core/sealed.h"
#include "net/credentials.h"
#include "process/server_job.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_round_trip(const struct web_config *config)
{
    struct server_job job = {.metrics_path = "/", .web_config = *config}, copy;
    struct job block;
    int fd = -1;

    if (server_job_seal(&job, &fd) < 0 || server_job_read(fd, &block, &copy) < 0 ||
        copy.web_config.user_count != config->user_count ||
        copy.web_config.header_count != config->header_count ||
        copy.web_config.has_tls != config->has_tls)
        abort();
    job_done(&block);
    close(fd);
}

/* Any bytes as a job. */
static void check_job(struct span text)
{
    struct server_job job;
    struct job block;
    int fd = -1;

    if (text.len == 0 || sealed_create(text.data, text.len, &fd) < 0)
        return;
    if (server_job_read(fd, &block, &job) == 0)
        job_done(&block);
    close(fd);
}

static void check_header(struct span text)
{
    char *header = malloc(text.len + 1);
    struct basic_auth auth;

    if (!header)
        abort();
    if (text.len > 0)
        memcpy(header, text.data, text.len);
    header[text.len] = '\0';
    if (basic_auth_parse(header, &auth) == 0 && memchr(auth.user.data, ':', auth.user.len))
        abort();
    free(header);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span text = {(const char *)data, size};
    struct web_config config;
    struct error err = {{0}};
    int r = web_config_parse(text, "dir/fuzz.yml", &config, &err);

    if (r < 0 && err.text[0] == '\0')
        abort(); /* an error without a text helps nobody */
    if (r == 0)
        check_round_trip(&config);
    web_config_done(&config);
    check_job(text);
    check_header(text);
    return 0;
}
