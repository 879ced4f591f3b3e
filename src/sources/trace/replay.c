#include "sources/source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/fs.h"
#include "core/macros.h"
#include "sources/trace.h"

/* The pause between two rounds: one tick of the energy counter. */
static const uint64_t SEAM_US = 100000;

/* What a round does to a GPU's counter. */
struct round_counter {
    bool seen;
    uint64_t first_uj, last_uj;
    uint64_t offset_uj; /* added in this round, so that the counter goes on where it was */
};

struct replay {
    struct trace_reader *reader;
    const struct clock *clock;
    uint64_t began_real_us, began_mono_us;
    bool timed;                 /* the trace has a record with a time */
    uint64_t first_us, last_us; /* the first and the last of them */
    uint64_t shift_us; /* added to the trace's times in this round; may wrap, as intended */
    struct round_counter counters[SAMPLE_GPU_MAX];
    bool described;     /* the gpu lines were passed on, in the first round */
    struct batch names; /* of the whole trace, to be passed on before all else */
};

/* Adds a copy of a sample of names. */
static int add_names(struct batch *batch, const struct sample *sample)
{
    struct sample copy = *sample;

    copy.names = sample_names_copy(&batch->arena, sample->names);
    return copy.names ? batch_add(batch, &copy) : -ENOMEM;
}

/* Reads the whole trace once: a bad line is found at the start, not an hour later, and names are
 * known from the start. */
static int survey(struct replay *replay, const char *path, struct error *err)
{
    struct batch batch;
    int r;

    batch_init(&batch);
    while ((r = trace_reader_next(replay->reader, &batch, err)) > 0) {
        const struct sample *sample = &batch.samples[0];
        struct round_counter *counter = &replay->counters[sample->gpu];

        if (sample->kind == SAMPLE_NAMES) {
            r = add_names(&replay->names, sample);
            if (r < 0) {
                error_set(err, r, "trace '%s' holds more names than there is room for", path);
                break;
            }
        } else if (sample->kind != SAMPLE_DEVICE) {
            replay->first_us = replay->timed ? MIN(replay->first_us, sample->t_us) : sample->t_us;
            replay->timed = true;
            replay->last_us = MAX(replay->last_us, sample->t_us);
        }
        if (sample->kind == SAMPLE_ENERGY || sample->kind == SAMPLE_INTEGRAL) {
            if (!counter->seen)
                counter->first_uj = sample->counter_uj;
            counter->seen = true;
            counter->last_uj = sample->counter_uj;
        }
        batch_reset(&batch);
    }
    batch_done(&batch);
    if (r == 0 && !replay->timed)
        r = error_set(err, -EBADMSG, "trace '%s' holds no record that can be played", path);
    return r < 0 ? r : trace_reader_rewind(replay->reader, err);
}

static void replay_close(void *state)
{
    struct replay *replay = state;

    if (!replay)
        return;
    trace_reader_close(replay->reader);
    batch_done(&replay->names);
    free(replay);
}

/* A trace that is read more than once must be a regular file. Files of the kernel look like one,
 * but have no size, and some block. What cannot be opened is reported by the reader. */
static int check_file(const char *path, struct error *err)
{
    _cleanup_close_ int fd = fs_open_regular(path);
    struct stat st;
    char byte;

    if (fd == -EISDIR)
        return error_set(err, fd, "trace '%s' is a directory; specify a file", path);
    if (fd == -ENXIO ||
        (fd >= 0 && fstat(fd, &st) == 0 && st.st_size == 0 && read(fd, &byte, 1) != 0))
        return error_set(
            err, -ENXIO,
            "trace '%s' is not a regular file: it is played in a loop; 'wattribute replay' "
            "reads pipes",
            path);
    return 0;
}

static int replay_open(const struct source_context *context, void **ret_state, struct error *err)
{
    struct replay *replay;
    int r;

    if (!context->replay_path)
        return -ENODEV;
    r = check_file(context->replay_path, err);
    if (r < 0)
        return r;
    replay = calloc(1, sizeof(*replay));
    if (!replay)
        return error_set(err, -ENOMEM, "out of memory");
    replay->clock = context->clock;
    batch_init(&replay->names);
    r = trace_reader_open(context->replay_path, &replay->reader, err);
    if (r == 0)
        r = survey(replay, context->replay_path, err);
    if (r < 0) {
        replay_close(replay);
        return r;
    }
    replay->began_real_us = replay->clock->realtime_us(replay->clock);
    replay->began_mono_us = replay->clock->monotonic_us(replay->clock);
    replay->shift_us = replay->began_real_us - replay->first_us;
    *ret_state = replay;
    return 0;
}

static int next_round(struct replay *replay, struct error *err)
{
    replay->shift_us += replay->last_us - replay->first_us + SEAM_US;
    for (size_t gpu = 0; gpu < SAMPLE_GPU_MAX; gpu++) {
        struct round_counter *counter = &replay->counters[gpu];

        /* A trace that itself holds a counter reset is left as it is: the seam is one more reset.
         */
        if (counter->last_uj > counter->first_uj)
            counter->offset_uj += counter->last_uj - counter->first_uj;
    }
    return trace_reader_rewind(replay->reader, err);
}

/* Moves a sample of the trace into this round's time and counter. */
static void shift_sample(const struct replay *replay, struct sample *sample)
{
    sample->t_us += replay->shift_us;
    if (sample->kind == SAMPLE_ENERGY || sample->kind == SAMPLE_INTEGRAL)
        sample->counter_uj += replay->counters[sample->gpu].offset_uj;
    else if (sample->kind == SAMPLE_LABEL)
        sample->label.at_us += replay->shift_us;
    else if (sample->kind == SAMPLE_VGPU_USE)
        sample->vgpu_use.at_us += replay->shift_us;
    else if (sample->kind == SAMPLE_PROCESS && sample->process.start_us > 0)
        sample->process.start_us += replay->shift_us;
}

/* Once: names do not change from round to round. */
static int pass_names_on(struct replay *replay, struct batch *batch)
{
    int r = 0;

    for (size_t i = 0; i < replay->names.count && r == 0; i++) {
        r = add_names(batch, &replay->names.samples[i]);
        if (r == 0)
            batch->samples[batch->count - 1].t_us += replay->shift_us;
    }
    batch_done(&replay->names);
    return r;
}

static int replay_read(void *state, struct batch *batch, struct error *err)
{
    struct replay *replay = state;
    /* Paced by the monotonic clock: a step of the wall clock must not play a year at once. */
    uint64_t now_us =
        replay->began_real_us + replay->clock->monotonic_us(replay->clock) - replay->began_mono_us;
    int r = pass_names_on(replay, batch);

    if (r < 0)
        return error_set(err, r, "cannot pass on the names of the trace: %s", strerror(-r));
    for (;;) {
        uint64_t at_us = now_us - replay->shift_us; /* in the trace's time */
        bool has_begun = (int64_t)at_us >= (int64_t)replay->first_us;
        struct sample *sample;

        r = trace_reader_next_before(replay->reader, has_begun ? at_us + 1 : 0, batch, err);
        if (r == -EAGAIN)
            return 0;
        if (r == 0) {
            replay->described = true;
            r = next_round(replay, err);
            if (r == 0)
                continue;
        }
        if (r < 0)
            return r;
        sample = &batch->samples[batch->count - 1];
        if ((sample->kind == SAMPLE_DEVICE && replay->described) || sample->kind == SAMPLE_NAMES)
            batch->count--;
        else
            shift_sample(replay, sample);
    }
}

const struct source_ops replay_source = {
    .name = "replay",
    .open = replay_open,
    .read = replay_read,
    .close = replay_close,
};
