#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "config/web_config.h"
#include "core/buffer.h"
#include "core/macros.h"

/* Both ends are the same program: numbers travel as they are in memory, texts after their length.
 * What can be wrong with them is checked all the same. */
enum { PACK_CAP_BYTES = 8 << 20, MAGIC = 0x31627757 };

static void put_number(struct buffer *buffer, size_t number)
{
    uint32_t value = (uint32_t)number;

    buffer_bytes(buffer, (const char *)&value, sizeof(value));
}

static void put_bytes(struct buffer *buffer, struct span bytes)
{
    put_number(buffer, bytes.len);
    buffer_bytes(buffer, bytes.data, bytes.len);
}

static void put_tls(struct buffer *buffer, const struct tls_settings *tls)
{
    put_bytes(buffer, tls->cert.text);
    put_bytes(buffer, tls->key.text);
    put_bytes(buffer, tls->client_ca.text);
    put_number(buffer, tls->client_auth);
    put_number(buffer, tls->min_version);
    put_number(buffer, tls->max_version);
    put_number(buffer, tls->prefer_server_ciphers);
    put_number(buffer, tls->client_san_count);
    for (size_t i = 0; i < tls->client_san_count; i++)
        put_bytes(buffer, span_of(tls->client_sans[i]));
    put_number(buffer, tls->curve_count);
    for (size_t i = 0; i < tls->curve_count; i++)
        put_number(buffer, tls->curves[i]);
}

int web_config_pack(const struct web_config *config, char **ret_bytes, size_t *ret_len)
{
    struct buffer buffer;

    buffer_init(&buffer, PACK_CAP_BYTES);
    put_number(&buffer, MAGIC);
    put_number(&buffer, config->has_tls);
    if (config->has_tls)
        put_tls(&buffer, &config->tls);
    put_number(&buffer, config->user_count);
    for (size_t i = 0; i < config->user_count; i++) {
        put_bytes(&buffer, span_of(config->users[i].name));
        put_bytes(&buffer, span_of(config->users[i].hash));
    }
    put_number(&buffer, config->header_count);
    for (size_t i = 0; i < config->header_count; i++) {
        put_bytes(&buffer, span_of(config->headers[i].name));
        put_bytes(&buffer, span_of(config->headers[i].value));
    }
    if (buffer_failed(&buffer)) {
        buffer_done(&buffer);
        return -ENOMEM;
    }
    *ret_bytes = buffer.data;
    *ret_len = buffer.len;
    return 0;
}

/* What is left of the bytes; after the first fault, `fault` and zeros. */
struct unpacker {
    struct span rest;
    struct arena *strings;
    int fault;
};

static size_t take_number(struct unpacker *unpacker, size_t max)
{
    uint32_t value;

    if (unpacker->fault == 0 && unpacker->rest.len >= sizeof(value)) {
        memcpy(&value, unpacker->rest.data, sizeof(value));
        unpacker->rest.data += sizeof(value);
        unpacker->rest.len -= sizeof(value);
        if (value <= max)
            return value;
    }
    unpacker->fault = unpacker->fault ? unpacker->fault : -EPROTO;
    return 0;
}

static struct span take_bytes(struct unpacker *unpacker)
{
    size_t len = take_number(unpacker, unpacker->rest.len);
    struct span bytes = {"", 0};

    if (unpacker->fault == 0 && len > unpacker->rest.len)
        unpacker->fault = -EPROTO;
    if (unpacker->fault == 0) {
        bytes = (struct span){arena_copy(unpacker->strings, unpacker->rest.data, len), len};
        unpacker->rest.data += len;
        unpacker->rest.len -= len;
    }
    if (bytes.data)
        return bytes;
    unpacker->fault = -ENOMEM;
    return (struct span){"", 0};
}

static const char *take_text(struct unpacker *unpacker)
{
    struct span bytes = take_bytes(unpacker);

    if (bytes.len > 0 && memchr(bytes.data, '\0', bytes.len))
        unpacker->fault = -EPROTO;
    return bytes.data;
}

static void take_tls(struct unpacker *unpacker, struct tls_settings *tls)
{
    tls->cert = (struct tls_pem){"the certificate", take_bytes(unpacker)};
    tls->key = (struct tls_pem){"the key", take_bytes(unpacker)};
    tls->client_ca = (struct tls_pem){"the clients' authority", take_bytes(unpacker)};
    tls->client_auth = take_number(unpacker, TLS_CLIENT_AUTH_COUNT - 1);
    tls->min_version = take_number(unpacker, TLS_VERSION_COUNT - 1);
    tls->max_version = take_number(unpacker, TLS_VERSION_COUNT - 1);
    tls->prefer_server_ciphers = take_number(unpacker, 1) > 0;
    tls->client_san_count = take_number(unpacker, TLS_SANS_MAX);
    for (size_t i = 0; i < tls->client_san_count; i++)
        tls->client_sans[i] = take_text(unpacker);
    tls->curve_count = take_number(unpacker, TLS_CURVE_COUNT);
    for (size_t i = 0; i < tls->curve_count; i++)
        tls->curves[i] = take_number(unpacker, TLS_CURVE_COUNT - 1);
}

int web_config_unpack(struct span bytes, struct web_config *ret_config)
{
    struct web_config *config = ret_config;
    struct unpacker unpacker = {.rest = bytes, .strings = &config->strings};

    *config = (struct web_config){0};
    arena_init(&config->strings, (size_t)2 * PACK_CAP_BYTES);
    if (take_number(&unpacker, UINT32_MAX) != MAGIC)
        return -EPROTO;
    config->has_tls = take_number(&unpacker, 1) > 0;
    if (config->has_tls)
        take_tls(&unpacker, &config->tls);
    config->user_count = take_number(&unpacker, WEB_CONFIG_USERS_MAX);
    for (size_t i = 0; i < config->user_count; i++) {
        config->users[i].name = take_text(&unpacker);
        config->users[i].hash = take_text(&unpacker);
    }
    config->header_count = take_number(&unpacker, WEB_CONFIG_HEADERS_MAX);
    for (size_t i = 0; i < config->header_count; i++) {
        config->headers[i].name = take_text(&unpacker);
        config->headers[i].value = take_text(&unpacker);
    }
    if (unpacker.fault == 0 && unpacker.rest.len > 0)
        unpacker.fault = -EPROTO;
    return unpacker.fault;
}
