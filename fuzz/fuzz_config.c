/* The config file's parser: any bytes give options or an error, and nothing leaks. So do the
 * addresses to listen on. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "config/options.h"
#include "net/listen.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_addresses(const struct options_list *addresses)
{
    for (size_t i = 0; i < addresses->count; i++) {
        struct listen_address address;
        struct error err = {{0}};

        if (listen_parse(addresses->items[i], &address, &err) < 0 && err.text[0] == '\0')
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct options options;
    struct error err = {{0}};

    if (options_init(&options, &err) < 0)
        abort();
    if (options_parse_file((struct span){(const char *)data, size}, "fuzz.yaml", &options, &err) <
            0 &&
        err.text[0] == '\0')
        abort(); /* an error without a text helps nobody */
    check_addresses(&options.listen_addresses);
    options_done(&options);
    return 0;
}
