/* collector/collector_state: when the state is written, and what is told if it is not. */
#include "log_capture.h"

#include <errno.h>
#include <fcntl.h>

#include "collector/collector_private.h"
#include "core/fs.h"
#include "metrics/exposition.h"
#include "options_fixture.h"
#include "pipeline_fixture.h"

struct fixture {
    char dir[64], path[96];
    struct options options;
    struct host host;
    struct collector collector;
};

/* In the place of the library's: the disk may fail. */
static int fsync_error;

int fsync(int fd)
{
    assert_true(fd >= 0);
    errno = fsync_error;
    return fsync_error ? -1 : 0;
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct pipeline_options options = default_options();
    struct error err = {""};

    assert_non_null(f);
    snprintf(f->dir, sizeof(f->dir), "/tmp/collector-state-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    snprintf(f->path, sizeof(f->path), "%s/state", f->dir);
    assert_int_equal(options_init(&f->options, &err), 0);
    assert_int_equal(set_flag(&f->options, "state-file", f->path, OPTIONS_COMMAND_LINE, &err), 0);
    f->host = (struct host){.procfs_fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC)};
    assert_true(f->host.procfs_fd >= 0);
    f->collector.options = &f->options;
    f->collector.host = &f->host;
    f->collector.clock = &clock_system; /* a thread waits by it */
    assert_int_equal(emissions_init(&f->collector.emissions, &f->options, &clock_system, &err), 0);
    assert_int_equal(collector_open_state(&f->collector, &err), 0);
    assert_int_equal(collector_resume_books(&f->collector, &options), 0);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    static const char *const names[] = {"state", "state.new", "state.lock"};
    struct fixture *f = *state;

    assert_true(state_file_close(f->collector.state.file, 10 * USEC_PER_SEC));
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        char path[96];

        snprintf(path, sizeof(path), "%s/%s", f->dir, names[i]);
        (void)unlink(path);
    }
    assert_int_equal(rmdir(f->dir), 0);
    pipeline_free(f->collector.pipeline);
    options_done(&f->options);
    cleanup_close(&f->host.procfs_fd);
    free(f);
    return 0;
}

/* The disk may be late; then there is no page yet. */
static void save_page(struct fixture *f)
{
    while (!collector_save_page(&f->collector))
        continue;
}

static size_t count_lines(const char *text, const char *with)
{
    size_t count = 0;

    while ((text = strstr(text, with))) {
        count++;
        text += strlen(with);
    }
    return count;
}

static void a_state_that_is_too_large_is_a_failed_write_until_one_fits(void **state)
{
    struct fixture *f = *state;
    struct capture capture;
    char text[4096];

    save_page(f);
    assert_int_equal(f->collector.state.result, 0);
    capture = capture_begin();
    f->collector.state.cap_bytes = 10;
    for (int i = 0; i < 3; i++) {
        uint64_t number = f->collector.state.number;

        assert_true(collector_save_page(&f->collector)); /* scrapes matter more */
        assert_int_equal(f->collector.state.result, -EFBIG);
        collector_save_due(&f->collector);
        assert_int_equal(f->collector.state.result, -EFBIG);
        assert_int_equal(f->collector.state.number, number);
    }
    collector_save_last(&f->collector);
    capture_end(capture, text, sizeof(text));
    assert_int_equal(count_lines(text, "\n"), 1);
    assert_int_equal(count_lines(text, "level=error"), 1);
    assert_non_null(strstr(text, "the state file cannot be written"));
    assert_non_null(strstr(text, "larger than 256 MiB; lower --max-workloads or --max-processes"));
    capture = capture_begin();
    f->collector.state.cap_bytes = STATE_FILE_CAP_BYTES;
    save_page(f);
    save_page(f);
    capture_end(capture, text, sizeof(text));
    assert_int_equal(f->collector.state.result, 0);
    assert_int_equal(count_lines(text, "\n"), 1);
    assert_non_null(strstr(text, "the state is written again"));
}

static void an_error_of_fsync_is_told_once_whatever_pages_are_written(void **state)
{
    struct fixture *f = *state;
    struct capture capture = capture_begin();
    char text[4096];

    fsync_error = EIO;
    for (int i = 0; i < 3; i++) {
        collector_save_due(&f->collector);
        save_page(f);
        assert_int_equal(f->collector.state.result, -EIO);
        save_page(f);
        assert_int_equal(f->collector.state.result, -EIO);
    }
    fsync_error = 0;
    save_page(f);
    assert_int_equal(f->collector.state.result, -EIO); /* nothing was synced since */
    capture_end(capture, text, sizeof(text));
    assert_int_equal(count_lines(text, "\n"), 1);
    assert_non_null(strstr(text, "level=error msg=\"the state file cannot be synced to the disk"));
    assert_non_null(strstr(text, "error=\"Input/output error\""));
    capture = capture_begin();
    fsync_error = EFBIG; /* of the file system, not our own limit */
    collector_save_due(&f->collector);
    save_page(f);
    capture_end(capture, text, sizeof(text));
    assert_non_null(strstr(text, "error=\"File too large\""));
    capture = capture_begin();
    fsync_error = 0;
    collector_save_due(&f->collector);
    save_page(f);
    capture_end(capture, text, sizeof(text));
    assert_int_equal(f->collector.state.result, 0);
    assert_int_equal(count_lines(text, "\n"), 1);
    assert_non_null(strstr(text, "the state is written again"));
}

static bool name_pod(void *context, const struct workload_owner *owner,
                     struct workload_names *ret_names)
{
    static char pod[254], image[256]; /* as long as Kubernetes has them */

    (void)context;
    memset(pod, 'p', sizeof(pod) - 1);
    memset(image, 'i', sizeof(image) - 1);
    *ret_names = (struct workload_names){owner->id, "default", pod, "main", image};
    return true;
}

static void measure(struct pipeline *pipeline, size_t *ret_state_bytes, size_t *ret_page_bytes)
{
    const struct exposition_options options = {.process_prefix = "my_gpu_process", .version = "1"};
    struct snapshot *snapshot = books(pipeline);
    struct buffer state, page;

    buffer_init(&state, STATE_FILE_CAP_BYTES);
    pipeline_pack_state(pipeline, &state);
    buffer_init(&page, SEALED_MAX_BYTES);
    exposition_render(snapshot, &options, EXPOSITION_ALL, &page);
    assert_false(buffer_failed(&state) || buffer_failed(&page));
    *ret_state_bytes = state.len;
    *ret_page_bytes = page.len;
    buffer_done(&state);
    buffer_done(&page);
    close_books(snapshot);
}

/* Books another process of another pod for a second. */
static uint64_t work(struct pipeline *pipeline, uint32_t pid, uint64_t counter_uj)
{
    uint64_t t_us = T0 + pid * SECOND;
    char unit[32];

    snprintf(unit, sizeof(unit), "%u.service", pid);
    identify(pipeline, 0, t_us, pid, t_us - SECOND, unit, "trainer");
    LIST(pipeline, t_us + 1, pid);
    utilisation(pipeline, 0, t_us + 2, 100);
    label(pipeline, 0, t_us + 3, pid, t_us, 60);
    return ticks(pipeline, 0, t_us, t_us + SECOND, counter_uj, 300);
}

static void what_fits_on_a_page_fits_into_the_state(void **state)
{
    struct pipeline *pipeline = pipeline_with(default_options());
    size_t states[2], pages[2];
    uint64_t counter_uj = 0;

    (void)state;
    pipeline_set_names(pipeline, name_pod, NULL);
    for (uint32_t pid = 1; pid < 200; pid++) {
        if (pid == 100)
            measure(pipeline, &states[0], &pages[0]);
        counter_uj = work(pipeline, pid, counter_uj);
        pipeline_fix_names(pipeline, T0 + (pid + 1) * SECOND);
    }
    measure(pipeline, &states[1], &pages[1]);
    assert_true(states[1] > states[0]);
    print_message("a row: %zu bytes of state, %zu of a page\n", (states[1] - states[0]) / 100,
                  (pages[1] - pages[0]) / 100);
    assert_true(pages[1] - pages[0] > 2 * (states[1] - states[0]));
    pipeline_free(pipeline);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_state_that_is_too_large_is_a_failed_write_until_one_fits,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_error_of_fsync_is_told_once_whatever_pages_are_written,
                                        set_up, tear_down),
        cmocka_unit_test(what_fits_on_a_page_fits_into_the_state),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
