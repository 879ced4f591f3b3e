/* fetcher/emissions: when it asks for another process. Clients and waits are fakes: each provider
 * is polled once, and then the main thread's wait is over, a few times. */
#include "unit.h"

#include <errno.h>
#include <poll.h>
#include <semaphore.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/macros.h"
#include "fetcher/fetcher.h"
#include "process/channel.h"

#define DEAD "https://dead.example"
#define LIVE "https://live.example"

enum { WAITS = 3 }; /* then the channel is closed */

static struct {
    int channel_fds[2]; /* the collector's, and the fetcher's */
    int stop_fd;        /* of its threads */
    int waits;          /* of the main thread */
    uint64_t wait_us;   /* of the last one */
    size_t polls;       /* that are due at once; 0: none is due */
    bool hangs;         /* the first request, until it is stopped */
    sem_t has_polled;
} test;

static _Thread_local bool was_due;

bool fetcher_attend(int channel_fd)
{
    (void)channel_fd;
    return false;
}

bool fetcher_wait(int channel_fd, uint64_t until_us)
{
    struct pollfd end = {.fd = channel_fd, .events = POLLIN};

    if (channel_fd == test.channel_fds[1]) {
        test.wait_us = until_us - clock_system.monotonic_us(&clock_system);
        for (size_t i = 0; i < test.polls && test.waits == 0; i++)
            assert_int_equal(sem_wait(&test.has_polled), 0);
        return test.waits++ == WAITS;
    }
    if (was_due || test.polls == 0) {
        sem_post(&test.has_polled);
        return poll(&end, 1, -1) == 1; /* the fetcher stops it */
    }
    was_due = true;
    return false;
}

int fetcher_enter_sandbox(enum sandbox_user user, int channel_fd, const char *ca_path,
                          struct error *err)
{
    (void)channel_fd, (void)ca_path, (void)err;
    assert_int_equal(user, SANDBOX_EMISSIONS);
    return 0;
}

int http_client_new(struct http_client **ret_client)
{
    *ret_client = (struct http_client *)&test;
    return 0;
}

void http_client_free(struct http_client *client)
{
    assert_ptr_equal(client, &test);
}

void http_client_cancel(struct http_client *client)
{
    (void)client;
}

void http_client_watch(struct http_client *client, int fd, bool (*attend)(int fd))
{
    assert_ptr_equal(attend, fetcher_attend);
    assert_ptr_equal(client, &test);
    assert_int_not_equal(fd, test.channel_fds[1]);
    test.stop_fd = fd;
}

int http_client_do(struct http_client *client, const struct http_request *request,
                   struct http_reply *ret_reply, struct error *err)
{
    (void)client;
    if (test.hangs) {
        struct pollfd stop = {.fd = test.stop_fd, .events = POLLIN};

        sem_post(&test.has_polled);
        assert_int_equal(poll(&stop, 1, -1), 1);
        return -ECANCELED;
    }
    if (strncmp(request->url, DEAD, strlen(DEAD)) == 0)
        return error_set(err, -ENOENT, "its name does not resolve");
    ret_reply->status = 500;
    return 0;
}

static int set_up(void **state)
{
    (void)state;
    memset(&test, 0, sizeof(test));
    assert_int_equal(channel_open(&test.channel_fds[0], &test.channel_fds[1]), 0);
    return sem_init(&test.has_polled, 0, 0);
}

static int tear_down(void **state)
{
    (void)state;
    close(test.channel_fds[0]);
    close(test.channel_fds[1]);
    return sem_destroy(&test.has_polled);
}

/* With providers that need no key, at these hosts. */
static int fetch(const char *first_url, const char *second_url)
{
    struct fetcher_job job = {.kind = FETCHER_EMISSIONS};
    struct error err = {""};

    job.emissions.count = 2;
    job.emissions.ca_path = "";
    for (size_t i = 0; i < PROXY_VARIABLES; i++)
        job.emissions.proxies[i] = "";
    for (size_t i = 0; i < 2; i++) {
        job.emissions.polls[i].provider = "rte";
        job.emissions.polls[i].zone = "FR";
        job.emissions.polls[i].url = i == 0 ? first_url : second_url;
    }
    if (!first_url) { /* it has no key */
        job.emissions.polls[0].provider = "electricity_maps";
        job.emissions.polls[0].url = "";
    }
    return fetch_emissions(&job, test.channel_fds[1], &err);
}

static void if_nobody_answers_for_five_minutes_another_process_is_asked_for(void **state)
{
    (void)state;
    test.polls = 2;
    assert_int_equal(fetch(DEAD, DEAD), -EHOSTUNREACH);
    assert_int_equal(test.waits, 1);
    assert_in_range(test.wait_us, 299 * USEC_PER_SEC, 300 * USEC_PER_SEC);
}

static void one_without_a_key_neither_asks_nor_answers(void **state)
{
    struct channel_factor record;
    struct channel_ping ping;

    (void)state;
    test.polls = 1;
    assert_int_equal(fetch(NULL, DEAD), -EHOSTUNREACH);
    assert_int_equal(channel_receive_factor(test.channel_fds[0], &record, &ping), 0);
    assert_int_equal(record.result, -ENOKEY);
}

static void any_answer_of_any_provider_is_enough(void **state)
{
    (void)state;
    test.polls = 2;
    assert_int_equal(fetch(DEAD, LIVE), -ECANCELED);
    assert_int_equal(test.waits, WAITS + 1);
}

/* After a death the first poll may be an hour away. */
static void before_the_first_poll_there_is_nothing_to_be_answered(void **state)
{
    (void)state;
    assert_int_equal(fetch(DEAD, DEAD), -ECANCELED);
    assert_int_equal(test.waits, WAITS + 1);
}

static void a_request_that_hangs_from_one_check_to_the_next_ends_the_process(void **state)
{
    (void)state;
    test.polls = 2;
    test.hangs = true;
    assert_int_equal(fetch(LIVE, LIVE), -ETIMEDOUT);
    assert_int_equal(test.waits, 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(if_nobody_answers_for_five_minutes_another_process_is_asked_for),
        TEST(one_without_a_key_neither_asks_nor_answers),
        TEST(any_answer_of_any_provider_is_enough),
        TEST(before_the_first_poll_there_is_nothing_to_be_answered),
        TEST(a_request_that_hangs_from_one_check_to_the_next_ends_the_process),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
