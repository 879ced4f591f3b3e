/*
 * An executable, a NUL and its arguments: any bytes give both keys of a program or none. The exact
 * key tells all arguments apart, the coarse one not those that differ in numbers. Another secret
 * gives other keys.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"
#include "core/parse.h"
#include "host/program_key.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct program_secret secret = {{1, 2}}, other_secret = {{1, 3}};

static void check(bool holds)
{
    if (!holds)
        abort();
}

static size_t count_digits(struct span word)
{
    size_t count = 0;

    while (count < word.len && parse_is_digit(word.data[count]))
        count++;
    return count;
}

/* 12, 3e-4 */
static bool is_number(struct span word)
{
    size_t digits = count_digits(word);
    struct span exponent = {word.data + digits, word.len - digits};

    if (digits == 0 || exponent.len == 0)
        return digits > 0;
    return span_strip_prefix(&exponent, "e-") && exponent.len > 0 &&
           count_digits(exponent) == exponent.len;
}

/* Changes each argument but the first that is a number into another. False: there is none. */
static bool change_numbers(char *arguments, size_t len)
{
    struct span rest = {arguments, len};
    bool any = false;

    (void)span_cut(&rest, '\0');
    while (rest.len > 0) {
        struct span word = span_cut(&rest, '\0');
        char *digits = arguments + (word.data - arguments);

        if (!is_number(word))
            continue;
        any = true;
        for (size_t i = 0; i < word.len; i++)
            if (parse_is_digit(digits[i]))
                digits[i] = (char)('0' + (digits[i] - '0' + 1) % 10);
    }
    return any;
}

static void check_numbers(struct span executable, struct span arguments, struct program_key key)
{
    _cleanup_free_ char *changed = malloc(arguments.len + 1);
    struct program_key other;

    if (!changed)
        abort();
    memcpy(changed, arguments.data, arguments.len);
    if (!change_numbers(changed, arguments.len))
        return;
    other = program_key_of(&secret, executable, (struct span){changed, arguments.len});
    check(other.coarse == key.coarse && other.exact != key.exact);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span arguments = {(const char *)data, size};
    struct span executable = span_cut(&arguments, '\0');
    struct program_key key = program_key_of(&secret, executable, arguments), again, other;

    if (size == 0)
        return 0;
    again = program_key_of(&secret, executable, arguments);
    other = program_key_of(&other_secret, executable, arguments);
    check((key.exact == 0) == (key.coarse == 0));
    check(again.exact == key.exact && again.coarse == key.coarse);
    check((other.exact == 0) == (key.exact == 0));
    if (key.exact == 0)
        return 0;
    check(other.exact != key.exact && other.coarse != key.coarse);
    check_numbers(executable, arguments, key);
    return 0;
}
