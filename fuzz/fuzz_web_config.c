/* The web config and the Authorization header: any bytes give something or an error, nothing leaks,
 * and what was read survives its way to the server. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "config/web_config.h"
#include "net/auth.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_round_trip(const struct web_config *config)
{
    struct web_config copy;
    char *bytes;
    size_t len;

    if (web_config_pack(config, &bytes, &len) < 0)
        abort();
    if (web_config_unpack((struct span){bytes, len}, &copy) < 0 ||
        copy.user_count != config->user_count || copy.header_count != config->header_count ||
        copy.has_tls != config->has_tls)
        abort();
    web_config_done(&copy);
    free(bytes);
}

static void check_header(struct span text)
{
    char *header = malloc(text.len + 1);
    struct auth_header auth;

    if (!header)
        abort();
    if (text.len > 0)
        memcpy(header, text.data, text.len);
    header[text.len] = '\0';
    if (auth_header_parse(header, &auth) == 0 && memchr(auth.user.data, ':', auth.user.len))
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
    (void)web_config_unpack(text, &config);
    web_config_done(&config);
    check_header(text);
    return 0;
}
