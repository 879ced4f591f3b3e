#include "collector/runtime_log.h"

#include <string.h>
#include <sys/stat.h>

#include "core/log.h"
#include "core/macros.h"

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

void runtime_log_sockets(const struct options *options)
{
    const struct {
        const char *name, *path;
    } sockets[] = {{"cri-socket", options->cri_socket},
                   {"docker-socket", options->docker_socket},
                   {"podman-socket", options->podman_socket},
                   {"pod-resources-socket", options->pod_resources_socket}};

    for (size_t i = 0; i < ARRAY_SIZE(sockets); i++) {
        const char *path = sockets[i].path;
        struct stat st;

        if (!options_is_given(options, sockets[i].name) || !path || !path[0])
            continue;
        if (stat(path, &st) < 0 || !S_ISSOCK(st.st_mode))
            log_warn("names may be missing: a socket that was named is not there; it is looked for "
                     "again",
                     "flag", sockets[i].name, "path", path);
    }
}
