#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/fs.h"
#include "core/macros.h"
#include "emissions/choice.h"
#include "model/price.h"
#include "process/channel.h"

struct ends {
    int collector_fd, child_fd;
};

/* None comes but where a test is about it. */
static struct channel_ping ping;

#define SEND(fd, record) channel_send((fd), (record), sizeof(*(record)), -1)

static struct ends open_ends(void)
{
    struct ends ends;

    assert_int_equal(channel_open(&ends.collector_fd, &ends.child_fd), 0);
    return ends;
}

static void close_ends(struct ends ends)
{
    close(ends.collector_fd);
    close(ends.child_fd);
}

/* The next descriptor the kernel would hand out: equal before and after means that none leaked. */
static int next_descriptor(void)
{
    int fd = dup(STDIN_FILENO);

    close(fd);
    return fd;
}

/* Sends what an honest peer never would: any bytes with any number of descriptors. */
static void send_raw(int fd, const void *bytes, size_t len, const int fds[], size_t fd_count)
{
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(8 * sizeof(int))] = {0};
    struct iovec part = {(void *)bytes, len};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

    if (fd_count > 0) {
        struct cmsghdr *header;

        message.msg_control = control;
        message.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
        header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(fd_count * sizeof(int));
        memcpy(CMSG_DATA(header), fds, fd_count * sizeof(int));
    }
    assert_int_equal(sendmsg(fd, &message, 0), len);
}

static int body_of(const char *text)
{
    int fd;

    assert_int_equal(fs_create_sealed(text, strlen(text), &fd), 0);
    return fd;
}

static void a_request_arrives_as_it_was_sent(void **state)
{
    struct ends ends = open_ends();
    struct channel_request sent = {PAGE_OPENMETRICS, PAGE_GZIP, 42}, got;

    (void)state;
    assert_int_equal(channel_receive_request(ends.collector_fd, &got, &ping), -EAGAIN);
    assert_int_equal(SEND(ends.child_fd, &sent), 0);
    assert_int_equal(channel_receive_request(ends.collector_fd, &got, &ping), 0);
    assert_memory_equal(&sent, &got, sizeof(sent));
    close_ends(ends);
}

static void a_body_arrives_sealed_and_whole(void **state)
{
    struct ends ends = open_ends();
    struct channel_reply sent = {.status = CHANNEL_BODY, .generation = 7, .body_bytes = 5}, got;
    int fd = body_of("hello"), got_fd;
    char text[6] = "";

    (void)state;
    assert_int_equal(channel_send(ends.collector_fd, &sent, sizeof(struct channel_reply), fd), 0);
    assert_int_equal(channel_receive_reply(ends.child_fd, &got, &got_fd, &ping), 0);
    assert_memory_equal(&sent, &got, sizeof(sent));
    assert_int_equal(pread(got_fd, text, 5, 0), 5);
    assert_string_equal(text, "hello");
    assert_int_equal(pwrite(got_fd, "x", 1, 0), -1);
    assert_int_equal(errno, EPERM);
    assert_int_equal(ftruncate(got_fd, 0), -1);
    assert_true(fcntl(got_fd, F_GETFD) & FD_CLOEXEC);
    close(got_fd);
    close(fd);
    close_ends(ends);
}

static void a_reply_without_a_body_has_no_descriptor(void **state)
{
    struct ends ends = open_ends();
    struct channel_reply got;
    int got_fd;

    (void)state;
    for (uint32_t status = CHANNEL_UNCHANGED; status < CHANNEL_JOB; status++) {
        struct channel_reply sent = {.status = status};

        assert_int_equal(channel_send(ends.collector_fd, &sent, sizeof(struct channel_reply), -1),
                         0);
        assert_int_equal(channel_receive_reply(ends.child_fd, &got, &got_fd, &ping), 0);
        assert_int_equal(got.status, status);
        assert_int_equal(got_fd, -1);
    }
    close_ends(ends);
}

static void a_ping_arrives_instead_of_any_other_record(void **state)
{
    struct ends ends = open_ends();
    struct channel_ping sent = {UINT64_MAX};
    struct channel_request request = {.have_generation = 42};
    struct channel_names names = {.is_state = true};
    struct channel_factor factor = {.index = 42};
    struct channel_reply reply = {.generation = 42};
    int fd = -2;

    (void)state;
    assert_int_equal(channel_receive_ping(ends.child_fd, &ping), -EAGAIN);
    for (int i = 0; i < 4; i++) {
        ping.number = 0;
        assert_int_equal(SEND(ends.child_fd, &sent), 0);
        assert_int_equal(i == 0   ? channel_receive_request(ends.collector_fd, &request, &ping)
                         : i == 1 ? channel_receive_names(ends.collector_fd, &names, &ping)
                         : i == 2 ? channel_receive_factor(ends.collector_fd, &factor, &ping)
                                  : channel_receive_ping(ends.collector_fd, &ping) + 1,
                         1);
        assert_int_equal(ping.number, UINT64_MAX);
    }
    ping.number = 0;
    assert_int_equal(SEND(ends.collector_fd, &sent), 0);
    assert_int_equal(channel_receive_reply(ends.child_fd, &reply, &fd, &ping), 1);
    assert_int_equal(ping.number, UINT64_MAX);
    /* It alone is written. */
    assert_int_equal(request.have_generation + factor.index + reply.generation, 3 * 42);
    assert_true(names.is_state);
    assert_int_equal(fd, -2);
    close_ends(ends);
}

static void what_a_child_sent_arrives_though_it_ended_with_a_ping_unread(void **state)
{
    struct ends ends = open_ends();
    struct channel_request sent = {.have_generation = 42}, got;

    (void)state;
    assert_int_equal(SEND(ends.child_fd, &sent), 0);
    assert_int_equal(SEND(ends.collector_fd, &(struct channel_ping){1}), 0);
    close(ends.child_fd);
    assert_int_equal(channel_receive_request(ends.collector_fd, &got, &ping), 0);
    assert_int_equal(got.have_generation, 42);
    assert_int_equal(channel_receive_request(ends.collector_fd, &got, &ping), -ENOTCONN);
    close(ends.collector_fd);
}

static void a_ping_of_the_wrong_form_is_refused(void **state)
{
    struct ends ends = open_ends();
    const struct channel_ping none = {0}, good = {7};
    struct channel_reply reply;
    const char large[sizeof(good) + 1] = {0};
    int next = next_descriptor(), fd;
    const int fds[] = {0};

    (void)state;
    ping.number = 42;
    send_raw(ends.collector_fd, &none, sizeof(none), NULL, 0);
    send_raw(ends.collector_fd, &good, sizeof(good) - 1, NULL, 0);
    send_raw(ends.collector_fd, large, sizeof(large), NULL, 0);
    send_raw(ends.collector_fd, &good, sizeof(good), fds, 1);
    for (int i = 0; i < 4; i++)
        assert_int_equal(channel_receive_ping(ends.child_fd, &ping), -EPROTO);
    send_raw(ends.collector_fd, &none, sizeof(none), NULL, 0);
    send_raw(ends.collector_fd, &good, sizeof(good), fds, 1);
    for (int i = 0; i < 2; i++)
        assert_int_equal(channel_receive_reply(ends.child_fd, &reply, &fd, &ping), -EPROTO);
    assert_int_equal(channel_receive_ping(ends.child_fd, &ping), -EAGAIN);
    assert_int_equal(ping.number, 42);
    assert_int_equal(next_descriptor(), next);
    close_ends(ends);
}

static void a_closed_channel_differs_from_an_empty_queue(void **state)
{
    struct ends ends = open_ends();
    struct channel_request request = {0};
    struct channel_reply reply;
    int fd;

    (void)state;
    assert_int_equal(channel_receive_reply(ends.child_fd, &reply, &fd, &ping), -EAGAIN);
    close(ends.collector_fd);
    assert_int_equal(channel_receive_reply(ends.child_fd, &reply, &fd, &ping), -ENOTCONN);
    assert_int_equal(SEND(ends.child_fd, &request), -ENOTCONN);
    close(ends.child_fd);
}

static void a_full_queue_is_eagain(void **state)
{
    struct ends ends = open_ends();
    struct channel_request request = {0};
    int r = 0;

    (void)state;
    for (int i = 0; i < 1000000 && r == 0; i++)
        r = SEND(ends.child_fd, &request);
    assert_int_equal(r, -EAGAIN);
    close_ends(ends);
}

static void a_request_of_the_wrong_form_is_refused(void **state)
{
    struct ends ends = open_ends();
    struct channel_request good = {0}, bad_format = {PAGE_FORMATS, 0, 0},
                           bad_encoding = {0, UINT32_MAX, 0}, got;
    char large[sizeof(good) + 1] = {0};
    int next = next_descriptor();
    const int fds[] = {0, 1};

    (void)state;
    send_raw(ends.child_fd, &good, sizeof(good) - 1, NULL, 0);
    send_raw(ends.child_fd, large, sizeof(large), NULL, 0);
    send_raw(ends.child_fd, &bad_format, sizeof(bad_format), NULL, 0);
    send_raw(ends.child_fd, &bad_encoding, sizeof(bad_encoding), NULL, 0);
    send_raw(ends.child_fd, &good, sizeof(good), fds, 2);
    for (int i = 0; i < 5; i++)
        assert_int_equal(channel_receive_request(ends.collector_fd, &got, &ping), -EPROTO);
    assert_int_equal(channel_receive_request(ends.collector_fd, &got, &ping), -EAGAIN);
    assert_int_equal(next_descriptor(), next);
    close_ends(ends);
}

static void a_reply_of_the_wrong_form_is_refused_and_leaks_no_descriptor(void **state)
{
    struct ends ends = open_ends();
    const int body = body_of("hello");
    const int fds[] = {body, body, body};
    int next = next_descriptor();
    const struct {
        struct channel_reply reply;
        size_t len, fd_count;
    } cases[] = {
        {{.status = CHANNEL_BODY, .body_bytes = 5}, sizeof(struct channel_reply), 0},
        {{.status = CHANNEL_BODY, .body_bytes = 5}, sizeof(struct channel_reply), 2},
        {{.status = CHANNEL_BODY, .body_bytes = 5}, sizeof(struct channel_reply), 3},
        {{.status = CHANNEL_BODY, .body_bytes = 5}, sizeof(struct channel_reply) - 8, 1},
        {{.status = CHANNEL_BODY, .body_bytes = 4}, sizeof(struct channel_reply), 1},
        {{.status = CHANNEL_BODY, .body_bytes = 6}, sizeof(struct channel_reply), 1},
        {{.status = CHANNEL_BODY, .body_bytes = 0}, sizeof(struct channel_reply), 1},
        {{.status = CHANNEL_BODY, .body_bytes = UINT64_MAX}, sizeof(struct channel_reply), 1},
        {{.status = CHANNEL_UNCHANGED}, sizeof(struct channel_reply), 1},
        {{.status = CHANNEL_STATUS_COUNT}, sizeof(struct channel_reply), 0},
        {{.status = CHANNEL_UNCHANGED, .format = 9}, sizeof(struct channel_reply), 0},
        {{.status = CHANNEL_UNCHANGED, .encoding = 9}, sizeof(struct channel_reply), 0},
        {{.status = CHANNEL_UNCHANGED, .pad = 1}, sizeof(struct channel_reply), 0},
    };
    struct channel_reply got;
    int got_fd;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        send_raw(ends.collector_fd, &cases[i].reply, cases[i].len, fds, cases[i].fd_count);
        if (channel_receive_reply(ends.child_fd, &got, &got_fd, &ping) != -EPROTO)
            fail_msg("case %zu was not refused", i);
        assert_int_equal(next_descriptor(), next);
    }
    close(body);
    close_ends(ends);
}

static void a_body_that_its_sender_could_still_change_is_refused(void **state)
{
    static const int partial_seals[] = {0, F_SEAL_WRITE | F_SEAL_SHRINK, F_SEAL_WRITE | F_SEAL_GROW,
                                        F_SEAL_SHRINK | F_SEAL_GROW};
    struct ends ends = open_ends();
    struct channel_reply reply = {.status = CHANNEL_BODY, .body_bytes = 5}, got;
    int got_fd, fds[2];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(partial_seals); i++) {
        int fd = memfd_create("test", MFD_ALLOW_SEALING | MFD_CLOEXEC);

        assert_int_equal(write(fd, "hello", 5), 5);
        assert_int_equal(fcntl(fd, F_ADD_SEALS, partial_seals[i]), 0);
        assert_int_equal(channel_send(ends.collector_fd, &reply, sizeof(struct channel_reply), fd),
                         0);
        assert_int_equal(channel_receive_reply(ends.child_fd, &got, &got_fd, &ping), -EPROTO);
        close(fd);
    }
    assert_int_equal(pipe(fds), 0);
    assert_int_equal(channel_send(ends.collector_fd, &reply, sizeof(struct channel_reply), fds[0]),
                     0);
    assert_int_equal(channel_receive_reply(ends.child_fd, &got, &got_fd, &ping), -EPROTO);
    close(fds[0]);
    close(fds[1]);
    close_ends(ends);
}

static void a_body_over_the_cap_is_refused(void **state)
{
    const uint64_t size = 256 * 1024 * 1024 + 1;
    struct ends ends = open_ends();
    struct channel_reply reply = {.status = CHANNEL_BODY, .body_bytes = size}, got;
    int fd = memfd_create("test", MFD_ALLOW_SEALING | MFD_CLOEXEC), got_fd;

    (void)state;
    assert_int_equal(ftruncate(fd, (off_t)size), 0); /* sparse: takes no memory */
    assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW), 0);
    assert_int_equal(channel_send(ends.collector_fd, &reply, sizeof(struct channel_reply), fd), 0);
    assert_int_equal(channel_receive_reply(ends.child_fd, &got, &got_fd, &ping), -EPROTO);
    close(fd);
    assert_int_equal(fs_create_sealed("", 0, &fd), -EFBIG);
    close_ends(ends);
}

static const struct channel_container worker = {
    .id = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
    .namespace = "ml",
    .pod = "train-0",
    .container = "worker",
    .pod_uid = "0e5f0d4a-0000-4000-8000-000000000000",
    .image = "trainer:1",
};

static void names_arrive_as_they_were_sent(void **state)
{
    struct ends ends = open_ends();
    struct channel_names got;

    (void)state;
    assert_int_equal(channel_receive_names(ends.collector_fd, &got, &ping), -EAGAIN);
    assert_int_equal(SEND(ends.child_fd, &worker), 0);
    assert_int_equal(channel_receive_names(ends.collector_fd, &got, &ping), 0);
    assert_false(got.is_state);
    assert_memory_equal(&worker, &got.container, sizeof(worker));
    close(ends.child_fd);
    assert_int_equal(channel_receive_names(ends.collector_fd, &got, &ping), -ENOTCONN);
    close(ends.collector_fd);
}

static void a_pod_has_no_id_and_no_container(void **state)
{
    struct channel_container pod = worker;
    struct ends ends = open_ends();
    struct channel_names got;

    (void)state;
    memset(pod.id, 0, sizeof(pod.id));
    assert_int_equal(SEND(ends.child_fd, &pod), 0);
    assert_int_equal(channel_receive_names(ends.collector_fd, &got, &ping), -EPROTO);
    memset(pod.container, 0, sizeof(pod.container));
    assert_int_equal(SEND(ends.child_fd, &pod), 0);
    assert_int_equal(channel_receive_names(ends.collector_fd, &got, &ping), 0);
    assert_memory_equal(&pod, &got.container, sizeof(pod));
    memset(pod.pod_uid, 0, sizeof(pod.pod_uid));
    assert_int_equal(SEND(ends.child_fd, &pod), 0);
    assert_int_equal(channel_receive_names(ends.collector_fd, &got, &ping), -EPROTO);
    close_ends(ends);
}

static void the_state_of_the_api_comes_between_names_and_is_checked(void **state)
{
    static const struct channel_names_state good[] = {
        {.result = 0, .duration_us = 5},
        {.result = -EACCES, .why = "denied"},
        {.result = -EIO, .duration_us = 1, .why = "it hangs"}};
    static const struct channel_names_state bad[] = {
        {.result = 1, .why = "x"},        {.pad = 1},
        {.result = 0, .why = "x"},        {.result = -EIO},
        {.result = -EIO, .why = "a\nb"},  {.result = -EIO, .why = "\x1b[2J"},
        {.result = INT32_MIN, .why = "x"}};
    struct channel_names_state endless = {.result = -EIO};
    struct ends ends = open_ends();
    struct channel_names got;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
        assert_int_equal(SEND(ends.child_fd, &good[i]), 0);
        assert_int_equal(SEND(ends.child_fd, &worker), 0);
        assert_int_equal(channel_receive_names(ends.collector_fd, &got, &ping), 0);
        assert_true(got.is_state);
        assert_memory_equal(&got.state, &good[i], sizeof(good[i]));
        assert_int_equal(channel_receive_names(ends.collector_fd, &got, &ping), 0);
        assert_false(got.is_state);
    }
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        assert_int_equal(SEND(ends.child_fd, &bad[i]), 0);
        assert_int_equal(channel_receive_names(ends.collector_fd, &got, &ping), -EPROTO);
    }
    memset(endless.why, 'x', sizeof(endless.why));
    assert_int_equal(SEND(ends.child_fd, &endless), 0);
    assert_int_equal(channel_receive_names(ends.collector_fd, &got, &ping), -EPROTO);
    close_ends(ends);
}

static void names_of_the_wrong_form_are_refused(void **state)
{
    struct ends ends = open_ends();
    struct channel_names got;
    char large[sizeof(worker) + 1] = {0};
    const int fds[] = {0};
    const struct {
        size_t offset, len;
        char byte;
    } faults[] = {
        {offsetof(struct channel_container, id), 1, 'g'},
        {offsetof(struct channel_container, id), 1, 'A'},
        {offsetof(struct channel_container, id), 1, '\0'},
        {offsetof(struct channel_container, id) + 63, 1, '\0'},
        {offsetof(struct channel_container, id) + 64, 1, '0'},
        {offsetof(struct channel_container, namespace), sizeof(worker.namespace), 'a'},
        {offsetof(struct channel_container, pod), sizeof(worker.pod), 'a'},
        {offsetof(struct channel_container, container), sizeof(worker.container), 'a'},
        {offsetof(struct channel_container, pod_uid), sizeof(worker.pod_uid), 'a'},
        {offsetof(struct channel_container, image), sizeof(worker.image), 'a'},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(faults); i++) {
        struct channel_container bad = worker;

        memset((char *)&bad + faults[i].offset, faults[i].byte, faults[i].len);
        send_raw(ends.child_fd, &bad, sizeof(bad), NULL, 0);
        if (channel_receive_names(ends.collector_fd, &got, &ping) != -EPROTO)
            fail_msg("case %zu was taken", i);
    }
    send_raw(ends.child_fd, &worker, sizeof(worker) - 1, NULL, 0);
    send_raw(ends.child_fd, large, sizeof(large), NULL, 0);
    send_raw(ends.child_fd, &worker, sizeof(worker), fds, 1);
    for (int i = 0; i < 3; i++)
        assert_int_equal(channel_receive_names(ends.collector_fd, &got, &ping), -EPROTO);
    assert_int_equal(channel_receive_names(ends.collector_fd, &got, &ping), -EAGAIN);
    close_ends(ends);
}

static void a_factor_is_checked_when_it_comes(void **state)
{
    static const struct channel_factor good[] = {
        {.mg_per_kwh = 0},
        {.index = CHOICE_MAX - 1,
         .mg_per_kwh = 5000000,
         .time_us = 1,
         .taken_us = UINT64_MAX,
         .basis = 2},
        {.mg_per_kwh = 50, .is_estimated = 1},
        {.index = 1, .result = -EACCES, .taken_us = 9, .basis = 1, .why = "no ~ \"key\""},
    };
    struct channel_factor bad[] = {
        {.index = CHOICE_MAX},
        {.mg_per_kwh = 5000001},
        {.mg_per_kwh = UINT64_MAX},
        {.is_estimated = 2},
        {.basis = PRICE_BASES},
        {.result = 1, .why = "no"},
        {.result = INT32_MIN, .why = "no"},
        {.result = -EIO},
        {.result = 0, .why = "no"},
        {.result = -EIO, .why = "no", .mg_per_kwh = 1},
        {.result = -EIO, .why = "no", .time_us = 1},
        {.result = -EIO, .why = "no", .is_estimated = 1},
        {.result = -EIO, .why = "two\nlines"},
        {.result = -EIO, .why = "\x1b[31m"},
        {.result = -EIO, .why = "\x7f"},
        {.result = -EIO, .why = "\xc3\xa9"},
        {.result = -EIO},
    };
    struct ends ends = open_ends();
    struct channel_factor got;

    (void)state;
    memset(bad[ARRAY_SIZE(bad) - 1].why, 'a', sizeof(got.why));
    for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
        assert_int_equal(SEND(ends.child_fd, &good[i]), 0);
        assert_int_equal(channel_receive_factor(ends.collector_fd, &got, &ping), 0);
        assert_memory_equal(&got, &good[i], sizeof(got));
    }
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        assert_int_equal(SEND(ends.child_fd, &bad[i]), 0);
        if (channel_receive_factor(ends.collector_fd, &got, &ping) != -EPROTO)
            fail_msg("case %zu is believed", i);
    }
    send_raw(ends.child_fd, &good[0], sizeof(good[0]) - 1, NULL, 0);
    assert_int_equal(channel_receive_factor(ends.collector_fd, &got, &ping), -EPROTO);
    close(ends.child_fd);
    assert_int_equal(channel_receive_factor(ends.collector_fd, &got, &ping), -ENOTCONN);
    close(ends.collector_fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_arrives_as_it_was_sent),
        cmocka_unit_test(a_body_arrives_sealed_and_whole),
        cmocka_unit_test(a_reply_without_a_body_has_no_descriptor),
        cmocka_unit_test(a_ping_arrives_instead_of_any_other_record),
        cmocka_unit_test(what_a_child_sent_arrives_though_it_ended_with_a_ping_unread),
        cmocka_unit_test(a_ping_of_the_wrong_form_is_refused),
        cmocka_unit_test(a_closed_channel_differs_from_an_empty_queue),
        cmocka_unit_test(a_full_queue_is_eagain),
        cmocka_unit_test(a_request_of_the_wrong_form_is_refused),
        cmocka_unit_test(a_reply_of_the_wrong_form_is_refused_and_leaks_no_descriptor),
        cmocka_unit_test(a_body_that_its_sender_could_still_change_is_refused),
        cmocka_unit_test(a_body_over_the_cap_is_refused),
        cmocka_unit_test(names_arrive_as_they_were_sent),
        cmocka_unit_test(a_pod_has_no_id_and_no_container),
        cmocka_unit_test(the_state_of_the_api_comes_between_names_and_is_checked),
        cmocka_unit_test(names_of_the_wrong_form_are_refused),
        cmocka_unit_test(a_factor_is_checked_when_it_comes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
