/*
 * The keys by which the exporter recognises a program, of a command line.
 *
 * usage: program_keys KEY-FILE EXECUTABLE ARGUMENT...
 *
 * KEY-FILE is that of --program-key-file, or - for a secret that everybody knows: 00010203...0f.
 * ARGUMENT begins with the zeroth. Prints the fields of a trace's N record, "x=EXACT c=COARSE";
 * nothing if there are no keys, because the arguments are not those of the executable.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "config/program_key_file.h"
#include "core/buffer.h"

enum { ARGUMENTS_BYTES_MAX = 1 << 20 };

static const struct program_secret known_to_all = {{0x0706050403020100, 0x0f0e0d0c0b0a0908}};

/* As /proc/PID/cmdline has them. */
static void join_arguments(struct buffer *out, char **arguments)
{
    buffer_init(out, ARGUMENTS_BYTES_MAX);
    for (; *arguments; arguments++)
        buffer_bytes(out, *arguments, strlen(*arguments) + 1);
}

int main(int argc, char **argv)
{
    struct program_secret secret = known_to_all;
    struct program_key key = {0};
    struct buffer arguments;
    struct error err = {0};
    int r = 0;

    if (argc < 4) {
        fprintf(stderr, "usage: %s KEY-FILE EXECUTABLE ARGUMENT...\n", argv[0]);
        return EXIT_FAILURE;
    }
    if (strcmp(argv[1], "-") != 0)
        r = program_key_file_load(argv[1], &secret, &err);
    join_arguments(&arguments, argv + 3);
    if (r == 0 && buffer_failed(&arguments))
        r = error_set(&err, -EFBIG, "the arguments are too long");
    if (r == 0)
        key =
            program_key_of(&secret, span_of(argv[2]), (struct span){arguments.data, arguments.len});
    buffer_done(&arguments);
    if (r < 0)
        fprintf(stderr, "%s: %s\n", argv[0], err.text);
    else if (key.exact)
        printf("x=%" PRIu64 " c=%" PRIu64 "\n", key.exact, key.coarse);
    return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
