#include "identity/cgroup/component.h"

#include "core/macros.h"
#include "core/parse.h"
#include "identity/cgroup_path.h"

enum { SLUID_LEN = 14 };

static bool all(struct span text, bool (*is)(char c))
{
    for (size_t i = 0; i < text.len; i++)
        if (!is(text.data[i]))
            return false;
    return text.len > 0;
}

bool component_is_decimal(struct span text)
{
    return all(text, parse_is_digit);
}

bool component_is_hex(struct span text)
{
    return all(text, parse_is_hex);
}

static bool parse_uid(struct span text, uint32_t *ret_uid)
{
    uint64_t uid;

    if (parse_u64_max(text, UINT32_MAX - 1, &uid) < 0) /* the last one means "none" */
        return false;
    *ret_uid = (uint32_t)uid;
    return true;
}

bool component_copy(struct span text, char *buffer, size_t size)
{
    if (text.len == 0 || text.len >= size || memchr(text.data, '\0', text.len))
        return false;
    memcpy(buffer, text.data, text.len);
    buffer[text.len] = '\0';
    return true;
}

static bool strip_unit_suffix(struct span *name)
{
    static const char *const suffixes[] = {".service", ".scope",  ".slice",    ".socket",
                                           ".mount",   ".swap",   ".timer",    ".target",
                                           ".path",    ".device", ".automount"};

    for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++)
        if (span_strip_suffix(name, suffixes[i]))
            return true;
    return false;
}

struct span component_unescape_unit(struct span component)
{
    struct span name = component;

    if (name.len > 0 && name.data[0] == '_' && strip_unit_suffix(&name))
        span_strip_prefix(&component, "_");
    return component;
}

bool component_is_unit(struct span component)
{
    struct span name = component;

    /* "x@.service" is a template: nothing runs in it. */
    return strip_unit_suffix(&name) && name.len > 0 &&
           !memmem(component.data, component.len, "@.", 2);
}

bool component_is_slice(struct span component)
{
    return span_strip_suffix(&component, ".slice");
}

bool component_is_user_slice(struct span component, uint32_t *ret_uid)
{
    return span_strip_prefix(&component, "user-") && span_strip_suffix(&component, ".slice") &&
           parse_uid(component, ret_uid);
}

bool component_is_user_manager(struct span component, uint32_t *ret_uid)
{
    return span_strip_prefix(&component, "user@") && span_strip_suffix(&component, ".service") &&
           parse_uid(component, ret_uid);
}

bool component_is_session(struct span component)
{
    return span_strip_prefix(&component, "session-") && span_strip_suffix(&component, ".scope") &&
           component.len > 0;
}

bool component_is_slurm_v1(struct span component)
{
    return span_equals(component, "slurm") ||
           (span_strip_prefix(&component, "slurm_") && component.len > 0);
}

bool component_is_slurm_v2(struct span component)
{
    return span_strip_suffix(&component, "slurmstepd.scope") &&
           (component.len == 0 || (span_strip_suffix(&component, "_") && component.len > 0));
}

bool component_is_slurm_uid(struct span component, uint32_t *ret_uid)
{
    return span_strip_prefix(&component, "uid_") && parse_uid(component, ret_uid);
}

/* Crockford's base 32: no I, L, O, U. */
static bool is_base32(char c)
{
    return parse_is_digit(c) ||
           (c >= 'A' && c <= 'Z' && c != 'I' && c != 'L' && c != 'O' && c != 'U');
}

static bool is_sluid(struct span component)
{
    return component.len == SLUID_LEN && span_strip_prefix(&component, "s") &&
           all(component, is_base32);
}

bool component_is_slurm_job(struct span component, struct span *ret_job)
{
    if (!is_sluid(component) &&
        (!span_strip_prefix(&component, "job_") || !component_is_decimal(component)))
        return false;
    *ret_job = component;
    return true;
}

bool component_is_slurm_step(struct span component, struct span *ret_step)
{
    struct span step, rest;

    if (!span_strip_prefix(&component, "step_"))
        return false;
    rest = component;
    step = span_cut(&rest, '+'); /* behind it: the component of a heterogeneous job */
    if (!span_equals(component, "batch") && !span_equals(component, "extern") &&
        !span_equals(component, "interactive") &&
        !(component_is_decimal(step) && (step.len == component.len || component_is_decimal(rest))))
        return false;
    *ret_step = component;
    return true;
}

bool component_is_slurm_task(struct span component, struct span *ret_task)
{
    if (!span_strip_prefix(&component, "task_") ||
        !(span_equals(component, "special") || component_is_decimal(component)))
        return false;
    *ret_task = component;
    return true;
}

static int hex_value(char c)
{
    if (parse_is_digit(c))
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* The byte that "\xHH" at the front stands for, or -1. Not of a NUL, which would cut the name, nor
 * of a slash, which parts a scope from an id: those stay as they are written. */
static int escaped_byte(struct span text)
{
    int high, low;

    if (text.len < 4 || text.data[0] != '\\' || text.data[1] != 'x')
        return -1;
    high = hex_value(text.data[2]);
    low = hex_value(text.data[3]);
    if (high < 0 || low < 0 || high * 16 + low == '\0' || high * 16 + low == '/')
        return -1;
    return high * 16 + low;
}

/* systemd.unit(5), "string escaping for inclusion in unit names". */
static bool copy_unescaped(struct span text, char *name)
{
    size_t len = 0;

    if (!component_copy(text, name, CGROUP_NAME_BYTES))
        return false;
    while (text.len > 0) {
        int byte = escaped_byte(text);
        size_t taken = 1;

        if (byte < 0) {
            name[len++] = text.data[0];
        } else {
            name[len++] = (char)byte;
            taken = strlen("\\xHH");
        }
        text = (struct span){text.data + taken, text.len - taken};
    }
    name[len] = '\0';
    return true;
}

/* "12345" or, of an array, "12345[7]". */
static bool is_job_number(struct span id)
{
    struct span index = id, number = span_cut(&index, '[');

    return component_is_decimal(number) &&
           (number.len == id.len ||
            (span_strip_suffix(&index, "]") && component_is_decimal(index)));
}

bool component_is_lsf_job(struct span component, struct span *ret_job)
{
    struct span job, pid;

    if (!span_strip_prefix(&component, "job."))
        return false;
    job = span_cut(&component, '.');
    pid = span_cut(&component, '.');
    if (!is_job_number(job) || !component_is_decimal(pid) || !component_is_decimal(component))
        return false;
    *ret_job = job;
    return true;
}

bool component_is_pbs_service(struct span component)
{
    return span_strip_suffix(&component, ".service") &&
           (span_equals(component, "pbs_jobs") || span_equals(component, "pbspro") ||
            span_equals(component, "pbs"));
}

static bool is_host_name(char c)
{
    return parse_is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
           c == '-' || c == '_';
}

bool component_is_pbs_job(struct span component, char *job)
{
    struct span server;

    if (!copy_unescaped(component, job))
        return false;
    server = span_of(job);
    return is_job_number(span_cut(&server, '.')) && all(server, is_host_name);
}

/* The running number in front of a domain's name. */
static bool strip_number(struct span *text, const char *behind)
{
    size_t digits = 0;

    while (digits < text->len && parse_is_digit(text->data[digits]))
        digits++;
    *text = (struct span){text->data + digits, text->len - digits};
    return digits > 0 && span_strip_prefix(text, behind);
}

bool component_is_libvirt(struct span component, char *name)
{
    struct span plain = component;

    if (span_strip_prefix(&component, "machine-qemu\\x2d"))
        return span_strip_suffix(&component, ".scope") && strip_number(&component, "\\x2d") &&
               copy_unescaped(component, name);
    return span_strip_prefix(&plain, "qemu-") && span_strip_suffix(&plain, ".libvirt-qemu") &&
           strip_number(&plain, "-") && component_copy(plain, name, CGROUP_NAME_BYTES);
}

bool component_is_proxmox(struct span component, char *name)
{
    return span_strip_suffix(&component, ".scope") && component_is_decimal(component) &&
           component_copy(component, name, CGROUP_NAME_BYTES);
}

bool component_is_nspawn(struct span component, char *name)
{
    return span_strip_prefix(&component, "systemd-nspawn@") &&
           span_strip_suffix(&component, ".service") && copy_unescaped(component, name);
}

bool component_is_machine_scope(struct span component, char *name)
{
    return span_strip_prefix(&component, "machine-") && span_strip_suffix(&component, ".scope") &&
           copy_unescaped(component, name);
}
