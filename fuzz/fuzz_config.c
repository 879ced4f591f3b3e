/* The config file's parser: any bytes give options or an error, and nothing leaks. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "config/options.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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
    options_done(&options);
    return 0;
}
