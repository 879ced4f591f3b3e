/*
 * /proc/PID/cgroup: any bytes give texts that end within their buffers and an owner with an id, the
 * same each time. Below a point that strangers were given, nobody but them.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"
#include "identity/owner.h"

#define ID "df7aa2a3a9fb81a46c086544cf6c373d9e0b58dfff774f541d300e0dc08f5a5c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void check_text(const char *text, size_t size)
{
    check(memchr(text, '\0', size));
}

/* None, 64 hex digits, or Fargate's 32 and a number. */
static void check_container_id(const char *id)
{
    size_t hex = strspn(id, "0123456789abcdef"), len = strnlen(id, WORKLOAD_CONTAINER_BYTES);

    check(len < WORKLOAD_CONTAINER_BYTES);
    check(len == 0 || hex == 64 ||
          (hex == 32 && id[32] == '-' && len > 33 && strspn(id + 33, "0123456789") == len - 33));
}

static void check_place(const struct cgroup_place *place)
{
    check(place->kind <= CGROUP_POD);
    check_container_id(place->container_id);
    check_container_id(place->outer_container_id);
    check_container_id(place->pod_container_id);
    check_container_id(place->trusted_container_id);
    check_text(place->pod_uid, sizeof(place->pod_uid));
    check_text(place->job, sizeof(place->job));
    check_text(place->machine, sizeof(place->machine));
    check_text(place->unit, sizeof(place->unit));
    check_text(place->scope, sizeof(place->scope));
    check((place->holder == CGROUP_POD) <= (place->pod_uid[0] != '\0'));
    check((place->holder >= CGROUP_LSF && place->holder <= CGROUP_SLURM) <=
          (place->job[0] != '\0'));
    check((place->holder == CGROUP_VM) <= (place->machine[0] != '\0'));
    check((place->kind == CGROUP_UNIT) <= (place->unit[0] != '\0'));
    check(!strchr(place->machine, '/') && !strchr(place->scope, '/'));
}

static bool begins_with(const char *text, const char *scope)
{
    size_t len = strlen(scope);

    return strncmp(text, scope, len) == 0 && text[len] == '/' && text[len + 1] != '\0';
}

static void check_owner(const struct workload_owner *owner)
{
    const char *slash = strchr(owner->id, '/');

    check_text(owner->id, sizeof(owner->id));
    check_text(owner->pod_uid, sizeof(owner->pod_uid));
    check_container_id(owner->container_id);
    check((owner->kind == WORKLOAD_PROCESS) == (owner->id[0] == '\0'));
    check((owner->kind == WORKLOAD_POD && !slash) == (owner->pod_uid[0] != '\0'));
    check(!slash || !strchr(slash + 1, '/'));
}

static void check_same(const struct workload_owner *a, const struct workload_owner *b)
{
    check(a->kind == b->kind && strcmp(a->id, b->id) == 0 &&
          strcmp(a->container_id, b->container_id) == 0 && strcmp(a->pod_uid, b->pod_uid) == 0);
}

static void check_file(struct span text)
{
    struct workload_owner owner, again;
    struct cgroup_place place;

    owner_find_by_cgroup_file(text, OWNER_UID_UNKNOWN, &owner);
    check_owner(&owner);
    if (cgroup_file_parse(text, &place) < 0) {
        check(owner.kind == WORKLOAD_PROCESS);
        return;
    }
    check_place(&place);
    owner_find(&place, OWNER_UID_UNKNOWN, &again);
    check_same(&owner, &again);
    if (place.scope[0] != '\0' && place.kind != CGROUP_MONITOR)
        check(begins_with(owner.id, place.scope));
}

static void check_below(struct span path, const char *point, enum workload_kind kind,
                        const char *id, const char *scope)
{
    struct workload_owner owner;
    struct cgroup_place place;
    char text[8192];
    int len = snprintf(text, sizeof(text), "%s/", point);

    if (path.len > sizeof(text) - (size_t)len)
        return;
    memcpy(text + len, path.data, path.len);
    cgroup_path_parse((struct span){text, (size_t)len + path.len}, &place);
    check_place(&place);
    if (place.kind == CGROUP_OUTSIDE) /* "..", which nobody can make */
        return;
    owner_find(&place, 0, &owner);
    check_owner(&owner);
    check(begins_with(owner.id, scope) || (owner.kind == kind && strcmp(owner.id, id) == 0));
    if (strstr(point, "//")) /* only root starts pods, jobs and VMs */
        check(owner.kind == kind || owner.kind == WORKLOAD_CONTAINER ||
              owner.kind == WORKLOAD_LXC || owner.kind == WORKLOAD_NSPAWN);
}

/* On one line, in a user's part of one hierarchy, it does not take the process out of its job. */
static void check_beside_job(struct span path, const char *job_path, enum workload_kind kind,
                             const char *id)
{
    struct workload_owner owner;
    char text[8192];
    int len = snprintf(text, sizeof(text),
                       "2:memory:%s\n"
                       "1:name=systemd:/user.slice/user-1000.slice/user@1000.service/",
                       job_path);

    if (path.len > sizeof(text) - (size_t)len || (path.len && memchr(path.data, '\n', path.len)))
        return;
    memcpy(text + len, path.data, path.len);
    owner_find_by_cgroup_file((struct span){text, (size_t)len + path.len}, 0, &owner);
    check(owner.kind == kind && strcmp(owner.id, id) == 0);
    check(owner.container_id[0] == '\0' && owner.pod_uid[0] == '\0');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span text = {(const char *)data, size};

    check_file(text);
    check_below(text, "/user.slice/user-1000.slice/session-2.scope", WORKLOAD_USER, "1000", "1000");
    check_below(text, "/user.slice/user-1000.slice/user@1000.service", WORKLOAD_USER, "1000",
                "1000");
    check_below(text, "/system.slice/a.service//1000", WORKLOAD_UNIT, "a.service", "1000");
    check_below(text, "/batch/slot//1000", WORKLOAD_USER, "1000", "1000");
    check_below(text, "/docker/" ID "//100000", WORKLOAD_CONTAINER, ID, ID);
    check_below(text, "/docker/" ID, WORKLOAD_CONTAINER, ID, ID);
    check_below(text, "/kubepods/pod00000000-0000-0000-0000-000000000000/" ID, WORKLOAD_POD, ID,
                ID);
    check_below(text, "/kubepods.slice/kubepods-podetcd.slice/crio-" ID ".scope", WORKLOAD_POD, ID,
                ID);
    check_below(text, "/lxc/slurm", WORKLOAD_LXC, "slurm", "lxc:slurm");
    check_below(text, "/machine.slice/machine-web.scope/payload", WORKLOAD_NSPAWN, "web",
                "nspawn:web");
    check_below(text, "/slurm/uid_1000/job_7/step_0", WORKLOAD_SLURM, "7", "slurm:7");
    check_below(text, "/lsf/c/job.7.1.2", WORKLOAD_LSF, "7", "lsf:7");
    check_below(text, "/pbs_jobs.service/jobs/7[3].s", WORKLOAD_PBS, "7[3].s", "pbs:7[3].s");
    check_beside_job(text, "/slurm/uid_1000/job_7/step_0", WORKLOAD_SLURM, "7");
    check_beside_job(text, "/lsf/c/job.7.1.2", WORKLOAD_LSF, "7");
    check_beside_job(text, "/pbs_jobs.service/jobs/7[3].s", WORKLOAD_PBS, "7[3].s");
    return 0;
}
