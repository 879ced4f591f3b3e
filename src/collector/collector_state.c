/* What survives a restart of the collector: the state, read at the start and written from then on.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/collector_private.h"
#include "core/fs.h"
#include "core/log.h"
#include "host/proc.h"

/* How often the state is written so that it survives a power failure. */
static const uint64_t SAVE_US = 5 * USEC_PER_SEC;

/* A page waits for its state no longer than this at once, and no page does once the disk has been
 * late for so long: then scrapes matter more than what a crash would undo. */
static const uint64_t WAIT_US = 500000, LATE_US = 10 * USEC_PER_SEC;

/* What comes before the pipeline in the file. */
struct state_header {
    char boot_id[COLLECTOR_BOOT_ID_BYTES]; /* of the kernel: counters of devices start over with it
                                            */
    uint64_t real_us, monotonic_us;
    uint64_t boot_us; /* see struct host */
    struct program_secret secret;
};

static void code_header(struct state_header *header, struct coder *coder)
{
    code_array_text(coder, header->boot_id, sizeof(header->boot_id));
    header->real_us = code_u64(coder, header->real_us, INT64_MAX);
    header->monotonic_us = code_u64(coder, header->monotonic_us, INT64_MAX);
    header->boot_us = code_u64(coder, header->boot_us, UINT64_MAX);
    for (size_t i = 0; i < ARRAY_SIZE(header->secret.words); i++)
        header->secret.words[i] = code_u64(coder, header->secret.words[i], UINT64_MAX);
}

/* "" if it is unknown: then every start counts as that of the machine. */
static void read_boot_id(struct collector *collector)
{
    char *boot_id = collector->state.boot_id;
    size_t len;

    if (fs_read_at(collector->host->procfs_fd, "sys/kernel/random/boot_id", boot_id,
                   COLLECTOR_BOOT_ID_BYTES, &len) < 0)
        boot_id[0] = '\0';
    boot_id[strcspn(boot_id, "\n")] = '\0';
}

static void describe_run(const struct collector *collector, struct state_header *ret_header)
{
    *ret_header = (struct state_header){
        .real_us = collector_real_us(collector),
        .monotonic_us = collector_now_us(collector),
        .boot_us = collector->host->boot_us,
        .secret = collector->host->program_secret,
    };
    memcpy(ret_header->boot_id, collector->state.boot_id, sizeof(ret_header->boot_id));
}

/* --state-file, or the directory that systemd's StateDirectory= or a manifest provides. /dev/null
 * is a file that keeps nothing. */
static bool find_path(struct collector *collector)
{
    const char *given = collector->options->state_path, *dir = secure_getenv("STATE_DIRECTORY");
    char *path = collector->state.path;

    if (given && strcmp(given, "/dev/null") == 0)
        given = "";
    if (given)
        snprintf(path, PATH_MAX, "%s", given);
    else if (dir && strcspn(dir, ":") > 0) /* there may be several */
        snprintf(path, PATH_MAX, "%.*s/state", (int)strcspn(dir, ":"), dir);
    return path[0] != '\0';
}

static void drop_state(struct collector *collector, const char *why)
{
    log_warn(state_file_set_aside(collector->state.file) == 0
                 ? "the state file is unusable and was renamed to .bad: counters start at 0, and "
                   "what was learned is lost"
                 : "the state file is unusable and will be replaced: counters start at 0, and "
                   "what was learned is lost",
             "file", collector->state.path, "why", why);
    free(collector->state.data);
    collector->state.data = NULL;
}

/* What the sources and the emissions need of the previous run. */
static void resume_header(struct collector *collector)
{
    struct pipeline_resumption *resumption = &collector->state.resumption;
    struct coder coder = {.in = collector->state.rest};
    struct state_header now, before = {0};
    uint64_t elapsed_us;

    describe_run(collector, &now);
    code_header(&before, &coder);
    elapsed_us = now.real_us - MIN(now.real_us, before.real_us);
    emissions_code_state(&collector->emissions, elapsed_us, &coder);
    collector->state.rest = coder.in;
    if (coder.in.is_broken) {
        drop_state(collector, "its beginning makes no sense");
        return;
    }
    resumption->is_same_boot = now.boot_id[0] && strcmp(now.boot_id, before.boot_id) == 0;
    resumption->now_us = now.real_us;
    resumption->clock_step_us =
        (int64_t)(now.real_us - before.real_us) - (int64_t)(now.monotonic_us - before.monotonic_us);
    collector->host->program_secret = before.secret;
    /* Start times must be those of the previous run, or its processes would count as others. */
    if (resumption->is_same_boot && before.boot_us > 0)
        collector->host->boot_us = before.boot_us;
    explicit_bzero(&before, sizeof(before));
    explicit_bzero(&now, sizeof(now));
}

/* It stays as it is: what cannot be read may be somebody's books. */
static void continue_without(struct collector *collector, int error, const char *text)
{
    log_warn("continuing without the state file, which is neither read nor written: counters start "
             "at 0, now and at each restart",
             "error", text);
    (void)state_file_close(TAKE_PTR(collector->state.file), 0);
    collector->state.save_us = UINT64_MAX;
    collector->state.result = error;
}

int collector_open_state(struct collector *collector, struct error *err)
{
    size_t len;
    int r;

    collector->state.save_us = UINT64_MAX;
    collector->state.cap_bytes = STATE_FILE_CAP_BYTES;
    collector->host->boot_us = proc_read_boot_us(collector->host);
    read_boot_id(collector);
    if (collector->options->replay_path || !find_path(collector))
        return 0;
    r = state_file_open(collector->state.path, &collector->state.file, err);
    if (r == -EBUSY || r == -ENOMEM || r == -EEXIST)
        return r;
    if (r < 0) {
        continue_without(collector, r, err->text);
        return 0;
    }
    collector->state.save_us = collector_now_us(collector) + SAVE_US;
    r = state_file_read(collector->state.file, &collector->state.data, &len, err);
    if (r == -ENOMEM || r == -EEXIST)
        return r;
    if (r == -EBADMSG)
        drop_state(collector, err->text);
    else if (r < 0 && r != -ENOENT)
        continue_without(collector, r, err->text);
    if (r < 0)
        return 0;
    collector->state.rest = (struct unpack){.rest = {collector->state.data, len}};
    resume_header(collector);
    return 0;
}

int collector_resume_books(struct collector *collector, const struct pipeline_options *options)
{
    const struct pipeline_resumption *resumption = &collector->state.resumption;
    int r = pipeline_new(options, &collector->pipeline);

    if (!collector->options->replay_path && collector->state.path[0] == '\0')
        log_info("no state file: a restart sets all counters to 0 and forgets what was learned; "
                 "--state-file keeps them");
    if (r < 0 || !collector->state.data)
        return r;
    if (pipeline_unpack_state(collector->pipeline, &collector->state.rest, resumption) == 0) {
        collector->gaps_reported = pipeline_unknown_gaps(collector->pipeline);
        log_info(resumption->is_same_boot
                     ? "continuing the books of the previous run"
                     : "the machine was rebooted: counters start at 0; what was learned is kept",
                 "file", collector->state.path);
    } else {
        drop_state(collector, "its books do not balance");
        pipeline_free(TAKE_PTR(collector->pipeline));
        r = pipeline_new(options, &collector->pipeline);
    }
    free(TAKE_PTR(collector->state.data));
    return r;
}

static const char *describe_result(const struct collector *collector, int result)
{
    if (result == -ETIMEDOUT)
        return "the disk does not respond";
    if (collector->state.packed == -EFBIG) /* not a limit of the file system */
        return "it would be larger than 256 MiB; lower --max-workloads or --max-processes";
    return state_file_strerror(result);
}

/* Logs once per change. */
static void note_result(struct collector *collector, int result, bool is_unsynced)
{
    if (result == collector->state.result && is_unsynced == collector->state.is_unsynced)
        return;
    if (is_unsynced)
        log_error(
            "the state file cannot be synced to the disk: a power failure would lose what was "
            "learned",
            "file", collector->state.path, "error", describe_result(collector, result));
    else if (result < 0)
        log_error("the state file cannot be written: after a restart, counters would be lower than "
                  "already served",
                  "file", collector->state.path, "error", describe_result(collector, result));
    else
        log_info("the state is written again", "file", collector->state.path);
    collector->state.result = result;
    collector->state.is_unsynced = is_unsynced;
}

/* Hands the state of now to the writer. False: it cannot be packed, and there is nothing to wait
 * for. */
static bool save(struct collector *collector, bool is_durable)
{
    struct coder coder;
    struct state_header header;
    struct buffer contents;

    describe_run(collector, &header);
    buffer_init(&contents, collector->state.cap_bytes);
    coder = (struct coder){.out = &contents};
    code_header(&header, &coder);
    emissions_code_state(&collector->emissions, 0, &coder);
    pipeline_pack_state(collector->pipeline, &contents);
    explicit_bzero(&header, sizeof(header));
    collector->state.packed = !buffer_failed(&contents) ? 0 : contents.is_full ? -EFBIG : -ENOMEM;
    if (collector->state.packed < 0) {
        note_result(collector, collector->state.packed, false);
        buffer_wipe(&contents);
        return false;
    }
    collector->state.number = state_file_write(collector->state.file, &contents, is_durable);
    return true;
}

/* Is the last write done? Its success counts only if no later state failed to be packed. */
static bool wait_for_write(struct collector *collector, uint64_t timeout_us)
{
    uint64_t now_us = collector_now_us(collector);
    struct state_file_result result;

    if (state_file_wait(collector->state.file, collector->state.number, now_us + timeout_us,
                        &result)) {
        collector->state.late_since_us = 0;
        if (collector->state.packed < 0)
            note_result(collector, collector->state.packed, false);
        else if (result.write < 0)
            note_result(collector, result.write, false);
        else
            note_result(collector, result.sync, result.sync < 0);
        return true;
    }
    if (collector->state.late_since_us == 0)
        collector->state.late_since_us = now_us;
    if (now_us - collector->state.late_since_us >= LATE_US)
        note_result(collector, -ETIMEDOUT, false);
    return false;
}

/* While a write is late, another one would only wait behind it. */
static bool can_save(struct collector *collector)
{
    return collector->state.late_since_us == 0 || wait_for_write(collector, 0);
}

bool collector_save_page(struct collector *collector)
{
    if (!collector->state.file)
        return true;
    if (can_save(collector)) {
        if (!save(collector, false) || wait_for_write(collector, WAIT_US))
            return true;
    }
    return collector->state.result == -ETIMEDOUT;
}

void collector_save_due(struct collector *collector)
{
    (void)wait_for_write(collector, 0); /* for its result */
    if (can_save(collector))
        (void)save(collector, true);
    collector->state.save_us = collector_now_us(collector) + SAVE_US;
}

void collector_save_last(struct collector *collector)
{
    if (!collector->state.file)
        return;
    /* The next run needs no disk for it, and a busy one would delay the end. */
    if (save(collector, false))
        (void)wait_for_write(collector, COLLECTOR_STOP_STATE_US);
}
