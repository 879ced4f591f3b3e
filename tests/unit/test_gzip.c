/* core/gzip: what was packed comes back, and what is broken, cut or a bomb is refused. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/fs.h"
#include "core/gzip.h"
#include "core/macros.h"
#include "gzip_member.h"

enum { CAP_BYTES = 64 << 20, TEXT_BYTES = 300000 };

/* Text that is worth compressing but not trivial: as wide as a trace's numbers. */
static struct buffer make_text(size_t len)
{
    struct buffer text;
    uint64_t number = 1794725358284932;

    buffer_init(&text, CAP_BYTES);
    while (text.len < len) {
        buffer_u64(&text, number += 100000 + number % 97);
        buffer_str(&text, " E 0 15503172\n");
    }
    text.len = len;
    return text;
}

static struct gzip_reader *open_bytes(const char *data, size_t len)
{
    struct gzip_reader *reader = NULL;
    int fd = memfd_create("gzip", MFD_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_equal(fs_write_all(fd, data, len), 0);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    assert_int_equal(gzip_reader_open(fd, &reader), 0);
    return reader;
}

/* Reads to the end or to an error, `step` bytes at a time, at most `most` bytes. */
static int read_all(struct gzip_reader *reader, size_t step, size_t most, struct buffer *out,
                    struct error *err)
{
    static char block[1 << 20];

    while (out->len < most) {
        size_t len = SIZE_MAX;
        int r = gzip_reader_read(reader, block, MIN(step, sizeof(block)), &len, err);

        if (r < 0) {
            assert_int_equal(len, SIZE_MAX);
            return r;
        }
        if (len == 0)
            return 0;
        assert_true(len <= step);
        buffer_bytes(out, block, len);
    }
    return 0;
}

static void assert_same(const struct buffer *a, const struct buffer *b)
{
    assert_false(buffer_failed(a));
    assert_int_equal(a->len, b->len);
    assert_memory_equal(a->data, b->data, b->len);
}

static void what_was_compressed_is_read_back(void **state)
{
    static const size_t sizes[] = {1, 100, 16384, TEXT_BYTES};
    static const size_t steps[] = {1, 4096, 1 << 20};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
        for (size_t s = 0; s < ARRAY_SIZE(steps); s++) {
            struct buffer text = make_text(sizes[i]), packed, back;
            struct gzip_reader *reader;

            buffer_init(&packed, CAP_BYTES);
            buffer_init(&back, CAP_BYTES);
            assert_int_equal(gzip_compress(text.data, text.len, &packed), 0);
            assert_memory_equal(packed.data, "\x1f\x8b\x08", 3);
            assert_true(text.len < 1000 || packed.len < text.len / 2);
            reader = open_bytes(packed.data, packed.len);
            assert_int_equal(read_all(reader, steps[s], CAP_BYTES, &back, NULL), 0);
            assert_same(&back, &text);
            gzip_reader_close(reader);
            buffer_done(&back);
            buffer_done(&packed);
            buffer_done(&text);
        }
}

static void nothing_compresses_to_a_member_of_nothing(void **state)
{
    struct buffer packed, back;
    struct gzip_reader *reader;

    (void)state;
    buffer_init(&packed, CAP_BYTES);
    buffer_init(&back, CAP_BYTES);
    assert_int_equal(gzip_compress("", 0, &packed), 0);
    assert_true(packed.len >= 18); /* RFC 1952: header and trailer alone */
    reader = open_bytes(packed.data, packed.len);
    assert_int_equal(read_all(reader, 100, CAP_BYTES, &back, NULL), 0);
    assert_int_equal(back.len, 0);
    gzip_reader_close(reader);
    buffer_done(&packed);
    buffer_done(&back);
}

static void members_in_a_row_are_one_text(void **state)
{
    struct buffer packed, back;
    struct gzip_reader *reader;

    (void)state;
    buffer_init(&packed, CAP_BYTES);
    buffer_init(&back, CAP_BYTES);
    assert_int_equal(gzip_compress("one ", 4, &packed), 0);
    assert_int_equal(gzip_compress("two", 3, &packed), 0);
    reader = open_bytes(packed.data, packed.len);
    assert_int_equal(read_all(reader, 100, CAP_BYTES, &back, NULL), 0);
    assert_int_equal(back.len, 7);
    assert_memory_equal(back.data, "one two", 7);
    gzip_reader_close(reader);
    buffer_done(&packed);
    buffer_done(&back);
}

static void parts_join_to_one_member_with_the_text_of_all(void **state)
{
    static const size_t sizes[] = {100000, 0, 3, 200000};
    struct gzip_part made[ARRAY_SIZE(sizes)];
    const struct gzip_part *parts[ARRAY_SIZE(sizes)];
    struct buffer whole, packed, back;
    struct gzip_reader *reader;

    (void)state;
    buffer_init(&whole, CAP_BYTES);
    buffer_init(&packed, CAP_BYTES);
    buffer_init(&back, CAP_BYTES);
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        struct buffer text = make_text(sizes[i]);

        assert_int_equal(gzip_part_make(&made[i], text.data, text.len, CAP_BYTES), 0);
        parts[i] = &made[i];
        buffer_bytes(&whole, text.data, text.len);
        buffer_done(&text);
    }
    assert_int_equal(gzip_join(parts, ARRAY_SIZE(parts), &packed), 0);
    reader = open_bytes(packed.data, packed.len);
    assert_int_equal(read_all(reader, 4096, CAP_BYTES, &back, NULL), 0);
    assert_same(&back, &whole);
    gzip_reader_close(reader);
    for (size_t i = 0; i < ARRAY_SIZE(made); i++)
        gzip_part_done(&made[i]);
    buffer_done(&whole);
    buffer_done(&packed);
    buffer_done(&back);
}

static void output_that_does_not_fit_its_buffer_is_an_error(void **state)
{
    struct buffer text = make_text(TEXT_BYTES), out;

    (void)state;
    buffer_init(&out, 1000);
    assert_int_equal(gzip_compress(text.data, text.len, &out), -ENOMEM);
    buffer_done(&out);
    buffer_init(&out, 1000);
    assert_int_equal(gzip_compress(text.data, (size_t)UINT32_MAX + 1, &out), -EFBIG);
    assert_int_equal(out.len, 0);
    buffer_done(&out);
    buffer_done(&text);
}

static void plain_text_passes_through(void **state)
{
    static const char *const texts[] = {"", "x", "\x1f", "wattribute-trace 1\n", "\x1f\x8c\x08 no"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        struct gzip_reader *reader = open_bytes(texts[i], strlen(texts[i]));
        struct buffer back;

        buffer_init(&back, CAP_BYTES);
        assert_int_equal(read_all(reader, 100, CAP_BYTES, &back, NULL), 0);
        assert_int_equal(back.len, strlen(texts[i]));
        if (back.len > 0)
            assert_memory_equal(back.data, texts[i], back.len);
        gzip_reader_close(reader);
        buffer_done(&back);
    }
}

static void a_file_that_is_cut_anywhere_is_an_error_behind_what_it_held(void **state)
{
    struct buffer text = make_text(TEXT_BYTES), packed;

    (void)state;
    buffer_init(&packed, CAP_BYTES);
    assert_int_equal(gzip_compress(text.data, text.len, &packed), 0);
    /* In the header, in the data, at the trailer, and one byte short. */
    for (size_t i = 0; i < 5; i++) {
        const size_t cuts[] = {12, packed.len / 3, packed.len / 2, packed.len - 8, packed.len - 1};
        struct gzip_reader *reader = open_bytes(packed.data, cuts[i]);
        struct error err = {""};
        struct buffer back;

        buffer_init(&back, CAP_BYTES);
        assert_int_equal(read_all(reader, 4096, CAP_BYTES, &back, &err), -EBADMSG);
        assert_non_null(strstr(err.text, "too early"));
        assert_true(back.len <= text.len);
        if (back.len > 0)
            assert_memory_equal(back.data, text.data, back.len);
        /* It stays an error: no later call takes the cut for the end. */
        assert_int_equal(read_all(reader, 4096, CAP_BYTES, &back, &err), -EBADMSG);
        gzip_reader_close(reader);
        buffer_done(&back);
    }
    buffer_done(&packed);
    buffer_done(&text);
}

static void corrupt_data_are_an_error(void **state)
{
    struct buffer text = make_text(TEXT_BYTES), packed;

    (void)state;
    buffer_init(&packed, CAP_BYTES);
    assert_int_equal(gzip_compress(text.data, text.len, &packed), 0);
    /* In the data, in the checksum, in the length. */
    for (size_t i = 0; i < 3; i++) {
        const size_t at[] = {packed.len / 2, packed.len - 8, packed.len - 1};
        struct error err = {""};
        struct gzip_reader *reader;
        struct buffer back;

        packed.data[at[i]] ^= 0x55;
        reader = open_bytes(packed.data, packed.len);
        packed.data[at[i]] ^= 0x55;
        buffer_init(&back, CAP_BYTES);
        assert_int_equal(read_all(reader, 4096, CAP_BYTES, &back, &err), -EBADMSG);
        assert_non_null(strstr(err.text, "corrupt"));
        gzip_reader_close(reader);
        buffer_done(&back);
    }
    buffer_done(&packed);
    buffer_done(&text);
}

/* `len` zeros as a gzip file, packed in members of 1 MiB. */
static struct gzip_reader *open_zeros(size_t len)
{
    static const char zeros[1 << 20];
    struct gzip_reader *reader;
    struct buffer packed;

    buffer_init(&packed, CAP_BYTES);
    for (size_t done = 0; done < len; done += sizeof(zeros))
        assert_int_equal(gzip_compress(zeros, sizeof(zeros), &packed), 0);
    assert_true(len / packed.len > 200);
    reader = open_bytes(packed.data, packed.len);
    buffer_done(&packed);
    return reader;
}

static void a_bomb_is_refused_before_it_fills_the_memory(void **state)
{
    struct gzip_reader *reader = open_zeros(48 << 20);
    struct error err = {""};
    struct buffer back;

    (void)state;
    buffer_init(&back, CAP_BYTES);
    assert_int_equal(read_all(reader, 1 << 20, CAP_BYTES, &back, &err), -EFBIG);
    assert_non_null(strstr(err.text, "200 times"));
    assert_true(back.len <= 17 << 20);
    gzip_reader_close(reader);
    buffer_done(&back);
}

static void a_small_file_may_have_any_ratio(void **state)
{
    struct gzip_reader *reader = open_zeros(16 << 20);
    struct buffer back;

    (void)state;
    buffer_init(&back, CAP_BYTES);
    assert_int_equal(read_all(reader, 1 << 20, CAP_BYTES, &back, NULL), 0);
    assert_int_equal(back.len, 16 << 20);
    gzip_reader_close(reader);
    buffer_done(&back);
}

static void a_rewind_starts_over_and_forgets_what_a_bomb_is_measured_by(void **state)
{
    struct buffer text = make_text(TEXT_BYTES), packed;
    struct gzip_reader *reader;

    (void)state;
    buffer_init(&packed, CAP_BYTES);
    assert_int_equal(gzip_compress(text.data, text.len, &packed), 0);
    reader = open_bytes(packed.data, packed.len);
    /* From the middle, from the end, and from the start. */
    for (size_t i = 0; i < 3; i++) {
        static const size_t most[] = {1000, CAP_BYTES, 0};
        struct buffer back;

        buffer_init(&back, CAP_BYTES);
        assert_int_equal(read_all(reader, 1000, most[i], &back, NULL), 0);
        buffer_done(&back);
        assert_int_equal(gzip_reader_rewind(reader), 0);
        assert_int_equal(read_all(reader, 1000, CAP_BYTES, &back, NULL), 0);
        assert_same(&back, &text);
        assert_int_equal(gzip_reader_rewind(reader), 0);
        buffer_done(&back);
    }
    gzip_reader_close(reader);
    buffer_done(&packed);
    buffer_done(&text);

    reader = open_zeros(15 << 20);
    for (int round = 0; round < 3; round++) {
        struct buffer back;

        buffer_init(&back, CAP_BYTES);
        assert_int_equal(read_all(reader, 1 << 20, CAP_BYTES, &back, NULL), 0);
        assert_int_equal(back.len, 15 << 20);
        assert_int_equal(gzip_reader_rewind(reader), 0);
        buffer_done(&back);
    }
    gzip_reader_close(reader);
}

static void a_pipe_can_be_read_but_not_rewound(void **state)
{
    struct gzip_reader *reader = NULL;
    struct buffer back;
    int ends[2];

    (void)state;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(fs_write_all(ends[1], "text", 4), 0);
    close(ends[1]);
    assert_int_equal(gzip_reader_open(ends[0], &reader), 0);
    buffer_init(&back, CAP_BYTES);
    assert_int_equal(read_all(reader, 100, CAP_BYTES, &back, NULL), 0);
    assert_int_equal(back.len, 4);
    assert_int_equal(gzip_reader_rewind(reader), -ESPIPE);
    gzip_reader_close(reader);
    buffer_done(&back);
}

static void a_full_disk_fails_the_write_and_the_close(void **state)
{
    static const size_t sizes[] = {10, TEXT_BYTES};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        struct buffer text = make_text(sizes[i]);
        struct gzip_writer *writer = NULL;
        int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);

        assert_true(fd >= 0);
        assert_int_equal(gzip_writer_open(fd, &writer), 0);
        /* What is small is in zlib's buffer until then. */
        assert_int_equal(gzip_writer_write(writer, text.data, text.len), i == 0 ? 0 : -ENOSPC);
        if (i == 0)
            assert_int_equal(gzip_writer_flush(writer), -ENOSPC);
        assert_int_equal(gzip_writer_close(writer), -ENOSPC);
        buffer_done(&text);
    }
}

static void a_disk_that_is_full_only_at_the_end_fails_the_close(void **state)
{
    struct gzip_writer *writer = NULL;
    int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(gzip_writer_open(fd, &writer), 0);
    assert_int_equal(gzip_writer_write(writer, "x", 1), 0);
    assert_int_equal(gzip_writer_close(writer), -ENOSPC);
}

static void what_cannot_be_read_says_why(void **state)
{
    struct gzip_reader *reader = NULL;
    struct error err = {""};
    struct buffer back;
    int fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    (void)state;
    assert_true(gzip_reader_open(-1, &reader) < 0);
    assert_null(reader);
    assert_int_equal(gzip_reader_open(fd, &reader), 0);
    buffer_init(&back, CAP_BYTES);
    assert_int_equal(read_all(reader, 100, CAP_BYTES, &back, &err), -EIO);
    assert_string_equal(err.text, "cannot read: Is a directory");
    gzip_reader_close(reader);
    gzip_reader_close(NULL);
    buffer_done(&back);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_compressed_is_read_back),
        cmocka_unit_test(nothing_compresses_to_a_member_of_nothing),
        cmocka_unit_test(members_in_a_row_are_one_text),
        cmocka_unit_test(parts_join_to_one_member_with_the_text_of_all),
        cmocka_unit_test(output_that_does_not_fit_its_buffer_is_an_error),
        cmocka_unit_test(plain_text_passes_through),
        cmocka_unit_test(a_file_that_is_cut_anywhere_is_an_error_behind_what_it_held),
        cmocka_unit_test(corrupt_data_are_an_error),
        cmocka_unit_test(a_bomb_is_refused_before_it_fills_the_memory),
        cmocka_unit_test(a_small_file_may_have_any_ratio),
        cmocka_unit_test(a_rewind_starts_over_and_forgets_what_a_bomb_is_measured_by),
        cmocka_unit_test(a_pipe_can_be_read_but_not_rewound),
        cmocka_unit_test(a_full_disk_fails_the_write_and_the_close),
        cmocka_unit_test(a_disk_that_is_full_only_at_the_end_fails_the_close),
        cmocka_unit_test(what_cannot_be_read_says_why),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
