/* net/auth: passwords, the header, what is remembered, and the thread. */
#include "unit.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "core/buffer.h"
#include "core/macros.h"
#include "net/auth.h"

/* Of "hunter2", "U*U" and "correct horse". */
#define HUNTER2 "$2b$04$kddmW3/WKIOo31gAQg6EFeAaeVhyi0qUjxJBOa53FmqDmKqSQYoN6"
#define U_U     "$2y$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW"
#define HORSE   "$2b$04$DTWZ4zoQyzvu2Rj8sMZrJOpBm0DZj2bDD0xQjeZFQ3jRZ0SOl0f4i"

#define ALICE_HUNTER2 "Basic YWxpY2U6aHVudGVyMg=="
#define ALICE_HUNTER3 "Basic YWxpY2U6aHVudGVyMw=="
#define BOB_HUNTER2   "Basic Ym9iOmh1bnRlcjI="
#define EVE_HUNTER2   "Basic ZXZlOmh1bnRlcjI="

static void only_hashes_of_bcrypt_are_taken_for_hashes(void **state)
{
    static const struct {
        const char *text;
        unsigned cost; /* 0: none */
    } cases[] = {
        {HUNTER2, 4},
        {U_U, 5},
        {"$2a$31$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW", 31},
        {"", 0},
        {"*0", 0},
        {"ab", 0},
        {"abJnggxhB/yWI", 0}, /* DES */
        {"$1$abc$BXBqpb9BZcZhXLgbee.0s/", 0},
        {"$2x$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW", 0},
        {"$2$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeWx", 0},
        {"$2y$5$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeWx", 0},
        {"$2y$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOe", 0},
        {"$2y$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeWW", 0},
        {"$2y$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyO:W", 0},
        {"$2\0$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW", 0},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        unsigned cost = 0;

        assert_int_equal(auth_is_hash(span_of(cases[i].text), &cost), cases[i].cost > 0);
        assert_int_equal(cost, cases[i].cost);
    }
}

static void the_header_is_read_strictly(void **state)
{
    static const struct {
        const char *header, *user, *password; /* NULL: refused */
    } cases[] = {
        {ALICE_HUNTER2, "alice", "hunter2"},
        {"bAsIc YWxpY2U6aHVudGVyMg==", "alice", "hunter2"},
        {"Basic Og==", "", ""},
        {"Basic YTo=", "a", ""},
        {"Basic OmI=", "", "b"},
        {"Basic YTpiOmM=", "a", "b:c"},
        {NULL, NULL, NULL},
        {"", NULL, NULL},
        {"Basic", NULL, NULL},
        {"Basic ", NULL, NULL},
        {"Basic  YTpi", NULL, NULL},
        {"Basic YTpi ", NULL, NULL},
        {"Basic YTpi\n", NULL, NULL},
        {"Basic YTo", NULL, NULL},
        {"Basic YTo==", NULL, NULL},
        {"Basic ====", NULL, NULL},
        {"Basic =YTo", NULL, NULL},
        {"Basic Y=Qo", NULL, NULL},
        {"Basic YWI=", NULL, NULL}, /* no colon */
        {"Basic YT-i", NULL, NULL},
        {"Bearer YTpi", NULL, NULL},
        {"Digest YTpi", NULL, NULL},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct auth_header auth;
        int r = auth_header_parse(cases[i].header, &auth);

        if (r != (cases[i].user ? 0 : -EINVAL))
            fail_msg("'%s' gave %d", cases[i].header, r);
        if (r == 0) {
            assert_true(span_equals(auth.user, cases[i].user));
            assert_true(span_equals(auth.password, cases[i].password));
        }
    }
}

static void a_header_longer_than_the_limit_is_refused(void **state)
{
    char header[8 + 4 * AUTH_HEADER_MAX_BYTES];
    struct auth_header auth;

    (void)state;
    for (size_t groups = AUTH_HEADER_MAX_BYTES / 3 - 1; groups < AUTH_HEADER_MAX_BYTES / 3 + 2;
         groups++) {
        strcpy(header, "Basic ");
        for (size_t i = 0; i < groups; i++)
            strcat(header, "YTpi");
        assert_int_equal(auth_header_parse(header, &auth),
                         groups * 3 <= AUTH_HEADER_MAX_BYTES ? 0 : -EINVAL);
    }
}

static const struct auth_user users[] = {{"alice", HUNTER2}, {"bob", HORSE}};

/* What the thread says of the header, which must be asked. */
static bool wait_for_verdict(struct auth *auth, const char *header)
{
    struct pollfd ready = {.fd = auth_fd(auth), .events = POLLIN};
    uint64_t id, done = 0;
    bool ok = false;

    assert_int_equal(auth_check(auth, header, &id), AUTH_PENDING);
    assert_int_equal(poll(&ready, 1, 10000), 1);
    assert_true(auth_next(auth, &done, &ok));
    assert_int_equal(done, id);
    assert_false(auth_next(auth, &done, &ok));
    return ok;
}

static void a_password_matches_its_own_hash_and_no_other(void **state)
{
    static const char with_nul[] = "alice:hunter2\0x";
    static const struct {
        struct span pair;
        bool matches;
    } cases[] = {
        {{"alice:hunter2", 13}, true}, {{"carol:U*U", 9}, true},
        {{"bob:hunter2", 11}, false},  {{"alice:", 6}, false},
        {{"alice:hunter", 12}, false}, {{"alice:" HUNTER2, 66}, false},
        {{with_nul, 15}, false},       {{"carol:hunter2", 13}, false},
    };
    const struct auth_user three[] = {{"alice", HUNTER2}, {"bob", HORSE}, {"carol", U_U}};
    struct auth *auth;

    (void)state;
    assert_int_equal(auth_new(NULL, &auth), 0);
    assert_int_equal(auth_set_users(auth, three, ARRAY_SIZE(three)), 0);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct buffer header;

        buffer_init(&header, 1024);
        buffer_str(&header, "Basic ");
        buffer_base64(&header, cases[i].pair);
        buffer_char(&header, '\0');
        assert_int_equal(wait_for_verdict(auth, header.data), cases[i].matches);
        buffer_done(&header);
    }
    auth_free(auth);
}

static void a_password_longer_than_the_limit_is_refused_unchecked(void **state)
{
    struct auth *auth;
    uint64_t id;

    (void)state;
    assert_int_equal(auth_new(NULL, &auth), 0);
    assert_int_equal(auth_set_users(auth, users, ARRAY_SIZE(users)), 0);
    for (size_t len = AUTH_PASSWORD_MAX_BYTES; len <= AUTH_PASSWORD_MAX_BYTES + 1; len++) {
        struct buffer header;
        char pair[600] = "alice:";

        memset(pair + 6, 'x', len);
        buffer_init(&header, 1024);
        buffer_str(&header, "Basic ");
        buffer_base64(&header, (struct span){pair, 6 + len});
        buffer_char(&header, '\0');
        assert_int_equal(auth_check(auth, header.data, &id),
                         len <= AUTH_PASSWORD_MAX_BYTES ? AUTH_PENDING : AUTH_NO);
        buffer_done(&header);
    }
    auth_free(auth);
}

static void a_right_password_is_checked_once_and_a_wrong_one_every_time(void **state)
{
    struct auth *auth;
    uint64_t id;

    (void)state;
    assert_int_equal(auth_new(NULL, &auth), 0);
    assert_int_equal(auth_check(auth, NULL, &id), AUTH_YES); /* no users */
    assert_int_equal(auth_set_users(auth, users, ARRAY_SIZE(users)), 0);
    assert_int_equal(auth_check(auth, NULL, &id), AUTH_NO);
    assert_int_equal(auth_check(auth, "Basic x", &id), AUTH_NO);
    assert_true(wait_for_verdict(auth, ALICE_HUNTER2));
    assert_int_equal(auth_check(auth, ALICE_HUNTER2, &id), AUTH_YES);
    for (int i = 0; i < 2; i++) {
        assert_false(wait_for_verdict(auth, ALICE_HUNTER3));
        assert_false(wait_for_verdict(auth, BOB_HUNTER2));
        /* Who is not known is checked against alice's hash, and not let in though it matches. */
        assert_false(wait_for_verdict(auth, EVE_HUNTER2));
    }
    auth_free(auth);
}

static void a_remembered_password_is_void_once_the_user_is_gone_or_has_another_hash(void **state)
{
    static const struct auth_user others[] = {{"alice", HORSE}};
    struct auth *auth;

    (void)state;
    assert_int_equal(auth_new(NULL, &auth), 0);
    assert_int_equal(auth_set_users(auth, users, ARRAY_SIZE(users)), 0);
    assert_true(wait_for_verdict(auth, ALICE_HUNTER2));
    assert_int_equal(auth_set_users(auth, others, ARRAY_SIZE(others)), 0);
    assert_false(wait_for_verdict(auth, ALICE_HUNTER2));
    assert_int_equal(auth_set_users(auth, users + 1, 1), 0);
    assert_false(wait_for_verdict(auth, ALICE_HUNTER2));
    auth_free(auth);
}

static void a_remembered_password_survives_a_new_list_of_users(void **state)
{
    static const struct auth_user others[] = {{"bob", HORSE}, {"eve", U_U}, {"alice", HUNTER2}};
    struct auth *auth;
    uint64_t id;

    (void)state;
    assert_int_equal(auth_new(NULL, &auth), 0);
    assert_int_equal(auth_set_users(auth, users, ARRAY_SIZE(users)), 0);
    assert_true(wait_for_verdict(auth, ALICE_HUNTER2));
    assert_int_equal(auth_set_users(auth, others, ARRAY_SIZE(others)), 0);
    assert_int_equal(auth_check(auth, ALICE_HUNTER2, &id), AUTH_YES);
    assert_false(wait_for_verdict(auth, BOB_HUNTER2));
    assert_false(wait_for_verdict(auth, EVE_HUNTER2));
    auth_free(auth);
}

static int refuse(void)
{
    return -EPERM;
}

static void checks_over_the_limit_are_rejected_and_all_others_get_a_result(void **state)
{
    struct auth *auth;
    uint64_t id, told = 0;
    size_t waiting = 0;
    bool ok;

    (void)state;
    assert_int_equal(auth_new(NULL, &auth), 0);
    assert_int_equal(auth_set_users(auth, users, ARRAY_SIZE(users)), 0);
    /* The thread takes one at a time, a millisecond each: asking is faster. */
    while (waiting < 10000 && auth_check(auth, ALICE_HUNTER3, &id) == AUTH_PENDING)
        waiting++;
    assert_in_range(waiting, AUTH_WAITING_MAX, 9999);
    while (told < waiting) {
        struct pollfd ready = {.fd = auth_fd(auth), .events = POLLIN};

        assert_int_equal(poll(&ready, 1, 10000), 1);
        while (auth_next(auth, &id, &ok)) {
            assert_int_equal(id, ++told);
            assert_false(ok);
        }
    }
    auth_free(auth);
}

static void passwords_are_rejected_if_the_thread_cannot_enter_its_sandbox(void **state)
{
    struct auth *auth;
    uint64_t id;
    enum auth_verdict verdict = AUTH_PENDING;

    (void)state;
    assert_int_equal(auth_new(refuse, &auth), 0);
    assert_int_equal(auth_set_users(auth, users, ARRAY_SIZE(users)), 0);
    for (int i = 0; i <= AUTH_WAITING_MAX + 1; i++)
        verdict = auth_check(auth, ALICE_HUNTER2, &id);
    assert_int_equal(verdict, AUTH_BUSY);
    auth_free(auth);
}

static void invalid_users_are_refused_and_the_old_ones_stay(void **state)
{
    static const struct auth_user bad[] = {{"alice", HUNTER2}, {"eve", "$1$x"}};
    struct auth *auth;
    uint64_t id;

    (void)state;
    assert_int_equal(auth_new(NULL, &auth), 0);
    assert_int_equal(auth_set_users(auth, users, ARRAY_SIZE(users)), 0);
    assert_int_equal(auth_set_users(auth, bad, ARRAY_SIZE(bad)), -EINVAL);
    assert_int_equal(auth_check(auth, NULL, &id), AUTH_NO);
    assert_true(wait_for_verdict(auth, ALICE_HUNTER2));
    auth_free(auth);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_hashes_of_bcrypt_are_taken_for_hashes),
        cmocka_unit_test(a_password_matches_its_own_hash_and_no_other),
        cmocka_unit_test(the_header_is_read_strictly),
        cmocka_unit_test(a_header_longer_than_the_limit_is_refused),
        cmocka_unit_test(a_password_longer_than_the_limit_is_refused_unchecked),
        cmocka_unit_test(a_right_password_is_checked_once_and_a_wrong_one_every_time),
        cmocka_unit_test(a_remembered_password_is_void_once_the_user_is_gone_or_has_another_hash),
        cmocka_unit_test(a_remembered_password_survives_a_new_list_of_users),
        cmocka_unit_test(checks_over_the_limit_are_rejected_and_all_others_get_a_result),
        cmocka_unit_test(passwords_are_rejected_if_the_thread_cannot_enter_its_sandbox),
        cmocka_unit_test(invalid_users_are_refused_and_the_old_ones_stay),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
