/* The directives of a scenario: one table of their words, and the search for what is valid now. */
#include "directive.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "symbols.h"
#include "words.h"

enum { DIRECTIVES_MAX = 1 << 20 };

/* One letter of `arguments` for each word: n number, s symbol, o on or off, m mean or each, f file.
 * Without words the value is `value`. */
static const struct directive_word {
    const char *word;
    enum directive_sort sort;
    const char *arguments;
    uint64_t value;
} directive_words[] = {
    {"error", DIRECTIVE_ERROR, "sn", 0},
    {"hang", DIRECTIVE_HANG, "sn", 0},
    {"lost", DIRECTIVE_LOST, "", 1},
    {"back", DIRECTIVE_LOST, "", 0},
    {"driver-unload", DIRECTIVE_DRIVER, "", 0},
    {"driver-load", DIRECTIVE_DRIVER, "", 1},
    {"mig", DIRECTIVE_MIG, "o", 0},
    {"monitor", DIRECTIVE_MONITOR, "o", 0},
    {"destroyed", DIRECTIVE_DESTROYED, "n", 0},
    {"no-energy", DIRECTIVE_NO_ENERGY, "", 1},
    {"accounting", DIRECTIVE_ACCOUNTING, "o", 0},
    {"account", DIRECTIVE_ACCOUNT, "nnnn", 0},
    {"xid", DIRECTIVE_XID, "n", 0},
    {"limit", DIRECTIVE_LIMIT, "n", 0},
    {"throttle", DIRECTIVE_THROTTLE, "n", 0},
    {"ecc", DIRECTIVE_ECC, "nn", 0},
    {"field", DIRECTIVE_FIELD, "nn", 0},
    {"pids-from", DIRECTIVE_PIDS, "f", 0},
    {"reserved", DIRECTIVE_RESERVED, "n", 0},
    {"samples", DIRECTIVE_SAMPLES, "m", 0},
    {"loop", DIRECTIVE_LOOP, "", 1},
};

static bool parse_choice(const char *word, const char *yes, const char *no, uint64_t *ret_value)
{
    if (strcmp(word, yes) != 0 && strcmp(word, no) != 0)
        return false;
    *ret_value = strcmp(word, yes) == 0;
    return true;
}

static const char *parse_argument(char letter, const char *word, struct directive *directive,
                                  uint64_t *ret_value)
{
    int symbol;

    if (!word)
        return "a directive with too few words";
    switch (letter) {
    case 'n':
        return words_u64(word, ret_value) ? NULL : "a directive with a bad number";
    case 'o':
        return parse_choice(word, "on", "off", ret_value) ? NULL : "neither on nor off";
    case 'm':
        return parse_choice(word, "mean", "each", ret_value) ? NULL : "neither mean nor each";
    case 's':
        symbol = symbol_find(word);
        if (symbol < 0)
            return "a directive with an unknown symbol";
        *ret_value = (uint64_t)symbol;
        return NULL;
    default:
        directive->text = strdup(word);
        return directive->text ? NULL : "out of memory";
    }
}

static const char *parse(struct directive *directive, char *words)
{
    const char *word = words_next(&words);
    const struct directive_word *found = NULL;

    for (size_t i = 0; i < sizeof(directive_words) / sizeof(*directive_words); i++)
        if (word && strcmp(directive_words[i].word, word) == 0)
            found = &directive_words[i];
    if (!found)
        return "an unknown directive";
    directive->sort = found->sort;
    directive->values[0] = found->value;
    for (size_t i = 0; found->arguments[i]; i++) {
        const char *why = parse_argument(found->arguments[i], words_next(&words), directive,
                                         &directive->values[i]);

        if (why)
            return why;
    }
    return words_next(&words) ? "a directive with too many words" : NULL;
}

const char *directives_add(struct directives *directives, uint64_t t_us, uint64_t line, int gpu,
                           char *words)
{
    struct directive directive = {.t_us = t_us, .line = line, .gpu = gpu};
    const char *why = parse(&directive, words);

    if (!why && gpu != DIRECTIVE_ALL &&
        (directive.sort == DIRECTIVE_DRIVER || directive.sort == DIRECTIVE_LOOP))
        why = "a directive that is for all GPUs: write *";
    if (!why && directives->count == directives->size) {
        size_t size = directives->size ? 2 * directives->size : 16;
        struct directive *items =
            size > DIRECTIVES_MAX ? NULL : realloc(directives->items, size * sizeof(*items));

        if (!items) {
            why = "too many directives";
        } else {
            directives->items = items;
            directives->size = size;
        }
    }
    if (why) {
        free(directive.text);
        return why;
    }
    directives->items[directives->count++] = directive;
    return NULL;
}

static int compare(const void *left, const void *right)
{
    const struct directive *a = left, *b = right;

    if (a->t_us != b->t_us)
        return a->t_us < b->t_us ? -1 : 1;
    return a->line < b->line ? -1 : a->line > b->line;
}

void directives_sort(struct directives *directives)
{
    if (directives->count > 0)
        qsort(directives->items, directives->count, sizeof(*directives->items), compare);
}

void directives_destroy(struct directives *directives)
{
    for (size_t i = 0; i < directives->count; i++)
        free(directives->items[i].text);
    free(directives->items);
    *directives = (struct directives){0};
}

static bool has_key(enum directive_sort sort)
{
    return sort == DIRECTIVE_ERROR || sort == DIRECTIVE_HANG || sort == DIRECTIVE_FIELD;
}

const struct directive *directives_last(const struct directives *directives,
                                        enum directive_sort sort, uint64_t key, int gpu,
                                        uint64_t t_us)
{
    const struct directive *last = NULL;

    for (size_t i = 0; i < directives->count && directives->items[i].t_us <= t_us; i++) {
        const struct directive *directive = &directives->items[i];

        if (directive->sort == sort && (directive->gpu == DIRECTIVE_ALL || directive->gpu == gpu) &&
            (!has_key(sort) || directive->values[0] == key))
            last = directive;
    }
    return last;
}

uint64_t directives_value(const struct directives *directives, enum directive_sort sort, int gpu,
                          uint64_t t_us, uint64_t otherwise)
{
    const struct directive *last = directives_last(directives, sort, 0, gpu, t_us);

    return last ? last->values[0] : otherwise;
}
