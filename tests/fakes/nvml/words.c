/* Words of a line, separated by one blank, and the numbers in them. */
#include "words.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

char *words_next(char **rest)
{
    return *rest ? strsep(rest, " ") : NULL;
}

bool words_u64(const char *word, uint64_t *ret_value)
{
    int base = word && word[0] == '0' && word[1] == 'x' ? 16 : 10;
    char *end;
    uint64_t value;

    if (!word || !isdigit((unsigned char)*word))
        return false;
    errno = 0;
    value = strtoull(word, &end, base);
    if (errno || *end)
        return false;
    *ret_value = value;
    return true;
}
