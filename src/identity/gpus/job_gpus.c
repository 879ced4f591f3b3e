#include "identity/job_gpus.h"

#include <errno.h>
#include <string.h>

#include "core/fs.h"
#include "core/macros.h"
#include "core/parse.h"
#include "host/memory_read.h"
#include "host/proc.h"
#include "identity/gpus/device_rules.h"
#include "identity/owner.h"
#include "identity/vm_gpus.h"

static const uint64_t AGAIN_US = 60 * USEC_PER_SEC;

enum {
    PROCESSES_MAX = 16,       /* of a job that are read: its steps may have different GPUs */
    TASKS_MAX = 128,          /* that are read where the job has more GPUs than those named */
    MEMORY_BYTES = 256 << 10, /* of an environment, or of a command line */
    TIMEOUTS_MAX = 10,        /* in one scan */
};

static bool has_text(struct span text, const char *part)
{
    return text.len > 0 && memmem(text.data, text.len, part, strlen(part));
}

enum job_step job_gpus_find_step(struct span cgroup_file)
{
    if (has_text(cgroup_file, "/step_batch") || has_text(cgroup_file, "/step_interactive"))
        return JOB_STEP_BATCH;
    return has_text(cgroup_file, "/step_") ? JOB_STEP_TASKS : JOB_STEP_NONE;
}

/* The first one counts, as for getenv. */
static struct span find_variable(struct span environment, const char *name)
{
    while (environment.len > 0) {
        struct span value = span_cut(&environment, '\0');

        if (span_equals(span_cut(&value, '='), name))
            return value;
    }
    return (struct span){NULL, 0};
}

/* "0,2", and "0-3" of some versions. */
static bool add_range(struct gpu_access_list *gpus, struct span range)
{
    struct span last = range, first = span_cut(&last, '-');
    uint64_t from, to;

    if (parse_u64_max(first, GPU_ACCESS_MAX - 1, &from) < 0)
        return false;
    to = from;
    if (first.len < range.len && (parse_u64_max(last, GPU_ACCESS_MAX - 1, &to) < 0 || to < from))
        return false;
    for (; from <= to; from++)
        gpu_access_add(gpus, &(struct gpu_access){.kind = ALLOCATION_ORDINAL,
                                                  .index = (uint32_t)from,
                                                  .is_unverified = true,
                                                  .source = ALLOCATED_BY_ENVIRONMENT});
    return true;
}

static bool add_ordinals(struct gpu_access_list *gpus, struct span list)
{
    while (list.len > 0)
        if (!add_range(gpus, span_cut(&list, ',')))
            return false;
    return true;
}

/* False if there is anything but whole uuids. PBS escapes the commas of what it hands to a job. */
static bool add_uuids(struct gpu_access_list *gpus, struct span list)
{
    while (list.len > 0) {
        struct span name = span_cut(&list, ',');
        size_t before = gpus->count;

        span_strip_suffix(&name, "\\");
        gpu_access_add_uuids(gpus, name);
        if (gpus->count == before)
            return false;
        gpus->items[before].is_unverified = true;
        gpus->items[before].source = ALLOCATED_BY_ENVIRONMENT;
    }
    return true;
}

static void add_all(struct gpu_access_list *to, const struct gpu_access_list *from)
{
    for (size_t i = 0; i < from->count; i++)
        gpu_access_add(to, &from->items[i]);
}

void job_gpus_parse_environ(enum workload_kind kind, enum job_step step, struct span environment,
                            struct gpu_access_list *gpus)
{
    struct span visible = find_variable(environment, "CUDA_VISIBLE_DEVICES");
    struct gpu_access_list found = {.count = 0};
    bool is_whole;

    if (kind == WORKLOAD_SLURM && step == JOB_STEP_NONE)
        return;
    if (kind == WORKLOAD_SLURM && !has_text(visible, "MIG-"))
        is_whole = add_ordinals(&found, find_variable(environment, step == JOB_STEP_BATCH
                                                                       ? "SLURM_JOB_GPUS"
                                                                       : "SLURM_STEP_GPUS"));
    else
        is_whole = add_uuids(&found, visible);
    if (is_whole)
        add_all(gpus, &found);
}

uint32_t job_gpus_parse_count(enum workload_kind kind, enum job_step step, struct span environment)
{
    uint64_t count;

    if (kind != WORKLOAD_SLURM || step == JOB_STEP_NONE ||
        parse_u64_max(find_variable(environment, "SLURM_GPUS_ON_NODE"), GPU_ACCESS_MAX, &count) < 0)
        return 0;
    return (uint32_t)count;
}

bool job_gpus_read_rules(struct span rules, struct gpu_access_list *gpus)
{
    static const struct {
        uint32_t major, first, count;
        enum allocation_kind kind;
    } nodes[] = {
        {GPU_NODE_MAJOR, 0, GPU_ACCESS_MAX, ALLOCATION_MINOR},
        {DRM_NODE_MAJOR, RENDER_MINOR_FIRST, RENDER_MINORS, ALLOCATION_RENDER},
    };
    size_t before = gpus->count;
    bool are_specific = true;

    for (size_t n = 0; n < ARRAY_SIZE(nodes); n++) {
        bool is_specific = device_rules_are_specific(rules, nodes[n].major);

        are_specific &= is_specific;
        for (uint32_t i = 0; is_specific && i < nodes[n].count; i++)
            if (device_rules_allow(rules, nodes[n].major, nodes[n].first + i))
                gpu_access_add(gpus, &(struct gpu_access){.kind = nodes[n].kind,
                                                          .index = nodes[n].first + i,
                                                          .source = ALLOCATED_BY_DEVICE_CGROUP});
    }
    return are_specific || gpus->count > before;
}

/* From here on: what is read. */

struct inspection {
    const struct host *host;
    const struct process_table_owner *owner;
    uint32_t timeout_ms;
    unsigned timeouts; /* of the whole scan */
    bool is_constrained;
    bool is_whole;      /* no other process of it has more to say */
    uint32_t gpu_count; /* the most that one of its steps says to have; 0: none says */
};

/* NULL: it cannot be read in time. Else to be freed after the text. */
static struct memory_read *read_memory(struct inspection *of, int process_fd, const char *file,
                                       struct span *ret_text)
{
    uint32_t wait_ms = of->timeouts < TIMEOUTS_MAX ? of->timeout_ms : 1;
    struct memory_read *read =
        memory_read_start(process_fd, proc_read_uid(process_fd), file, MEMORY_BYTES);

    if (read && memory_read_wait(read, wait_ms, ret_text))
        return read;
    of->timeouts++;
    memory_read_free(read);
    return NULL;
}

static void read_environment(struct inspection *of, int process_fd, enum job_step step,
                             struct gpu_access_list *gpus)
{
    size_t before = gpus->count;
    struct span text;
    struct memory_read *read = read_memory(of, process_fd, "environ", &text);

    if (read) {
        job_gpus_parse_environ(of->owner->owner.kind, step, text, gpus);
        of->gpu_count = MAX(of->gpu_count, job_gpus_parse_count(of->owner->owner.kind, step, text));
    }
    memory_read_free(read);
    of->is_whole |= step != JOB_STEP_TASKS && gpus->count > before;
}

/* -ENODATA: not of QEMU, or not legible. A machine has helpers, such as swtpm. */
static int read_command_line(struct inspection *of, int process_fd, struct gpu_access_list *gpus)
{
    struct vm_device_list devices = {.count = 0};
    struct span text;
    struct memory_read *read = read_memory(of, process_fd, "cmdline", &text);

    of->is_whole = read && vm_gpus_parse_cmdline(text, &devices);
    memory_read_free(read);
    if (!of->is_whole)
        return -ENODATA;
    vm_gpus_add_boards(of->host, &devices, gpus);
    return 0;
}

/* 0, -ESRCH, or another -errno. */
static int inspect_process(struct inspection *of, uint32_t pid, struct gpu_access_list *gpus)
{
    const struct workload_owner *owner = &of->owner->owner;
    _cleanup_close_ int process_fd = proc_open(of->host, pid);
    char cgroup_text[PROC_CGROUP_BYTES], rules[DEVICE_RULES_BYTES];
    struct span cgroup_file = {cgroup_text, 0};
    size_t len;

    if (process_fd < 0)
        return process_fd;
    if (proc_read_cgroup(of->host, process_fd, cgroup_text, sizeof(cgroup_text), &cgroup_file.len) <
            0 ||
        !owner_has_cgroup_file(owner, cgroup_file))
        return -ESRCH;
    if (owner->kind == WORKLOAD_VM)
        return read_command_line(of, process_fd, gpus);
    if (device_rules_read_owner(of->host, owner, cgroup_file, rules, sizeof(rules), &len) &&
        job_gpus_read_rules((struct span){rules, len}, gpus))
        of->is_constrained = true;
    else if (workload_is_job(owner->kind))
        read_environment(of, process_fd, job_gpus_find_step(cgroup_file), gpus);
    return 0;
}

/* Rules name all. */
static void set_unknown(const struct inspection *of, struct gpu_access_list *gpus)
{
    gpus->unknown =
        !of->is_constrained && of->gpu_count > gpus->count ? of->gpu_count - gpus->count : 0;
}

/* The rules are those of all its processes; environments and command lines differ. 0 if a process
 * was read. */
static int inspect_owner(struct inspection *of, const struct process_table *processes,
                         struct gpu_access_list *gpus)
{
    bool is_unit = of->owner->owner.kind == WORKLOAD_UNIT;
    uint32_t pid = 0;
    int r = -ESRCH;

    of->is_constrained = of->is_whole = false;
    of->gpu_count = 0;
    for (int i = 0; i < (gpus->unknown > 0 ? TASKS_MAX : PROCESSES_MAX) && !of->is_constrained &&
                    !of->is_whole;
         i++) {
        pid = process_table_next_pid(processes, of->owner, pid);
        if (pid == 0)
            break;
        if (inspect_process(of, pid, gpus) == 0)
            r = 0;
        set_unknown(of, gpus);
        if (r == 0 && is_unit)
            break;
    }
    return r;
}

/* Units of a tenant do not exist, and a scoped job is a row of its own. In a scope a tenant chooses
 * what looks like a machine, and its command line: only root's count. */
static bool is_inspected(const struct workload_owner *owner)
{
    return workload_is_job(owner->kind) || owner->kind == WORKLOAD_UNIT ||
           (owner->kind == WORKLOAD_VM && !strchr(owner->id, '/'));
}

static struct attachment_key key_of(const struct workload_owner *owner)
{
    return (struct attachment_key){owner->kind, owner->id};
}

void job_gpus_scan(const struct host *host, const struct process_table *processes,
                   struct attachments *attachments, unsigned source, uint32_t timeout_ms,
                   uint64_t now_us)
{
    struct inspection of = {.host = host, .timeout_ms = timeout_ms};

    attachments_begin(attachments, source);
    for (size_t i = 0; (of.owner = process_table_owner_at(processes, i)); i++)
        if (is_inspected(&of.owner->owner))
            attachments_keep(attachments, source, key_of(&of.owner->owner));
    attachments_end(attachments, source, now_us);
    for (size_t i = 0; (of.owner = process_table_owner_at(processes, i)); i++) {
        struct gpu_access_list gpus = {.count = 0};
        struct attachment_key key = key_of(&of.owner->owner);

        if (!is_inspected(&of.owner->owner) ||
            !attachments_is_due(attachments, source, key, AGAIN_US, now_us))
            continue;
        /* A job that shows none is asked again soon, and then ever more seldom: its script may not
         * have started yet. */
        if (inspect_owner(&of, processes, &gpus) == 0 &&
            (gpus.count > 0 || gpus.unknown > 0 || of.is_constrained ||
             !workload_is_job(key.kind))) {
            if (workload_is_job(key.kind) && !of.is_constrained)
                attachments_recall(attachments, source, key, &gpus);
            set_unknown(&of, &gpus);
            attachments_set(attachments, source, key, &gpus, now_us);
        } else {
            attachments_note_failure(attachments, source, key, now_us);
        }
    }
}

int job_gpus_find(const struct host *host, const struct process_table *processes,
                  const struct process_table_owner *owner, uint32_t timeout_ms,
                  struct gpu_access_list *gpus)
{
    struct inspection of = {.host = host, .owner = owner, .timeout_ms = timeout_ms};

    return is_inspected(&owner->owner) ? inspect_owner(&of, processes, gpus) : -ENODATA;
}

struct job_gpus_count job_gpus_count(const struct host *host, const struct process_table *processes,
                                     uint32_t timeout_ms)
{
    struct inspection of = {.host = host, .timeout_ms = timeout_ms};
    struct job_gpus_count count = {0};

    for (size_t i = 0; (of.owner = process_table_owner_at(processes, i)); i++) {
        struct gpu_access_list gpus = {.count = 0};

        if (!is_inspected(&of.owner->owner) || of.owner->owner.kind == WORKLOAD_VM)
            continue;
        count.jobs += workload_is_job(of.owner->owner.kind);
        if (inspect_owner(&of, processes, &gpus) < 0)
            continue;
        count.incomplete += gpus.unknown > 0;
        count.unknown += gpus.unknown;
        if (gpus.count == 0)
            continue;
        count.by_rules += of.is_constrained;
        count.by_environment += !of.is_constrained;
    }
    return count;
}
