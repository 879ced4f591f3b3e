/* collector/asker_process: what the asker is told and what it gets of our environment. This test is
 * its own asker: it says on the channel what it was given, then waits for its end. */
#include "unit.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collector/asker_process.h"
#include "config/asker_keys.h"
#include "core/buffer.h"
#include "core/macros.h"
#include "fetcher/asker.h"

enum { TEXT_BYTES = 4096 };

static void put_all(struct buffer *text, char *const *words)
{
    for (; *words; words++) {
        buffer_str(text, *words);
        buffer_char(text, '\n');
    }
}

static int be_asker(char *const *argv)
{
    struct pollfd channel = {.fd = CHILD_CHANNEL_FD};
    struct asker_keys keys;
    struct buffer text;

    buffer_init(&text, TEXT_BYTES);
    put_all(&text, argv);
    buffer_str(&text, "--\n");
    put_all(&text, environ);
    if (asker_keys_unseal(ASKER_KEYS_FD, &keys) < 0)
        return 3;
    buffer_str(&text, "--\n");
    buffer_str(&text, keys.values[1]);
    if (send(CHILD_CHANNEL_FD, text.data, text.len, 0) < 0)
        return 1;
    buffer_done(&text);
    return poll(&channel, 1, -1) == 1 ? 0 : 2;
}

static const struct asker_flags two = {
    .ca_path = "",
    .interval_us = 900000000,
    .basis = PRICE_DIRECT,
    .inquiries = {{"watttime", "CAISO_NORTH", ""}, {"rte", "FR", "https://127.0.0.1:1"}},
    .count = 2,
};

/* What it says. */
static void hear(const struct asker_process *asker, char *text)
{
    struct pollfd channel = {.fd = asker->fd, .events = POLLIN};
    ssize_t n;

    assert_int_equal(poll(&channel, 1, -1), 1);
    n = recv(asker->fd, text, TEXT_BYTES - 1, 0);
    assert_true(n > 0);
    text[n] = '\0';
}

/* The keys, for the asker and for nobody else. */
static int start_at(struct asker_process *asker, uint64_t now_us)
{
    const struct asker_keys keys = {.values = {"", "entsoe's"}};
    struct error err;
    int fd, r;

    assert_int_equal(asker_keys_seal(&keys, &fd), 0);
    r = asker_process_start(asker, fd, now_us, &err);
    close(fd);
    return r;
}

static void start(struct asker_process *asker, const struct asker_flags *flags, char *text)
{
    asker_process_init(asker,
                       &(struct asker_process_options){flags, LOG_LEVEL_WARN, LOG_FORMAT_JSON});
    assert_int_equal(asker->fd, -1);
    assert_int_equal(start_at(asker, 7), 0);
    assert_int_equal(asker->restart_us, 0);
    hear(asker, text);
}

static void set_environment(void)
{
    static const char *const names[] = {
        "https_proxy",  "HTTPS_PROXY",       "all_proxy",         "ALL_PROXY",
        "no_proxy",     "NO_PROXY",          "http_proxy",        "ELECTRICITY_MAPS_TOKEN",
        "ENTSOE_TOKEN", "WATTTIME_USERNAME", "WATTTIME_PASSWORD", "RES_OPTIONS",
        "SECRET"};

    unsetenv("LD_LIBRARY_PATH");
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        setenv(names[i], names[i], 1);
}

static void it_is_given_its_flags_and_the_keys_of_whom_it_asks(void **state)
{
    struct asker_process asker;
    char text[TEXT_BYTES];

    (void)state;
    set_environment();
    start(&asker, &two, text);
    assert_string_equal(text, "wattribute\nasker\n2\n1\nfirst\n900000000\n2\n\n"
                              "watttime\nCAISO_NORTH\n\nrte\nFR\nhttps://127.0.0.1:1\n"
                              "--\nRES_OPTIONS=timeout:2 attempts:2\n"
                              "https_proxy=https_proxy\nHTTPS_PROXY=HTTPS_PROXY\n"
                              "all_proxy=all_proxy\nALL_PROXY=ALL_PROXY\n"
                              "no_proxy=no_proxy\nNO_PROXY=NO_PROXY\n"
                              "WATTTIME_USERNAME=WATTTIME_USERNAME\n"
                              "WATTTIME_PASSWORD=WATTTIME_PASSWORD\n--\nentsoe's");
    asker_process_stop(&asker, 60 * USEC_PER_SEC);
    assert_int_equal(asker.fd, -1);
    assert_int_equal(asker.child.pid, 0);
}

static void as_many_as_it_may_ask_fit(void **state)
{
    struct asker_flags all = {.ca_path = "ca.pem", .count = ASKER_INQUIRIES_MAX};
    struct asker_process asker;
    char text[TEXT_BYTES], *at = text;

    (void)state;
    set_environment();
    setenv("LD_LIBRARY_PATH", "/nonexistent", 1);
    for (size_t i = 0; i < all.count; i++) {
        all.inquiries[i].provider = i % 2 ? "entsoe" : "electricity_maps";
        all.inquiries[i].zone = "FR";
        all.inquiries[i].url = "";
    }
    start(&asker, &all, text);
    for (size_t i = 0; i < all.count; i++) {
        at = strstr(at, "\nFR\n\n");
        assert_non_null(at);
        at++;
    }
    assert_non_null(strstr(at, "\nLD_LIBRARY_PATH=/nonexistent\nELECTRICITY_MAPS_TOKEN="
                               "ELECTRICITY_MAPS_TOKEN\nENTSOE_TOKEN=ENTSOE_TOKEN\n"));
    asker_process_stop(&asker, 60 * USEC_PER_SEC);
    unsetenv("LD_LIBRARY_PATH");
}

static void one_that_dies_is_due_again(void **state)
{
    struct asker_process asker;
    char text[TEXT_BYTES];
    siginfo_t info;
    int status;

    (void)state;
    start(&asker, &two, text);
    assert_false(asker_process_reap(&asker, 8, &status));
    asker_process_kill(&asker);
    assert_int_equal(waitid(P_PID, (id_t)asker.child.pid, &info, WEXITED | WNOWAIT), 0);
    assert_true(asker_process_reap(&asker, 8, &status));
    assert_int_equal(WTERMSIG(status), SIGKILL);
    assert_int_equal(asker.fd, -1);
    assert_int_equal(asker.restart_us, 8 + 100000);
}

static void one_that_is_replaced_ends_by_itself_and_the_next_asks_as_soon_as_the_first(void **state)
{
    struct asker_process asker;
    char text[TEXT_BYTES];
    siginfo_t info;
    int status;

    (void)state;
    start(&asker, &two, text);
    assert_true(asker.has_run);
    asker_process_replace(&asker);
    assert_int_equal(asker.fd, -1);
    assert_true(asker.is_ending);
    assert_int_equal(waitid(P_PID, (id_t)asker.child.pid, &info, WEXITED | WNOWAIT), 0);
    assert_true(asker_process_reap(&asker, 20 * USEC_PER_SEC, &status));
    assert_int_equal(status, 0);
    assert_false(asker.is_ending);
    assert_int_equal(asker.restart_us, 20 * USEC_PER_SEC);
    assert_int_equal(start_at(&asker, 20 * USEC_PER_SEC), 0);
    hear(&asker, text);
    assert_non_null(strstr(text, "\nfirst\n"));
    /* But one that dies is followed by one that takes its time. */
    asker_process_kill(&asker);
    assert_int_equal(waitid(P_PID, (id_t)asker.child.pid, &info, WEXITED | WNOWAIT), 0);
    assert_true(asker_process_reap(&asker, 40 * USEC_PER_SEC, &status));
    assert_int_equal(start_at(&asker, 40 * USEC_PER_SEC), 0);
    hear(&asker, text);
    assert_non_null(strstr(text, "\nagain\n"));
    asker_process_stop(&asker, 60 * USEC_PER_SEC);
}

static void where_none_runs_there_is_nothing_to_end(void **state)
{
    struct asker_process asker;

    (void)state;
    asker_process_init(&asker,
                       &(struct asker_process_options){&two, LOG_LEVEL_WARN, LOG_FORMAT_JSON});
    asker_process_replace(&asker);
    assert_false(asker.is_ending);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_given_its_flags_and_the_keys_of_whom_it_asks),
        cmocka_unit_test(as_many_as_it_may_ask_fit),
        cmocka_unit_test(one_that_dies_is_due_again),
        cmocka_unit_test(
            one_that_is_replaced_ends_by_itself_and_the_next_asks_as_soon_as_the_first),
        cmocka_unit_test(where_none_runs_there_is_nothing_to_end),
    };

    if (argc > 1)
        return be_asker(argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
