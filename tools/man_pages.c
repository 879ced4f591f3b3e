/*
 * Writes the manual pages: man_pages PROSE DATE MAN1 MAN5, three directories and the pages' date.
 *
 * Names, flags, keys and examples are those of --help. PROSE/PAGE.roff is what stands between them
 * and a page's first lines; a verb may do without.
 */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/cli.h"
#include "core/macros.h"

struct page {
    const char *name;
    int section;
    const char *help;
    const struct cli_command *command; /* NULL: not of one verb */
    bool has_keys;                     /* those of --config.file */
};

static const struct page overview = {"wattribute", 1, "who used the joules of this node?", NULL,
                                     false};
static const struct page files[] = {
    {"wattribute.yaml", 5, "settings of wattribute, for --config.file", NULL, true},
    {"wattribute-web-config", 5, "TLS, passwords and headers, for --web.config.file", NULL, false},
    {"wattribute-tariff", 5, "prices of electricity by time, for --cost.tariff-file", NULL, false},
};

enum { WIDTH = 45 }; /* of a line; with escapes and one more word it is below 80 */

/* Text in which roff finds nothing of its own, and '-' is one that can be copied. */
static void put(const char *text, FILE *out)
{
    size_t column = 0;

    for (; *text; text++, column++)
        if (*text == ' ' && column > WIDTH) {
            putc('\n', out);
            column = 0;
        } else if (*text == '\\') {
            fputs("\\e", out);
        } else if (*text == '-') {
            fputs("\\-", out);
        } else if (*text == '\'') {
            fputs("\\(aq", out);
        } else if (*text == '.' && column <= 1) {
            fputs("\\&.", out);
        } else {
            putc(*text, out);
        }
}

/* A paragraph below `macro`, for example ".TP\n.B ". */
static void put_item(const char *macro, const char *item, const char *end, const char *text,
                     FILE *out)
{
    fputs(macro, out);
    put(item, out);
    fputs(end, out);
    put(text, out);
    fputs(*text && text[strlen(text) - 1] == '?' ? "\n" : ".\n", out);
}

static void put_synopsis(const struct cli_command *command, FILE *out)
{
    char text[CLI_USAGE_BYTES], *flags;

    cli_describe_usage(command, text);
    flags = strstr(text, " [flags]");
    *flags++ = '\0';
    fprintf(out, ".B %s\n", text);
    put(flags, out);
    putc('\n', out);
}

static void put_flag(const struct options_flag *flag, bool is_key, FILE *out)
{
    const char *value = flag->placeholder ? flag->placeholder : is_key ? "true|false" : NULL;
    char text[CLI_DESCRIPTION_BYTES], end[64];

    cli_describe_flag(flag, text, sizeof(text));
    snprintf(end, sizeof(end), "\\fR%s\\fI%s\\fR\n",
             is_key  ? ": "
             : value ? "="
                     : "",
             value ? value : "");
    put_item(is_key ? ".TP\n\\fB" : ".TP\n\\fB\\-\\-", flag->name, end, text, out);
}

/* Those of verbs with these groups, or all keys of --config.file. */
static void put_flags(unsigned groups, bool are_keys, FILE *out)
{
    struct options_flag flag;

    fputs(are_keys ? ".SH KEYS\n" : ".SH FLAGS\n", out);
    for (unsigned group = 0; group < OPTIONS_GROUP_COUNT; group++) {
        const char *title = cli_group_titles[group];

        for (size_t i = 0; options_flag_at(i, &flag); i++) {
            if (flag.group != group ||
                !(are_keys ? options_flag_is_key(&flag) : groups >> group & 1))
                continue;
            if (title)
                fprintf(out, ".SS %s\n", title);
            title = NULL;
            put_flag(&flag, are_keys, out);
        }
    }
}

static void put_environment(unsigned groups, FILE *out)
{
    const char *title = ".SH ENVIRONMENT\n";
    struct options_flag flag;

    for (size_t i = 0; i < options_variable_count; i++)
        if (options_find(span_of(options_variables[i].flag), &flag) && groups >> flag.group & 1) {
            fputs(title, out);
            title = "";
            put_item(".TP\n.B ", options_variables[i].name, "\n", options_variables[i].help, out);
        }
}

/* Of "0 success; 1 failure". */
static void put_statuses(const char *statuses, FILE *out)
{
    char text[CLI_DESCRIPTION_BYTES], *status = text, *meaning, *next;

    snprintf(text, sizeof(text), "%s", statuses ? statuses : CLI_STATUSES);
    fputs(".SH EXIT STATUS\n", out);
    do {
        next = strstr(status, "; ");
        if (next)
            *next++ = '\0';
        meaning = status + strcspn(status, " ");
        if (*meaning)
            *meaning++ = '\0';
        put_item(".TP\n.B ", status, "\n", meaning, out);
        status = next ? next + 1 : NULL;
    } while (status);
}

static void put_examples(const struct cli_command *command, FILE *out)
{
    fputs(".SH EXAMPLES\n.EX\n", out);
    for (const char *line = command->examples; *line; line += strcspn(line, "\n") + 1) {
        char text[256];

        line += strspn(line, " ");
        snprintf(text, sizeof(text), "%.*s", (int)strcspn(line, "\n"), line);
        put(text, out);
        putc('\n', out);
    }
    fputs(".EE\n", out);
}

/* All other pages. */
static void put_see_also(const struct page *page, FILE *out)
{
    const char *comma = "";

    fputs(".SH SEE ALSO\n", out);
    if (page != &overview)
        fputs(".BR wattribute (1)", out);
    comma = page != &overview ? ",\n" : "";
    for (const struct cli_command *c = cli_commands; c->groups; c++)
        if (page->command != c) {
            fprintf(out, "%s.BR wattribute\\-%s (1)", comma, c->name);
            comma = ",\n";
        }
    for (size_t i = 0; i < ARRAY_SIZE(files); i++)
        if (page != &files[i]) {
            fprintf(out, "%s.BR ", comma);
            put(files[i].name, out);
            fputs(" (5)", out);
        }
    putc('\n', out);
}

static bool put_prose(const char *directory, const struct page *page, FILE *out)
{
    char path[PATH_MAX];
    FILE *prose;

    snprintf(path, sizeof(path), "%s/%s.roff", directory, page->name);
    prose = fopen(path, "re");
    if (!prose && page->command && errno == ENOENT) {
        put_item(".SH DESCRIPTION\n", "", "", page->help, out);
        return true;
    }
    for (int c; prose && (c = getc(prose)) != EOF;)
        putc(c, out);
    return prose && fclose(prose) == 0;
}

static void put_body(const struct page *page, FILE *out)
{
    const struct cli_command *command = page->command ? page->command : cli_commands;
    unsigned groups = page == &overview ? 1 << OPTIONS_GENERAL : command->groups;

    if (page == &overview) {
        fputs(".SH COMMANDS\n", out);
        for (const struct cli_command *c = cli_commands; c->groups; c++)
            put_item(".TP\n.BR wattribute\\-", c->name, " (1)\n", c->help, out);
    }
    put_flags(groups, false, out);
    put_environment(page == &overview ? ~0U : groups, out);
    put_statuses(command->statuses, out);
    put_examples(command, out);
}

static bool write_page(const struct page *page, char **argv)
{
    char path[PATH_MAX];
    bool is_good;
    FILE *out;

    snprintf(path, sizeof(path), "%s/%s.%d", argv[page->section == 1 ? 3 : 4], page->name,
             page->section);
    (void)remove(path); /* so that the directory is as new as its pages: ninja looks at that */
    out = fopen(path, "wxe");
    if (!out)
        return false;
    fputs(".\\\" Written by tools/man_pages.c.\n.TH ", out);
    for (const char *c = page->name; *c; c++)
        putc(toupper((unsigned char)*c), out);
    fprintf(out, " %d \"%s\" \"wattribute " WATTRIBUTE_VERSION "\"\n.SH NAME\n", page->section,
            argv[2]);
    put(page->name, out);
    fputs(" \\- ", out);
    put(page->help, out);
    putc('\n', out);
    if (page->section == 1)
        fputs(".SH SYNOPSIS\n", out);
    for (const struct cli_command *c = cli_commands; page->section == 1 && c->groups; c++)
        if (!page->command || page->command == c) {
            fputs(!page->command && c != cli_commands ? ".br\n" : "", out);
            put_synopsis(c, out);
        }
    is_good = put_prose(argv[1], page, out);
    if (page->section == 1)
        put_body(page, out);
    else if (page->has_keys)
        put_flags(0, true, out);
    put_see_also(page, out);
    is_good &= !ferror(out);
    return fclose(out) == 0 && is_good;
}

int main(int argc, char **argv)
{
    bool is_good = argc == 5 && (mkdir(argv[3], 0755) == 0 || errno == EEXIST) &&
                   (mkdir(argv[4], 0755) == 0 || errno == EEXIST) && write_page(&overview, argv);

    for (const struct cli_command *c = cli_commands; c->groups && is_good; c++) {
        char name[64];

        snprintf(name, sizeof(name), "wattribute-%s", c->name);
        is_good = write_page(&(struct page){name, 1, c->help, c, false}, argv);
    }
    for (size_t i = 0; i < ARRAY_SIZE(files) && is_good; i++)
        is_good = write_page(&files[i], argv);
    if (!is_good)
        perror("man_pages PROSE DATE MAN1 MAN5");
    return is_good ? EXIT_OK : EXIT_FAILED;
}
