/* `wattribute completion SHELL`: prints a script that completes verbs, flags and their values. */
#include <string.h>

#include "cli/completion.h"
#include "core/macros.h"

enum { SCRIPT_CAP_BYTES = 1 << 20 };

enum completion_kind completion_of_flag(const struct options_flag *flag)
{
    if (!flag->placeholder)
        return COMPLETION_NONE;
    if (options_flag_word(flag, 0))
        return COMPLETION_WORDS;
    if (strcmp(flag->placeholder, "FILE") == 0 || strcmp(flag->placeholder, "PATH") == 0)
        return COMPLETION_FILE;
    return strcmp(flag->placeholder, "DIR") == 0 ? COMPLETION_DIRECTORY : COMPLETION_UNKNOWN;
}

enum completion_kind completion_of_argument(const struct cli_command *command)
{
    if (!command->argument)
        return COMPLETION_NONE;
    if (command->takes_command)
        return COMPLETION_COMMAND;
    return strchr(command->argument, '|') ? COMPLETION_WORDS : COMPLETION_FILE;
}

void completion_put_words(const struct options_flag *flag, struct buffer *out)
{
    const char *word;

    for (size_t i = 0; (word = options_flag_word(flag, i)); i++) {
        buffer_str(out, word);
        buffer_str(out, strchr(flag->placeholder, '=') ? "= " : " ");
    }
}

void completion_put_argument(const struct cli_command *command, struct buffer *out)
{
    struct span rest = span_of(command->argument);

    while (rest.len > 0) {
        struct span word = span_cut(&rest, '|');

        buffer_bytes(out, word.data, word.len);
        buffer_char(out, ' ');
    }
}

bool completion_is_negatable(const struct options_flag *flag)
{
    return !flag->placeholder && flag->group != OPTIONS_GENERAL;
}

bool completion_has_flag(const struct cli_command *command, const struct options_flag *flag)
{
    return command->groups & 1U << flag->group;
}

void completion_put_quoted(const char *text, const char *special, const char *quote,
                           struct buffer *out)
{
    for (; *text; text++) {
        if (*text == '\'') {
            buffer_str(out, quote);
            continue;
        }
        if (strchr(special, *text))
            buffer_char(out, '\\');
        buffer_char(out, *text);
    }
}

static void write_line(const struct completion_shell *shell, struct span line, struct buffer *out)
{
    for (size_t i = 0; i < ARRAY_SIZE(shell->parts); i++)
        if (shell->parts[i].line && span_equals(line, shell->parts[i].line)) {
            shell->parts[i].write(out);
            return;
        }
    buffer_bytes(out, line.data, line.len);
    buffer_char(out, '\n');
}

static bool write_script(const char *name, struct buffer *out)
{
    static const struct completion_shell *const shells[] = {&completion_bash, &completion_fish,
                                                            &completion_zsh};

    for (size_t i = 0; i < ARRAY_SIZE(shells); i++)
        if (strcmp(name, shells[i]->name) == 0) {
            struct span rest = span_of(shells[i]->template);

            while (rest.len > 0)
                write_line(shells[i], span_cut(&rest, '\n'), out);
            return true;
        }
    return false;
}

int verb_completion(const struct cli *cli)
{
    struct buffer text;
    struct error err;
    int status = EXIT_OK;

    buffer_init(&text, SCRIPT_CAP_BYTES);
    for (size_t i = 0; i < cli->argument_count && status == EXIT_OK; i++)
        if (!write_script(cli->arguments[i], &text)) {
            error_format(&err, "unknown shell '%.80s'; use bash, zsh or fish", cli->arguments[i]);
            cli_print_error(&err);
            status = EXIT_USAGE;
        }
    if (status == EXIT_OK)
        status = cli_print(&text);
    buffer_done(&text);
    return status;
}
