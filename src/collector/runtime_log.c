#include "collector/runtime_log.h"

#include <string.h>
#include <sys/stat.h>

#include "core/log.h"
#include "identity/runtime.h"

static size_t find(struct runtime_log *log, const char *name)
{
    size_t i = 0;

    while (i < log->count && strcmp(log->seen[i].name, name) != 0)
        i++;
    return i;
}

static void note(struct runtime_log *log, const struct identity_status *status)
{
    size_t at = find(log, status->name);
    bool is_new = at == log->count;

    if (at == RUNTIME_LOG_MAX || !status->asked || (!is_new && log->seen[at].up == status->up))
        return;
    if (is_new) {
        memcpy(log->seen[at].name, status->name, sizeof(status->name));
        log->count++;
    }
    log->seen[at].up = status->up;
    if (!status->up)
        log_warn("names may be missing: a source of them does not answer; no energy is lost",
                 "source", status->name, "error", status->error);
    else if (is_new)
        log_info("names are read", "source", status->name);
    else
        log_info("source of names is back", "source", status->name);
}

void runtime_log_note(struct runtime_log *log, struct identity *identity)
{
    struct identity_status status;

    for (size_t i = 0; identity_get_status(identity, i, &status); i++)
        if (!status.logs_elsewhere)
            note(log, &status);
}

static void warn_if_missing(const char *flag, const char *path)
{
    struct stat st;

    if (!path || !path[0] || (stat(path, &st) == 0 && S_ISSOCK(st.st_mode)))
        return;
    log_warn("names may be missing: a socket that was named is not there; it is looked for again",
             "flag", flag, "path", path);
}

void runtime_log_sockets(const struct options *options)
{
    for (size_t i = 0; runtime_table[i]; i++)
        warn_if_missing(runtime_table[i]->flag, options->runtime_sockets[i]);
    warn_if_missing("pod-resources-socket", options->pod_resources_socket);
}
