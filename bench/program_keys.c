/*
 * The keys by which the exporter recognises a program, of a command line.
 *
 * usage: program_keys EXECUTABLE ARGUMENT... <SECRET
 *
 * SECRET is the content of a --program-key-file: 32 hexadecimal digits. ARGUMENT begins with the
 * zeroth. Prints the fields of a trace's N record, "x=EXACT c=COARSE"; nothing if there are no
 * keys, because the arguments are not those of the executable.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/buffer.h"
#include "core/parse.h"
#include "host/program_key.h"

enum { DIGITS = 2 * sizeof(struct program_secret), ARGUMENTS_BYTES_MAX = 1 << 20 };

static bool parse_secret(struct span text, struct program_secret *ret_secret)
{
    unsigned char *bytes = (unsigned char *)ret_secret->words;

    if (text.len != DIGITS)
        return false;
    for (size_t i = 0; i < DIGITS; i++) {
        char c = text.data[i];

        if (!parse_is_hex(c))
            return false;
        bytes[i / 2] = (unsigned char)(bytes[i / 2] << 4 | (c <= '9' ? c - '0' : c - 'a' + 10));
    }
    return true;
}

int main(int argc, char **argv)
{
    struct program_secret secret = {0};
    struct buffer arguments;
    char text[DIGITS + 2]; /* a newline, and one more than fits */
    struct span digits = {text, fread(text, 1, sizeof(text), stdin)};
    struct program_key key;
    bool is_whole;

    span_strip_suffix(&digits, "\n");
    if (argc < 3 || !parse_secret(digits, &secret)) {
        fprintf(stderr, "usage: %s EXECUTABLE ARGUMENT... <SECRET (32 hexadecimal digits)\n",
                argv[0]);
        return EXIT_FAILURE;
    }
    buffer_init(&arguments, ARGUMENTS_BYTES_MAX);
    for (int i = 2; i < argc; i++)
        buffer_bytes(&arguments, argv[i], strlen(argv[i]) + 1);
    is_whole = !buffer_failed(&arguments);
    key = program_key_of(&secret, span_of(argv[1]), (struct span){arguments.data, arguments.len});
    buffer_done(&arguments);
    if (!is_whole) {
        fprintf(stderr, "%s: the arguments are too long\n", argv[0]);
        return EXIT_FAILURE;
    }
    if (key.exact)
        printf("x=%" PRIu64 " c=%" PRIu64 "\n", key.exact, key.coarse);
    return EXIT_SUCCESS;
}
