#include "identity/details.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/fs.h"
#include "core/macros.h"
#include "core/parse.h"
#include "host/memory_read.h"
#include "host/proc.h"
#include "identity/owner.h"

enum {
    FRONT_BYTES = 256 << 10, /* an environment can have megabytes; only its beginning is read */
    PASSWD_BYTES = 16 << 20,
    TEXT_BYTES = 256,
};

static void free_texts(struct details *details)
{
    free(details->id);
    for (size_t i = 0; i < WORKLOAD_TEXTS; i++)
        free(details->texts[i]);
}

void details_done(struct details *details)
{
    free_texts(details);
    *details = (struct details){0};
}

struct key {
    enum workload_kind kind;
    const char *id;
};

static uint64_t hash_of(enum workload_kind kind, const char *id)
{
    return map_hash_u64(map_hash_bytes(span_of(id)) + kind);
}

static bool has_key(const void *entry, const void *key)
{
    const struct details *details = entry;
    const struct key *wanted = key;

    return details->kind == wanted->kind && strcmp(details->id, wanted->id) == 0;
}

struct details *details_find(const struct table *store, enum workload_kind kind, const char *id)
{
    struct key key = {kind, id};

    return table_find(store, hash_of(kind, id), has_key, &key);
}

void details_add(struct table *store, struct details *details)
{
    struct details *place = details_find(store, details->kind, details->id);
    struct table_entry entry;

    if (place && (place->complete || !details->complete))
        place = NULL;
    else if (!place && store->count < DETAILS_MAX)
        place = table_add(store, hash_of(details->kind, details->id), sizeof(*place));
    if (!place) {
        details_done(details);
        return;
    }
    entry = place->entry;
    free_texts(place);
    *place = *details;
    place->entry = entry;
    *details = (struct details){0};
}

void details_expire(struct table *store, uint64_t before_us)
{
    for (size_t i = store->count; i-- > 0;) {
        struct details *details = store->items[i];

        if (details->used_us >= before_us)
            continue;
        free_texts(details);
        table_remove(store, details);
    }
}

void details_store_done(struct table *store)
{
    details_expire(store, UINT64_MAX);
    table_done(store);
}

static bool is_still_owned(const struct host *host, int process_fd,
                           const struct workload_owner *owner)
{
    char text[PROC_CGROUP_BYTES];
    size_t len;

    return proc_read_cgroup(host, process_fd, text, sizeof(text), &len) == 0 &&
           owner_has_cgroup_file(owner, (struct span){text, len});
}

/* The name of a user, or the number if the host has no name for it. */
static char *user_name(const struct host *host, uint32_t uid)
{
    _cleanup_close_ int fd = openat(host->rootfs_fd, "etc/passwd", O_RDONLY | O_CLOEXEC);
    _cleanup_free_ char *data = NULL;
    char name[256];
    size_t len;

    if (fd < 0 || fs_read_fd(fd, PASSWD_BYTES, &data, &len) < 0 ||
        !passwd_find((struct span){data, len}, uid, name, sizeof(name)))
        snprintf(name, sizeof(name), "%u", uid);
    return strdup(name);
}

/* Whether the id is the number that users know: not a SLUID, nor one that the job itself chose. */
static bool is_job_id(const struct details *details)
{
    uint64_t number;

    if (details->kind == WORKLOAD_SLURM)
        return parse_u64(span_of(details->id), &number) == 0;
    return !strchr(details->id, '/');
}

/* False: it is still being read, and the next scan tries again. */
static bool read_memory(int process_fd, uint32_t uid, const char *file, uint32_t timeout_ms,
                        struct details *details)
{
    struct memory_read *read = memory_read_start(process_fd, uid, file, FRONT_BYTES);
    struct span text;
    bool is_over = read && memory_read_wait(read, timeout_ms, &text);

    if (is_over && details->kind == WORKLOAD_VM)
        details_parse_cmdline(text, details->texts);
    else if (is_over)
        details_parse_environ(details->kind, text, details->texts);
    memory_read_free(read);
    return is_over;
}

static void read_job(const struct host *host, int process_fd, uint32_t timeout_ms,
                     struct details *details)
{
    uint32_t uid = proc_read_uid(process_fd);
    char **texts = details->texts;

    (void)read_memory(process_fd, uid, "environ", timeout_ms, details);
    details->complete = texts[WORKLOAD_TEXT_JOB_NAME]; /* a container hides these variables */
    details->job_id_unverified = !is_job_id(details);
    if (!details->job_id_unverified) {
        free(texts[WORKLOAD_TEXT_JOB_ID]);
        texts[WORKLOAD_TEXT_JOB_ID] = strdup(details->id);
    }
    if (uid != SAMPLE_UID_UNKNOWN)
        texts[WORKLOAD_TEXT_USER] = user_name(host, uid);
}

static void read_vm(int process_fd, uint32_t timeout_ms, struct details *details)
{
    bool is_read =
        read_memory(process_fd, proc_read_uid(process_fd), "cmdline", timeout_ms, details);

    /* A helper beside QEMU, such as swtpm, has none of these. */
    details->complete = is_read && details->texts[WORKLOAD_TEXT_NAME];
}

int details_read(const struct host *host, uint32_t pid, const struct workload_owner *owner,
                 uint32_t timeout_ms, struct details *ret_details)
{
    struct details details = {.kind = owner->kind, .complete = true};
    _cleanup_close_ int fd = -1;
    uint64_t uid;

    if (!workload_is_job(owner->kind) && owner->kind != WORKLOAD_VM && owner->kind != WORKLOAD_USER)
        return -ENODATA;
    fd = owner->kind == WORKLOAD_USER ? -1 : proc_open(host, pid);
    if (owner->kind != WORKLOAD_USER && (fd < 0 || !is_still_owned(host, fd, owner)))
        return -ESRCH;
    details.id = strdup(owner->id);
    if (!details.id)
        return -ENOMEM;
    if (owner->kind == WORKLOAD_VM)
        read_vm(fd, timeout_ms, &details);
    else if (owner->kind != WORKLOAD_USER)
        read_job(host, fd, timeout_ms, &details);
    else if (parse_u64_max(span_of(details.id), UINT32_MAX - 1, &uid) == 0)
        details.texts[WORKLOAD_TEXT_USER] = user_name(host, (uint32_t)uid);
    *ret_details = details;
    return 0;
}

/* From here on: batch jobs. */

static void set_text(char **text, struct span value)
{
    if (value.len == 0 || value.len >= TEXT_BYTES) /* never truncated to another name */
        return;
    free(*text);
    *text = strndup(value.data, value.len);
}

void details_parse_environ(enum workload_kind kind, struct span environment,
                           char *texts[WORKLOAD_TEXTS])
{
    static const struct {
        enum workload_kind kind;
        enum workload_text text;
        const char *name;
    } variables[] = {
        /* From Slurm 26.05 on, cgroups have another id than the number that users know. */
        {WORKLOAD_SLURM, WORKLOAD_TEXT_JOB_ID, "SLURM_JOB_ID"},
        {WORKLOAD_SLURM, WORKLOAD_TEXT_JOB_NAME, "SLURM_JOB_NAME"},
        {WORKLOAD_SLURM, WORKLOAD_TEXT_ACCOUNT, "SLURM_JOB_ACCOUNT"},
        {WORKLOAD_LSF, WORKLOAD_TEXT_JOB_NAME, "LSB_JOBNAME"},
        {WORKLOAD_LSF, WORKLOAD_TEXT_ACCOUNT, "LSB_PROJECT_NAME"},
        {WORKLOAD_PBS, WORKLOAD_TEXT_JOB_NAME, "PBS_JOBNAME"},
        {WORKLOAD_PBS, WORKLOAD_TEXT_ACCOUNT, "PBS_ACCOUNT"},
    };
    uint64_t number;

    while (environment.len > 0) {
        struct span value = span_cut(&environment, '\0');
        struct span name = span_cut(&value, '=');

        for (size_t i = 0; i < ARRAY_SIZE(variables); i++)
            if (variables[i].kind == kind && span_equals(name, variables[i].name) &&
                !texts[variables[i].text] && /* the first one counts, as for getenv */
                (variables[i].text != WORKLOAD_TEXT_JOB_ID || parse_u64(value, &number) == 0))
                set_text(&texts[variables[i].text], value);
    }
}

/* From here on: virtual machines. */

/* "guest=NAME,debug-threads=on" or "NAME,..."; a comma in the name is doubled. */
static void parse_vm_name(struct span value, char **text)
{
    char name[TEXT_BYTES];
    size_t len = 0;

    span_strip_prefix(&value, "guest=");
    for (size_t i = 0; i < value.len && len < sizeof(name); i++) {
        if (value.data[i] == ',' && (i + 1 == value.len || value.data[++i] != ','))
            break;
        name[len++] = value.data[i];
    }
    set_text(text, (struct span){name, len});
}

void details_parse_cmdline(struct span cmdline, char *texts[WORKLOAD_TEXTS])
{
    while (cmdline.len > 0) {
        struct span argument = span_cut(&cmdline, '\0');

        if (span_equals(argument, "-name")) {
            parse_vm_name(span_cut(&cmdline, '\0'), &texts[WORKLOAD_TEXT_NAME]);
        } else if (span_equals(argument, "-uuid")) {
            struct span value = span_cut(&cmdline, '\0');

            if (parse_is_uuid(value))
                set_text(&texts[WORKLOAD_TEXT_UUID], value);
        }
    }
}

/* From here on: users. */

bool passwd_find(struct span text, uint32_t uid, char *ret_name, size_t size_bytes)
{
    while (text.len > 0) {
        struct span line = span_cut(&text, '\n');
        struct span name = span_cut(&line, ':');
        uint64_t number;

        (void)span_cut(&line, ':'); /* the password */
        if (name.len == 0 || name.len >= size_bytes || memchr(name.data, '\0', name.len) ||
            parse_u64_max(span_cut(&line, ':'), UINT32_MAX - 1, &number) < 0 || number != uid)
            continue;
        memcpy(ret_name, name.data, name.len);
        ret_name[name.len] = '\0';
        return true;
    }
    return false;
}
