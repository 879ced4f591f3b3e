/* sources/trace/reader: whole files of good lines in order, or the number of the line at
 * fault. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/fs.h"
#include "core/gzip.h"
#include "core/macros.h"
#include "gzip_member.h"
#include "sources/trace.h"

#define HEADER TRACE_HEADER "\n"
#define GPU0   "gpu 0 uuid=GPU-0 name=NVIDIA_H200 driver=580 power_limit_mw=700000\n"
#define GPU1   "gpu 1 uuid=GPU-1\n"

/* A file in memory that has a path, as long as it is open. */
struct file {
    int fd;
    char path[32];
};

static struct file make_file(const char *data, size_t len)
{
    struct file file = {.fd = memfd_create("trace", MFD_CLOEXEC)};

    assert_true(file.fd >= 0);
    assert_int_equal(fs_write_all(file.fd, data, len), 0);
    snprintf(file.path, sizeof(file.path), "/proc/self/fd/%d", file.fd);
    return file;
}

/* Reads a trace to its end or to its error. The samples stay in the batch. */
static int read_trace(const char *data, size_t len, struct batch *batch, struct error *err)
{
    struct file file = make_file(data, len);
    struct trace_reader *reader = NULL;
    int r = trace_reader_open(file.path, &reader, err);

    batch_init(batch);
    if (r == 0)
        while ((r = trace_reader_next(reader, batch, err)) > 0)
            ;
    trace_reader_close(reader);
    close(file.fd);
    return r;
}

static void assert_bad(const char *text, unsigned line, const char *why)
{
    struct error err = {""};
    struct batch batch;
    char where[32];
    int r = read_trace(text, strlen(text), &batch, &err);

    snprintf(where, sizeof(where), ", line %u: ", line);
    if (r != -EBADMSG || !strstr(err.text, where) || !strstr(err.text, why) ||
        strncmp(err.text, "trace '/proc/self/fd/", 21) != 0)
        fail_msg("expected%s%s, got %d: %s\n%s", where, why, r, err.text, text);
    batch_done(&batch);
}

static void every_error_names_the_file_and_the_line(void **state)
{
    static const struct {
        const char *text;
        unsigned line;
        const char *why;
    } cases[] = {
        {"", 1, "the file is empty"},
        {"\n", 1, "not a trace: the first line must be 'wattribute-trace 3'"},
        {"wattribute-trace 4\n" GPU0, 1, "a version that this program does not read (1 to 3)"},
        {"wattribute-trace 0\n" GPU0, 1, "a version that this program does not read (1 to 3)"},
        {"wattribute-trace \n" GPU0, 1, "not a trace"},
        {"wattribute-trace 3x\n" GPU0, 1, "not a trace"},
        {"wattribute-trace 1 \n" GPU0, 1, "not a trace"},
        {"Wattribute-trace 1\n" GPU0, 1, "not a trace"},
        {TRACE_HEADER, 1, "the last line is not whole"},
        {HEADER, 2, "the trace has no record"},
        {HEADER "x\n", 2, "expected a time"},
        {HEADER GPU0 "\n", 3, "expected a time"},
        {HEADER GPU0 "1 E 0 1\n2 E 0 x\n", 4, "energy counter"},
        {HEADER GPU0 "1 E 0 1\n1 M 0 skipped\n1 X 0 skipped\n2 E 0 x\n", 6, "energy counter"},
        {HEADER GPU0 "1 G 0 1=nan\n2 G 0 1=x\n", 4, "GPM"},
        {HEADER GPU0 "1 R 0 c 9 1:1\n", 3, "do not fit"},
        {HEADER GPU0 "1 E 0 1\n2 E 0 2", 4, "the last line is not whole (file cut short?)"},
        {HEADER GPU0 "1", 3, "the last line is not whole"},
        {HEADER GPU0 "1 E 0 1\n2 N 0 7 0 - - 0 x=0\n", 4, "exact program key: 0 is no key"},
        {HEADER GPU0 "1 N 0 7 0 - - 0 x=1 c=0\n", 3, "coarse program key: 0 is no key"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_bad(cases[i].text, cases[i].line, cases[i].why);
}

static void lines_that_end_as_on_windows_are_refused(void **state)
{
    (void)state;
    assert_bad(TRACE_HEADER "\r\ngpu 0 uuid=x\r\n1 E 0 1\r\n", 1, "not a trace");
    assert_bad(HEADER GPU0 "1 E 0 1\r\n", 3, "energy counter");
    assert_bad(HEADER GPU0 "1 R 0 c 1 7:1\r\n", 3, "list entry 1");
}

static void time_may_not_go_back_within_one_gpu_and_kind(void **state)
{
    /* Two records of each stream, the second one microsecond too early. */
    static const char *const streams[] = {
        "E 0 1",   "P 0 1 1 1", "U 0 1 1 1 1", "S 0 1 1 1 1 1 1", "N 0 1 0 - -",
        "R 0 c 0", "R 0 m 0",   "R 0 g 0",     "G 0 1=2",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(streams); i++) {
        char text[256];
        struct error err = {""};
        struct batch batch;

        snprintf(text, sizeof(text), HEADER GPU0 "5 %s\n4 %s\n", streams[i], streams[i]);
        assert_bad(text, 4, "out of order");
        snprintf(text, sizeof(text), HEADER GPU0 "5 %s\n5 %s\n6 %s\n", streams[i], streams[i],
                 streams[i]);
        assert_int_equal(read_trace(text, strlen(text), &batch, &err), 0);
        assert_int_equal(batch.count, 4);
        batch_done(&batch);
    }
}

static void time_may_go_back_between_kinds_and_between_gpus(void **state)
{
    static const char text[] = HEADER GPU0 GPU1 "9 E 0 1\n8 P 0 1 1 1\n7 U 0 1 1 1 1\n"
                                                "6 S 0 1 1 1 1 1 1\n5 N 0 1 0 - -\n4 R 0 c 0\n"
                                                "3 R 0 m 0\n2 R 0 g 0\n1 E 1 1\n";
    struct error err = {""};
    struct batch batch;

    (void)state;
    assert_int_equal(read_trace(text, strlen(text), &batch, &err), 0);
    assert_int_equal(batch.count, 11);
    assert_int_equal(batch.samples[10].gpu, 1);
    assert_int_equal(batch.samples[10].t_us, 1);
    batch_done(&batch);
    /* Each remembers its own time, though others came between. */
    assert_bad(HEADER GPU0 GPU1 "9 E 0 1\n1 E 1 1\n8 E 0 2\n", 6, "out of order");
    assert_bad(HEADER GPU0 "9 E 0 1\n9 P 0 1 1 1\n9 R 0 c 0\n1 R 0 g 0\n8 E 0 2\n", 7,
               "out of order");
    assert_bad(HEADER GPU0 "9 R 0 c 0\n1 R 0 g 0\n8 R 0 c 0\n", 5, "out of order");
}

static void a_gpu_is_described_once_and_before_it_is_used(void **state)
{
    (void)state;
    assert_bad(HEADER "1 E 0 1\n" GPU0, 2, "no 'gpu' line describes this gpu");
    assert_bad(HEADER GPU0 "1 E 1 1\n" GPU1, 3, "no 'gpu' line describes this gpu");
    assert_bad(HEADER GPU0 "1 E 63 1\n", 3, "no 'gpu' line describes this gpu");
    assert_bad(HEADER GPU0 "1 E 0 1\n" GPU0, 4, "this gpu was described before");
    assert_bad(HEADER GPU0 "gpu 0 uuid=another\n", 3, "this gpu was described before");
}

static void a_gpu_may_be_described_where_it_is_first_used(void **state)
{
    static const char text[] = HEADER GPU0 "1 E 0 1\n" GPU1 "1 E 1 1\ngpu 63 uuid=z\n2 E 63 1\n";
    static const uint32_t gpus[] = {0, 0, 1, 1, 63, 63};
    struct error err = {""};
    struct batch batch;

    (void)state;
    assert_int_equal(read_trace(text, strlen(text), &batch, &err), 0);
    assert_int_equal(batch.count, ARRAY_SIZE(gpus));
    for (size_t i = 0; i < ARRAY_SIZE(gpus); i++)
        assert_int_equal(batch.samples[i].gpu, gpus[i]);
    batch_done(&batch);
}

static void a_trace_of_skipped_records_only_is_good_and_empty(void **state)
{
    static const char text[] = HEADER "1 M 0 1 2 3\n2 X 0 1=nan\n";
    struct error err = {""};
    struct batch batch;

    (void)state;
    assert_int_equal(read_trace(text, strlen(text), &batch, &err), 0);
    assert_int_equal(batch.count, 0);
    batch_done(&batch);
}

static void a_line_may_be_as_long_as_the_limit_and_no_longer(void **state)
{
    enum { LIMIT = 256 * 1024 };
    static char text[sizeof(HEADER) + LIMIT + 64];

    (void)state;
    /* A skipped record, its newline the last byte of the limit; then one byte more. */
    for (size_t len = LIMIT; len <= LIMIT + 1; len++) {
        struct error err = {""};
        struct batch batch;
        char *line = stpcpy(text, HEADER);
        int r;

        memset(line, 'x', len);
        memcpy(line, "1 M ", 4);
        line[len - 1] = '\n';
        strcpy(line + len, "2 M 0\n");
        r = read_trace(text, strlen(text), &batch, &err);
        assert_int_equal(r, len == LIMIT ? 0 : -EBADMSG);
        if (r < 0)
            assert_non_null(strstr(err.text, "line 2: the line is longer than 256 KiB"));
        batch_done(&batch);
    }
}

static void what_is_not_before_the_time_comes_again(void **state)
{
    static const char text[] = HEADER GPU0 "5 E 0 1\n5 M 0 x\n6 R 0 c 1 7:8\n7 E 0 2\n8 E 0 x\n";
    struct file file = make_file(text, strlen(text));
    struct trace_reader *reader = NULL;
    struct error err = {""};
    struct batch batch;

    (void)state;
    batch_init(&batch);
    assert_int_equal(trace_reader_open(file.path, &reader, &err), 0);
    assert_int_equal(trace_reader_next(reader, &batch, &err), 1);
    for (uint64_t t_us = 5; t_us <= 7; t_us++) {
        for (int again = 0; again < 3; again++)
            assert_int_equal(trace_reader_next_before(reader, t_us, &batch, &err), -EAGAIN);
        assert_int_equal(batch.count, t_us - 4);
        assert_int_equal(trace_reader_next_before(reader, t_us + 1, &batch, &err), 1);
        assert_int_equal(batch.samples[batch.count - 1].t_us, t_us);
    }
    assert_int_equal(batch.samples[2].list.entries[0].pid, 7);
    assert_int_equal(batch.samples[2].list.entries[0].memory_bytes, 8);
    /* Lines were not counted twice. */
    assert_int_equal(trace_reader_next(reader, &batch, &err), -EBADMSG);
    assert_non_null(strstr(err.text, "line 7:"));
    trace_reader_close(reader);
    batch_done(&batch);
    close(file.fd);
}

static void a_rewind_forgets_times_and_gpus_and_starts_behind_the_header(void **state)
{
    static const char text[] = HEADER GPU0 "5 E 0 1\n6 E 0 2\n7 E 0 3\n";
    struct file file = make_file(text, strlen(text));
    struct trace_reader *reader = NULL;
    struct error err = {""};

    (void)state;
    assert_int_equal(trace_reader_open(file.path, &reader, &err), 0);
    /* From within, from the end, and from the start. */
    for (size_t i = 0; i < 4; i++) {
        static const size_t most[] = {2, 4, 0, 4};
        struct batch batch;

        batch_init(&batch);
        for (size_t n = 0; n < most[i]; n++)
            assert_int_equal(trace_reader_next(reader, &batch, &err), 1);
        if (most[i] == 4) {
            assert_int_equal(trace_reader_next(reader, &batch, &err), 0);
            assert_int_equal(trace_reader_next(reader, &batch, &err), 0); /* stays ended */
        }
        assert_int_equal(batch.count, most[i]);
        for (size_t n = 0; n < batch.count; n++)
            assert_int_equal(batch.samples[n].t_us, n == 0 ? 0 : 4 + n);
        assert_int_equal(trace_reader_rewind(reader, &err), 0);
        batch_done(&batch);
    }
    trace_reader_close(reader);
    close(file.fd);
}

static void a_compressed_trace_reads_as_the_plain_one_does(void **state)
{
    static const char text[] = HEADER GPU0 "5 E 0 1\n6 E 0 2\n";
    struct error err = {""};
    struct buffer packed;
    struct batch batch;

    (void)state;
    buffer_init(&packed, 1 << 20);
    assert_int_equal(gzip_compress(text, strlen(text), &packed), 0);
    assert_int_equal(read_trace(packed.data, packed.len, &batch, &err), 0);
    assert_int_equal(batch.count, 3);
    assert_int_equal(batch.samples[2].counter_uj, 2000);
    batch_done(&batch);
    /* Cut within the trailer: all lines are there and whole, and still the file is not. */
    assert_int_equal(read_trace(packed.data, packed.len - 1, &batch, &err), -EBADMSG);
    assert_non_null(strstr(err.text, "line 5: gzip data end too early"));
    assert_int_equal(batch.count, 3);
    batch_done(&batch);
    buffer_done(&packed);
}

/* Longer than the reader's buffer, so that lines straddle every refill. */
static void a_trace_of_many_lines_loses_none(void **state)
{
    enum { RECORDS = 200000 };
    struct trace_reader *reader = NULL;
    struct error err = {""};
    struct buffer text;
    struct batch batch;
    struct file file;

    (void)state;
    buffer_init(&text, 64 << 20);
    buffer_str(&text, HEADER GPU0);
    for (uint64_t i = 0; i < RECORDS; i++) {
        buffer_u64(&text, 1000 + i);
        buffer_str(&text, " E 0 ");
        buffer_u64(&text, i * i % 999983);
        buffer_char(&text, '\n');
    }
    assert_false(buffer_failed(&text));
    file = make_file(text.data, text.len);
    buffer_done(&text);
    batch_init(&batch);
    assert_int_equal(trace_reader_open(file.path, &reader, &err), 0);
    assert_int_equal(trace_reader_next(reader, &batch, &err), 1);
    for (uint64_t i = 0; i < RECORDS; i++) {
        batch_reset(&batch);
        if (i % 1000 == 0)
            assert_int_equal(trace_reader_next_before(reader, 1000 + i, &batch, &err), -EAGAIN);
        if (trace_reader_next(reader, &batch, &err) != 1 || batch.samples[0].t_us != 1000 + i ||
            batch.samples[0].counter_uj != i * i % 999983 * 1000)
            fail_msg("record %ju: %s", (uintmax_t)i, err.text);
    }
    assert_int_equal(trace_reader_next(reader, &batch, &err), 0);
    trace_reader_close(reader);
    batch_done(&batch);
    close(file.fd);
}

static void what_cannot_be_opened_is_named_with_the_reason(void **state)
{
    static const struct {
        const char *path;
        int r;
        const char *text;
    } cases[] = {
        {"/nowhere/x.trace", -ENOENT,
         "cannot open trace '/nowhere/x.trace': No such file or directory; specify a "
         "recorded trace"},
        {"/", -EIO, "trace '/', line 1: cannot read: Is a directory"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct trace_reader *reader = NULL;
        struct error err = {""};

        assert_int_equal(trace_reader_open(cases[i].path, &reader, &err), cases[i].r);
        assert_string_equal(err.text, cases[i].text);
        assert_null(reader);
    }
    trace_reader_close(NULL);
}

/* Opening a pipe waits for a writer. */
static void *write_trace(void *path)
{
    static const char text[] = HEADER GPU0 "5 E 0 1\n";
    int fd = open(path, O_WRONLY | O_CLOEXEC);

    if (fd >= 0)
        (void)fs_write_all(fd, text, strlen(text));
    close(fd);
    return NULL;
}

static void a_pipe_can_be_read_once(void **state)
{
    char path[] = "/tmp/test_trace_reader.XXXXXX/pipe", *name = strrchr(path, '/');
    struct trace_reader *reader = NULL;
    struct error err = {""};
    struct batch batch;
    pthread_t writer;

    (void)state;
    *name = '\0';
    assert_non_null(mkdtemp(path));
    *name = '/';
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(pthread_create(&writer, NULL, write_trace, path), 0);
    assert_int_equal(trace_reader_open(path, &reader, &err), 0);
    batch_init(&batch);
    while (trace_reader_next(reader, &batch, &err) > 0)
        ;
    assert_int_equal(batch.count, 2);
    assert_int_equal(trace_reader_rewind(reader, &err), -ESPIPE);
    assert_non_null(strstr(err.text, "not a regular file"));
    pthread_join(writer, NULL);
    trace_reader_close(reader);
    batch_done(&batch);
    unlink(path);
    *name = '\0';
    rmdir(path);
}

static void a_gpu_line_that_is_before_no_time_comes_again(void **state)
{
    static const char text[] = HEADER GPU0 "5 E 0 1\n";
    struct file file = make_file(text, strlen(text));
    struct trace_reader *reader = NULL;
    struct error err = {""};
    struct batch batch;

    (void)state;
    batch_init(&batch);
    assert_int_equal(trace_reader_open(file.path, &reader, &err), 0);
    assert_int_equal(trace_reader_next_before(reader, 0, &batch, &err), -EAGAIN);
    assert_int_equal(trace_reader_next(reader, &batch, &err), 1);
    assert_int_equal(batch.samples[0].kind, SAMPLE_DEVICE);
    trace_reader_close(reader);
    batch_done(&batch);
    close(file.fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_error_names_the_file_and_the_line),
        cmocka_unit_test(lines_that_end_as_on_windows_are_refused),
        cmocka_unit_test(time_may_not_go_back_within_one_gpu_and_kind),
        cmocka_unit_test(time_may_go_back_between_kinds_and_between_gpus),
        cmocka_unit_test(a_gpu_is_described_once_and_before_it_is_used),
        cmocka_unit_test(a_gpu_may_be_described_where_it_is_first_used),
        cmocka_unit_test(a_trace_of_skipped_records_only_is_good_and_empty),
        cmocka_unit_test(a_line_may_be_as_long_as_the_limit_and_no_longer),
        cmocka_unit_test(what_is_not_before_the_time_comes_again),
        cmocka_unit_test(a_rewind_forgets_times_and_gpus_and_starts_behind_the_header),
        cmocka_unit_test(a_compressed_trace_reads_as_the_plain_one_does),
        cmocka_unit_test(a_trace_of_many_lines_loses_none),
        cmocka_unit_test(what_cannot_be_opened_is_named_with_the_reason),
        cmocka_unit_test(a_pipe_can_be_read_once),
        cmocka_unit_test(a_gpu_line_that_is_before_no_time_comes_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
