/* identity/runtimes/runtime_poller: a runtime is polled when names are missing, and costs nothing
 * else. */
#include "unit.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/macros.h"
#include "identity/gpu_access.h"
#include "identity/runtimes/runtime_poller.h"

#define A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

/* What the runtime of these tests answers; it is called on the runtime poller's thread. */
static atomic_int calls, result;
static const char *_Atomic knows;

static int scripted_list(const struct runtime_call *call, enum runtime_scope scope,
                         struct container_list *list, struct error *err)
{
    const char *id = atomic_load(&knows);
    int r = atomic_load(&result);

    (void)scope;
    if (id)
        assert_int_equal(
            container_list_add(
                list, &(struct container){{{id, "web", "", "", "", "img"}}, false, false, false}),
            0);
    atomic_fetch_add(&calls, 1);
    return r < 0 ? error_set(err, r, "scripted: %s: %s", call->socket_path, strerror(-r)) : 0;
}

static atomic_int inspects, inspect_result;

/* Every container has the second GPU. */
static int scripted_inspect(const struct runtime_call *call, const char *container_id,
                            struct gpu_access_list *gpus, struct error *err)
{
    int r = atomic_load(&inspect_result);

    (void)call;
    assert_int_equal(strlen(container_id), 64);
    atomic_fetch_add(&inspects, 1);
    if (r < 0)
        return error_set(err, r, "scripted: %s", strerror(-r));
    gpu_access_add_visible(gpus, span_of("1"));
    return 0;
}

enum { MANY = 150 };

static int list_many(const struct runtime_call *call, enum runtime_scope scope,
                     struct container_list *list, struct error *err)
{
    char id[65];

    (void)call;
    (void)scope;
    (void)err;
    for (unsigned i = 0; i < MANY; i++) {
        snprintf(id, sizeof(id), "%064x", i);
        assert_int_equal(container_list_add(list, &(struct container){.id = id}), 0);
    }
    atomic_fetch_add(&calls, 1);
    return 0;
}

/* One that accepts and never answers: a real server on the socket, and the real client. */
static int hanging_list(const struct runtime_call *call, enum runtime_scope scope,
                        struct container_list *list, struct error *err)
{
    const struct http_request request = {.url = "http://localhost/",
                                         .socket_path = call->socket_path,
                                         .timeout_us = 20 * call->timeout_us,
                                         .max_bytes = 1024};
    struct http_reply reply;
    int r;

    (void)list;
    (void)scope;
    atomic_fetch_add(&calls, 1);
    http_reply_init(&reply);
    r = http_client_do(call->client, &request, &reply, err);
    http_reply_done(&reply);
    return r;
}

static const char *const no_sockets[] = {NULL};
static const struct runtime_ops scripted = {
    .name = "scripted", .sockets = no_sockets, .list = scripted_list, .inspect = scripted_inspect};
static const struct runtime_ops crowded = {
    .name = "crowded", .sockets = no_sockets, .list = list_many, .inspect = scripted_inspect};
static const struct runtime_ops hanging = {
    .name = "hanging", .sockets = no_sockets, .list = hanging_list, .inspect = scripted_inspect};

/* A node of Kubernetes: A runs, B has ended and is listed with all only, behind `ended` others. */
static struct {
    atomic_int running_lists, all_lists, ended;
    atomic_bool too_long; /* the list of all */
} node;

static int list_node(const struct runtime_call *call, enum runtime_scope scope,
                     struct container_list *list, struct error *err)
{
    char id[65];

    assert_true(call->timeout_us > 3 * USEC_PER_SEC); /* which containerd was seen to exceed */
    atomic_fetch_add(scope == RUNTIME_ALL ? &node.all_lists : &node.running_lists, 1);
    if (scope == RUNTIME_ALL && atomic_load(&node.too_long))
        return error_set(err, -EFBIG, "too long");
    assert_int_equal(container_list_add(list, &(struct container){.id = A, .name = "runs"}), 0);
    for (int i = 0; scope == RUNTIME_ALL && i < atomic_load(&node.ended); i++) {
        snprintf(id, sizeof(id), "%064x", (unsigned)i);
        assert_int_equal(container_list_add(list, &(struct container){.id = id, .ended = true}), 0);
    }
    if (scope == RUNTIME_ALL)
        assert_int_equal(container_list_add(list, &(struct container){.id = B,
                                                                      .name = "short",
                                                                      .image = "sha256:1",
                                                                      .image_is_digest = true,
                                                                      .ended = true}),
                         0);
    return 0;
}

static atomic_int images, image_result;

static int scripted_image(const struct runtime_call *call, const char *container_id,
                          char ret_image[RUNTIME_TEXT_MAX + 1], struct error *err)
{
    int r = atomic_load(&image_result);

    (void)call;
    assert_string_equal(container_id, B);
    atomic_fetch_add(&images, 1);
    if (r < 0)
        return error_set(err, r, "scripted: %s", strerror(-r));
    strcpy(ret_image, "registry/short:1");
    return 0;
}

static const struct runtime_ops kubernetes = {.name = "kubernetes",
                                              .sockets = no_sockets,
                                              .list = list_node,
                                              .inspect = scripted_inspect,
                                              .find_image = scripted_image};

/* The system's clock, put forward. */
static atomic_uint_least64_t ahead_us;

static uint64_t shifted_us(const struct clock *clock)
{
    (void)clock;
    return clock_system.monotonic_us(&clock_system) + atomic_load(&ahead_us);
}

static const struct clock shifted = {.monotonic_us = shifted_us};

struct rig {
    char directory_path[64], path[96];
    int listener_fd;
    struct container_cache *container_cache;
    struct attachments *attachments; /* NULL: not wanted */
    struct runtime_poller *poller;
};

static void open_socket(struct rig *rig)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    strcpy(address.sun_path, rig->path);
    rig->listener_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(rig->listener_fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(rig->listener_fd, 4), 0);
}

static void close_socket(struct rig *rig)
{
    close(rig->listener_fd);
    unlink(rig->path);
}

static struct rig new_rig_with(const struct runtime_ops *runtime, bool attachments)
{
    struct rig rig = {.directory_path = "/tmp/wattribute-XXXXXX"};

    atomic_store(&ahead_us, 0);
    atomic_store(&calls, 0);
    atomic_store(&result, 0);
    atomic_store(&knows, NULL);
    atomic_store(&inspects, 0);
    atomic_store(&inspect_result, 0);
    atomic_store(&images, 0);
    atomic_store(&image_result, 0);
    atomic_store(&node.running_lists, 0);
    atomic_store(&node.all_lists, 0);
    atomic_store(&node.ended, 0);
    atomic_store(&node.too_long, false);
    if (attachments)
        assert_int_equal(attachments_new(&rig.attachments), 0);
    assert_non_null(mkdtemp(rig.directory_path));
    snprintf(rig.path, sizeof(rig.path), "%s/socket", rig.directory_path);
    assert_int_equal(container_cache_new(&rig.container_cache), 0);
    assert_int_equal(
        runtime_poller_new(&(struct runtime_poller_options){.runtime = runtime,
                                                            .name = runtime->name,
                                                            .socket_path = rig.path,
                                                            .container_cache = rig.container_cache,
                                                            .attachments = rig.attachments,
                                                            .clock = &shifted},
                           &rig.poller),
        0);
    return rig;
}

static struct rig new_rig(const struct runtime_ops *runtime)
{
    return new_rig_with(runtime, false);
}

static void end_rig(struct rig *rig)
{
    runtime_poller_free(rig->poller);
    attachments_free(rig->attachments);
    container_cache_free(rig->container_cache);
    unlink(rig->path);
    assert_int_equal(rmdir(rig->directory_path), 0);
}

static uint64_t now_us(void)
{
    return clock_system.monotonic_us(&clock_system);
}

/* Until the runtime poller's thread has made the condition true; 10 s are for ever. */
#define WAIT_FOR(condition)                                                                        \
    for (uint64_t until_us_ = now_us() + 10 * USEC_PER_SEC; !(condition); poll(NULL, 0, 1))        \
    assert_true(now_us() < until_us_)

static bool is_up(struct rig *rig)
{
    struct identity_status status;

    return runtime_poller_get_status(rig->poller, &status) && status.polled && status.up;
}

static bool knows_name(struct rig *rig, const char *id)
{
    struct container container;
    struct arena arena;
    bool found;

    arena_init(&arena, 1 << 12);
    found = container_cache_find(rig->container_cache, id, now_us(), &arena, &container);
    arena_done(&arena);
    return found;
}

static void a_runtime_is_polled_once_for_each_missing_name(void **state)
{
    struct rig rig = new_rig(&scripted);

    (void)state;
    open_socket(&rig);
    atomic_store(&knows, A);
    runtime_poller_probe(rig.poller);
    assert_int_equal(atomic_load(&calls), 0); /* nothing is wanted */
    container_cache_want(rig.container_cache, A, "", false, now_us());
    WAIT_FOR(knows_name(&rig, A));
    WAIT_FOR(is_up(&rig));
    container_cache_want(rig.container_cache, A, "", false, now_us());
    atomic_store(&knows, B);
    container_cache_want(rig.container_cache, B, "", false, now_us());
    WAIT_FOR(knows_name(&rig, B));
    assert_int_equal(atomic_load(&calls), 2);
    assert_int_equal(atomic_load(&inspects), 0); /* nor is that */
    close_socket(&rig);
    end_rig(&rig);
}

static void an_absent_runtime_is_neither_polled_nor_waited_for(void **state)
{
    struct rig rig = new_rig(&scripted);
    struct identity_status status;

    (void)state;
    container_cache_want(rig.container_cache, A, "", false, now_us());
    runtime_poller_probe(rig.poller);
    assert_false(runtime_poller_get_status(rig.poller, &status));
    assert_false(container_cache_may_learn(rig.container_cache, A));
    open_socket(&rig); /* it is started later */
    atomic_store(&knows, A);
    runtime_poller_probe(rig.poller);
    WAIT_FOR(knows_name(&rig, A));
    close_socket(&rig);
    runtime_poller_probe(rig.poller);
    assert_false(runtime_poller_get_status(rig.poller, &status));
    end_rig(&rig);
}

static void a_restarting_runtime_is_waited_for_but_not_for_ever(void **state)
{
    struct rig rig = new_rig(&scripted);

    (void)state;
    open_socket(&rig);
    runtime_poller_probe(rig.poller);
    close_socket(&rig);
    atomic_store(&ahead_us, 59 * USEC_PER_SEC);
    runtime_poller_probe(rig.poller);
    container_cache_want(rig.container_cache, A, "", false, now_us());
    assert_true(container_cache_may_learn(rig.container_cache, A));
    assert_int_equal(atomic_load(&calls), 0);
    atomic_store(&ahead_us, 61 * USEC_PER_SEC);
    runtime_poller_probe(rig.poller);
    assert_false(container_cache_may_learn(rig.container_cache, A));
    open_socket(&rig);
    atomic_store(&knows, A);
    runtime_poller_probe(rig.poller);
    WAIT_FOR(knows_name(&rig, A));
    close_socket(&rig);
    end_rig(&rig);
}

static void a_failure_is_reported_and_what_came_before_it_counts(void **state)
{
    struct rig rig = new_rig(&scripted);
    struct identity_status status;

    (void)state;
    open_socket(&rig);
    atomic_store(&result, -EBADMSG);
    atomic_store(&knows, A);
    container_cache_want(rig.container_cache, A, "", false, now_us());
    container_cache_want(rig.container_cache, B, "", false, now_us());
    runtime_poller_probe(rig.poller);
    WAIT_FOR(runtime_poller_get_status(rig.poller, &status) && status.errors > 0);
    assert_false(status.up);
    assert_non_null(strstr(status.error, rig.path));
    assert_true(knows_name(&rig, A));
    assert_true(container_cache_may_learn(rig.container_cache, B)); /* it was not an answer */
    close_socket(&rig);
    end_rig(&rig);
}

static void a_socket_of_something_else_counts_as_absent(void **state)
{
    struct rig rig = new_rig(&scripted);
    struct identity_status status;

    (void)state;
    open_socket(&rig);
    atomic_store(&result, -EOPNOTSUPP);
    container_cache_want(rig.container_cache, A, "", false, now_us());
    runtime_poller_probe(rig.poller);
    WAIT_FOR(!runtime_poller_get_status(rig.poller, &status));
    assert_int_equal(status.errors, 0);
    runtime_poller_probe(rig.poller); /* it is still the same socket */
    assert_false(runtime_poller_get_status(rig.poller, &status));
    assert_false(container_cache_may_learn(rig.container_cache, A));
    close_socket(&rig);
    end_rig(&rig);
}

static void one_that_hangs_is_left_at_once(void **state)
{
    struct rig rig = new_rig(&hanging);
    uint64_t began_us;

    (void)state;
    open_socket(&rig);
    container_cache_want(rig.container_cache, A, "", false, now_us());
    runtime_poller_probe(rig.poller);
    WAIT_FOR(atomic_load(&calls) == 1);
    assert_true(container_cache_may_learn(rig.container_cache, A)); /* no call waits for it */
    began_us = now_us();
    runtime_poller_free(rig.poller);
    rig.poller = NULL;
    assert_true(now_us() - began_us < 10 * USEC_PER_SEC); /* its deadline is a minute */
    close_socket(&rig);
    end_rig(&rig);
}

static void count_attachment(void *context, const struct attachment *attachment)
{
    assert_int_equal(attachment->kind, ALLOCATION_INDEX);
    assert_int_equal(attachment->index, 1);
    ++*(size_t *)context;
}

static size_t attached(struct rig *rig, uint64_t since_us)
{
    size_t count = 0;

    attachments_each(rig->attachments, since_us, count_attachment, &count);
    return count;
}

/* A second passes between two lists; the test does not wait for longer. */
static void probe_and_wait(struct rig *rig, int lists)
{
    runtime_poller_probe(rig->poller);
    WAIT_FOR(atomic_load(&calls) >= lists);
}

static void containers_are_listed_after_each_probe_and_inspected_once(void **state)
{
    struct rig rig = new_rig_with(&scripted, true);

    (void)state;
    open_socket(&rig);
    atomic_store(&knows, A);
    probe_and_wait(&rig, 1);
    WAIT_FOR(attached(&rig, 0) == 1);
    probe_and_wait(&rig, 2);
    assert_int_equal(atomic_load(&calls), 2);
    assert_int_equal(atomic_load(&inspects), 1);
    atomic_store(&knows, NULL); /* it ended */
    probe_and_wait(&rig, 3);
    WAIT_FOR(attached(&rig, 0) == 0);
    assert_int_equal(atomic_load(&inspects), 1);
    close_socket(&rig);
    end_rig(&rig);
}

static void one_that_vanishes_costs_one_question(void **state)
{
    struct rig rig = new_rig_with(&scripted, true);

    (void)state;
    open_socket(&rig);
    atomic_store(&knows, A);
    atomic_store(&inspect_result, -ESRCH);
    probe_and_wait(&rig, 1);
    WAIT_FOR(atomic_load(&inspects) == 1);
    atomic_store(&inspect_result, 0);
    probe_and_wait(&rig, 2);
    runtime_poller_free(rig.poller); /* what it did last is done */
    rig.poller = NULL;
    assert_int_equal(atomic_load(&inspects), 1);
    assert_int_equal(attached(&rig, 0), 0);
    close_socket(&rig);
    end_rig(&rig);
}

static void an_inspection_that_fails_is_an_error_and_repeated(void **state)
{
    struct rig rig = new_rig_with(&scripted, true);
    struct identity_status status;

    (void)state;
    open_socket(&rig);
    atomic_store(&knows, A);
    atomic_store(&inspect_result, -EACCES);
    probe_and_wait(&rig, 1);
    WAIT_FOR(runtime_poller_get_status(rig.poller, &status) && status.errors == 1);
    assert_true(status.up); /* names come */
    atomic_store(&inspect_result, 0);
    for (; attached(&rig, 0) == 0; poll(NULL, 0, 10))
        runtime_poller_probe(rig.poller);
    assert_int_equal(atomic_load(&inspects), 2);
    close_socket(&rig);
    end_rig(&rig);
}

static void of_many_containers_64_are_inspected_after_each_list(void **state)
{
    struct rig rig = new_rig_with(&crowded, true);

    (void)state;
    open_socket(&rig);
    for (int lists = 1; lists <= 3; lists++) {
        probe_and_wait(&rig, lists);
        WAIT_FOR(attached(&rig, 0) == (size_t)MIN(lists * RUNTIME_POLLER_INSPECTS_MAX, MANY));
        assert_int_equal(atomic_load(&inspects), MIN(lists * RUNTIME_POLLER_INSPECTS_MAX, MANY));
    }
    close_socket(&rig);
    end_rig(&rig);
}

static void inspections_that_time_out_end_the_round(void **state)
{
    struct rig rig = new_rig_with(&crowded, true);
    struct identity_status status;

    (void)state;
    open_socket(&rig);
    atomic_store(&inspect_result, -ETIMEDOUT);
    probe_and_wait(&rig, 1);
    WAIT_FOR(runtime_poller_get_status(rig.poller, &status) && status.errors == 1);
    atomic_store(&inspect_result, 0); /* the one that hung is not the first of the next round */
    probe_and_wait(&rig, 2);
    WAIT_FOR(attached(&rig, 0) == RUNTIME_POLLER_INSPECTS_MAX);
    assert_int_equal(atomic_load(&inspects), 1 + RUNTIME_POLLER_INSPECTS_MAX);
    close_socket(&rig);
    end_rig(&rig);
}

static void a_list_that_fails_changes_nothing_but_grows_old(void **state)
{
    struct rig rig = new_rig_with(&scripted, true);
    struct identity_status status;
    uint64_t since_us;

    (void)state;
    open_socket(&rig);
    atomic_store(&knows, A);
    probe_and_wait(&rig, 1);
    WAIT_FOR(attached(&rig, 0) == 1);
    since_us = now_us();
    atomic_store(&knows, NULL);
    atomic_store(&result, -ETIMEDOUT);
    probe_and_wait(&rig, 2);
    WAIT_FOR(runtime_poller_get_status(rig.poller, &status) && status.errors == 1);
    assert_int_equal(attached(&rig, 0), 1);
    assert_int_equal(attached(&rig, since_us), 0);
    close_socket(&rig);
    end_rig(&rig);
}

static bool is_image(struct rig *rig, const char *id, const char *image)
{
    struct container container;
    struct arena arena;
    bool is;

    arena_init(&arena, 1 << 12);
    is = container_cache_find(rig->container_cache, id, now_us(), &arena, &container) &&
         strcmp(container.image, image) == 0;
    arena_done(&arena);
    return is;
}

static void a_container_that_has_ended_is_named_by_the_one_list_of_all(void **state)
{
    struct rig rig = new_rig_with(&kubernetes, true);

    (void)state;
    open_socket(&rig);
    atomic_store(&node.ended, RUNTIME_POLLER_ENDED_MAX - 1);
    container_cache_want(rig.container_cache, B, "", false, now_us());
    runtime_poller_probe(rig.poller);
    WAIT_FOR(is_image(&rig, B, "registry/short:1"));
    assert_int_equal(atomic_load(&node.all_lists), 1);
    assert_int_equal(atomic_load(&node.running_lists), 0);
    WAIT_FOR(attached(&rig, 0) == 1); /* A alone: the others have ended */
    assert_int_equal(atomic_load(&inspects), 1);
    assert_false(
        knows_name(&rig, "0000000000000000000000000000000000000000000000000000000000000000"));
    runtime_poller_probe(rig.poller); /* where no name is missing, only what runs is listed */
    WAIT_FOR(atomic_load(&node.running_lists) == 1);
    assert_int_equal(atomic_load(&node.all_lists), 1);
    assert_int_equal(atomic_load(&images), 1);
    close_socket(&rig);
    end_rig(&rig);
}

static void where_thousands_have_ended_they_are_listed_only_if_a_name_is_still_missing(void **state)
{
    struct rig rig = new_rig(&kubernetes);

    (void)state;
    open_socket(&rig);
    atomic_store(&node.ended, RUNTIME_POLLER_ENDED_MAX);
    container_cache_want(rig.container_cache, B, "", false, now_us());
    runtime_poller_probe(rig.poller);
    WAIT_FOR(knows_name(&rig, B));
    WAIT_FOR(knows_name(&rig, A));
    container_cache_expire(rig.container_cache, UINT64_MAX);
    container_cache_want(rig.container_cache, A, "", false, now_us());
    WAIT_FOR(knows_name(&rig, A));
    assert_int_equal(atomic_load(&node.running_lists), 1);
    assert_int_equal(atomic_load(&node.all_lists), 1);
    container_cache_want(rig.container_cache, B, "", false, now_us());
    WAIT_FOR(knows_name(&rig, B));
    assert_int_equal(atomic_load(&node.running_lists), 2);
    assert_int_equal(atomic_load(&node.all_lists), 2);
    close_socket(&rig);
    end_rig(&rig);
}

static void a_list_of_all_that_is_too_long_costs_no_name_of_what_runs(void **state)
{
    struct rig rig = new_rig(&kubernetes);

    (void)state;
    open_socket(&rig);
    atomic_store(&node.too_long, true);
    container_cache_want(rig.container_cache, A, "", false, now_us());
    container_cache_want(rig.container_cache, B, "", false, now_us());
    runtime_poller_probe(rig.poller);
    WAIT_FOR(knows_name(&rig, A));
    WAIT_FOR(is_up(&rig));
    assert_false(knows_name(&rig, B));
    close_socket(&rig);
    end_rig(&rig);
}

static void an_image_without_a_name_is_its_digest_and_a_failure_is_repeated(void **state)
{
    static const int results[] = {-ENODATA, -ESRCH, -ETIMEDOUT};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(results); i++) {
        struct rig rig = new_rig(&kubernetes);

        open_socket(&rig);
        atomic_store(&image_result, results[i]);
        container_cache_want(rig.container_cache, B, "", false, now_us());
        runtime_poller_probe(rig.poller);
        WAIT_FOR(!container_cache_may_learn(rig.container_cache, B));
        assert_true(is_image(&rig, B, "sha256:1"));
        assert_int_equal(atomic_load(&images),
                         results[i] == -ETIMEDOUT ? CONTAINER_CACHE_IMAGE_TRIES_MAX : 1);
        close_socket(&rig);
        end_rig(&rig);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_runtime_is_polled_once_for_each_missing_name),
        cmocka_unit_test(an_absent_runtime_is_neither_polled_nor_waited_for),
        cmocka_unit_test(a_restarting_runtime_is_waited_for_but_not_for_ever),
        cmocka_unit_test(a_failure_is_reported_and_what_came_before_it_counts),
        cmocka_unit_test(a_socket_of_something_else_counts_as_absent),
        cmocka_unit_test(one_that_hangs_is_left_at_once),
        cmocka_unit_test(containers_are_listed_after_each_probe_and_inspected_once),
        cmocka_unit_test(one_that_vanishes_costs_one_question),
        cmocka_unit_test(an_inspection_that_fails_is_an_error_and_repeated),
        cmocka_unit_test(of_many_containers_64_are_inspected_after_each_list),
        cmocka_unit_test(inspections_that_time_out_end_the_round),
        cmocka_unit_test(a_list_that_fails_changes_nothing_but_grows_old),
        cmocka_unit_test(a_container_that_has_ended_is_named_by_the_one_list_of_all),
        cmocka_unit_test(
            where_thousands_have_ended_they_are_listed_only_if_a_name_is_still_missing),
        cmocka_unit_test(a_list_of_all_that_is_too_long_costs_no_name_of_what_runs),
        cmocka_unit_test(an_image_without_a_name_is_its_digest_and_a_failure_is_repeated),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
