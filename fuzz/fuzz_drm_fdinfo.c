/* What a DRM file says of its client: any bytes give one within its bounds, or none; and a value is
 * there only if its key is. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sources/drm/fdinfo.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_engine(const struct drm_engine *engine)
{
    size_t len = strnlen(engine->name, sizeof(engine->name));

    if (len == 0 || len == sizeof(engine->name) || engine->capacity == 0)
        abort();
    if (!engine->has_time && !engine->has_cycles)
        abort();
    if ((!engine->has_time && engine->busy_ns > 0) ||
        (!engine->has_cycles && (engine->cycles > 0 || engine->total_cycles > 0)))
        abort();
}

static void check_engines(const struct drm_client *client)
{
    if (client->engine_count > DRM_ENGINES_MAX)
        abort();
    for (size_t i = 0; i < client->engine_count; i++) {
        check_engine(&client->engines[i]);
        for (size_t k = 0; k < i; k++)
            if (strcmp(client->engines[i].name, client->engines[k].name) == 0)
                abort();
    }
}

static void check_client(struct span text, const struct drm_client *client)
{
    size_t pdev_len = strnlen(client->pdev, sizeof(client->pdev));

    if (client->driver > DRM_XE || (pdev_len > 0 && (pdev_len < 12 || pdev_len > 16)))
        abort();
    if (pdev_len > 0 && !memmem(text.data, text.len, client->pdev, pdev_len))
        abort();
    if ((!client->has_id && client->id > 0) || (!client->has_memory && client->memory_bytes > 0))
        abort();
    check_engines(client);
}

/* A text is its lines: what follows the last of them changes nothing. */
static void check_cut(struct span text, const struct drm_client *client)
{
    struct drm_client again;

    while (text.data[text.len - 1] != '\n')
        text.len--;
    if (drm_fdinfo_parse(text, &again) < 0 || again.id != client->id ||
        again.memory_bytes != client->memory_bytes || again.engine_count != client->engine_count)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span text = {(const char *)data, size};
    struct drm_client client;

    if (drm_fdinfo_parse(text, &client) < 0)
        return 0;
    check_client(text, &client);
    check_cut(text, &client);
    return 0;
}
