#include "collector/asker_process.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "config/asker_keys.h"
#include "core/macros.h"
#include "process/channel.h"

/* What libcurl goes by, and what the loader did. */
static const char *const variables[] = {"https_proxy", "HTTPS_PROXY", "all_proxy",      "ALL_PROXY",
                                        "no_proxy",    "NO_PROXY",    "LD_LIBRARY_PATH"};

/* So that a look-up which nobody answers ends: glibc's own limits are 5 s, twice for each server.
 */
#define RESOLVER "RES_OPTIONS=timeout:2 attempts:2"

enum {
    ENVIRONMENT_MAX = ARRAY_SIZE(variables) + ASKER_KEYS_MAX + 2,
    ARGUMENTS_MAX = 2 + 6 + 3 * ASKER_INQUIRIES_MAX + 1,
};

void asker_process_init(struct asker_process *asker, const struct asker_process_options *options)
{
    *asker = (struct asker_process){.options = *options, .fd = -1};
    child_init(&asker->child);
}

static bool is_asked(const struct asker_flags *flags, const char *provider)
{
    for (size_t i = 0; i < flags->count; i++)
        if (strcmp(flags->inquiries[i].provider, provider) == 0)
            return true;
    return false;
}

static void add_variable(char *env[ENVIRONMENT_MAX], size_t *count, const char *name)
{
    char *text = child_variable(name);

    if (text)
        env[(*count)++] = text;
}

/* What else the environment holds is none of its business. */
static void write_environment(const struct asker_flags *flags, char *env[ENVIRONMENT_MAX])
{
    struct asker_key keys[ASKER_KEYS_MAX];
    size_t count = 0, key_count = asker_keys_list(keys);

    env[count++] = RESOLVER;
    for (size_t i = 0; i < ARRAY_SIZE(variables); i++)
        add_variable(env, &count, variables[i]);
    for (size_t i = 0; i < key_count; i++)
        if (is_asked(flags, keys[i].provider))
            add_variable(env, &count, keys[i].variable);
    env[count] = NULL;
}

/* What of the command line is numbers, as text. */
struct numbers {
    char level[16], format[16], interval[24], basis[16];
};

static void write_numbers(const struct asker_process_options *options, struct numbers *numbers)
{
    snprintf(numbers->level, sizeof(numbers->level), "%d", (int)options->log_level);
    snprintf(numbers->format, sizeof(numbers->format), "%d", (int)options->log_format);
    snprintf(numbers->interval, sizeof(numbers->interval), "%" PRIu64, options->flags->interval_us);
    snprintf(numbers->basis, sizeof(numbers->basis), "%d", (int)options->flags->basis);
}

/* As verb_asker reads it. */
static void write_arguments(const struct asker_flags *flags, bool is_again, struct numbers *numbers,
                            char *argv[ARGUMENTS_MAX])
{
    size_t count = 0;

    argv[count++] = "wattribute";
    argv[count++] = "asker";
    argv[count++] = numbers->level;
    argv[count++] = numbers->format;
    argv[count++] = is_again ? "again" : "first";
    argv[count++] = numbers->interval;
    argv[count++] = numbers->basis;
    argv[count++] = (char *)flags->ca_path;
    for (size_t i = 0; i < flags->count; i++) {
        argv[count++] = (char *)flags->inquiries[i].provider;
        argv[count++] = (char *)flags->inquiries[i].zone;
        argv[count++] = (char *)flags->inquiries[i].url;
    }
    argv[count] = NULL;
}

int asker_process_start(struct asker_process *asker, int keys_fd, uint64_t now_us,
                        struct error *err)
{
    _cleanup_close_ int ours = -1, theirs = -1;
    struct numbers numbers = {0};
    char *argv[ARGUMENTS_MAX], *env[ENVIRONMENT_MAX];
    int r = channel_open(&ours, &theirs);

    if (r < 0)
        return child_fail(&asker->child, "asker", r, now_us, &asker->restart_us, err);
    write_numbers(&asker->options, &numbers);
    write_arguments(asker->options.flags, asker->has_run, &numbers, argv);
    write_environment(asker->options.flags, env);
    r = child_start(
        &asker->child,
        &(struct child_program){
            .argv = argv, .env = env, .fds = (const int[]){theirs, keys_fd}, .fd_count = 2},
        now_us, &asker->restart_us, err);
    if (r == 0) {
        asker->fd = TAKE_FD(ours);
        asker->has_run = true;
    }
    return r;
}

void asker_process_close(struct asker_process *asker)
{
    cleanup_close(&asker->fd);
    asker->fd = -1;
}

bool asker_process_reap(struct asker_process *asker, uint64_t now_us, int *ret_status)
{
    if (!child_reap(&asker->child, now_us, &asker->restart_us, ret_status))
        return false;
    asker_process_close(asker);
    asker->is_ending = false;
    return true;
}

void asker_process_replace(struct asker_process *asker)
{
    asker_process_close(asker);
    asker->has_run = false;
    asker->is_ending = asker->child.pid > 0;
}

void asker_process_kill(struct asker_process *asker)
{
    child_kill(&asker->child);
}

void asker_process_stop(struct asker_process *asker, uint64_t wait_us)
{
    asker_process_close(asker);
    child_stop(&asker->child, wait_us);
}
