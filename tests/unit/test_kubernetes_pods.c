/* fetcher/kubernetes/kubernetes_pods: names from a PodList and a watch, and nothing from
 * malformed ones. */
#include "unit.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"
#include "fetcher/kubernetes/kubernetes_pods.h"

#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde"
#define A   HEX "a"
#define B   HEX "b"
#define C   HEX "c"

#define POD                                                                                         \
    "{\"metadata\":{\"name\":\"train-0\",\"namespace\":\"ml\",\"uid\":\"u-1\","                     \
    "\"resourceVersion\":\"812\"},\"spec\":{\"nodeName\":\"n\"},\"status\":{\"phase\":\"Running\"," \
    "\"containerStatuses\":[{\"name\":\"worker\",\"image\":\"trainer:1\","                          \
    "\"containerID\":\"containerd://" A "\"},{\"name\":\"starting\",\"image\":\"x\"}],"             \
    "\"initContainerStatuses\":[{\"name\":\"fetch\",\"image\":\"curl:8\","                          \
    "\"containerID\":\"cri-o://" B "\"}],"                                                          \
    "\"ephemeralContainerStatuses\":[{\"name\":\"debug\",\"containerID\":\"docker://" C "\"}]}}"

#define STATIC_POD                                                                                 \
    "{\"metadata\":{\"name\":\"etcd-n\",\"namespace\":\"kube-system\",\"uid\":\"of-the-mirror\","  \
    "\"annotations\":{\"kubernetes.io/config.hash\":\"abc123\","                                   \
    "\"kubernetes.io/config.mirror\":\"abc123\"}},\"status\":{\"containerStatuses\":["             \
    "{\"name\":\"etcd\",\"containerID\":\"containerd://" A "\",\"image\":\"etcd:3\"}]}}"

#define LIST(metadata, items)                                                                      \
    "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{" metadata "},\"items\":[" items "]}"

static int parse(const char *text, struct container_list *list, struct kubernetes_page *page)
{
    container_list_init(list);
    return kubernetes_parse_list(span_of(text), list, page);
}

static void assert_container(const struct container *container, const char *id, const char *name,
                             const char *pod_uid, const char *image)
{
    assert_string_equal(container->id, id);
    assert_string_equal(container->name, name);
    assert_string_equal(container->pod_uid, pod_uid);
    assert_string_equal(container->image, image);
}

static void every_pod_is_listed_and_every_container_of_it_with_an_id(void **state)
{
    struct container_list list;
    struct kubernetes_page page;

    (void)state;
    assert_int_equal(parse(LIST("\"resourceVersion\":\"900\"", POD), &list, &page), 0);
    assert_int_equal(list.count, 4);
    assert_container(&list.items[0], "", "", "u-1", "");
    assert_container(&list.items[1], A, "worker", "u-1", "trainer:1");
    assert_container(&list.items[2], B, "fetch", "u-1", "curl:8");
    assert_container(&list.items[3], C, "debug", "u-1", "");
    for (size_t i = 0; i < list.count; i++) {
        assert_string_equal(list.items[i].namespace, "ml");
        assert_string_equal(list.items[i].pod, "train-0");
    }
    assert_string_equal(page.version, "900");
    assert_string_equal(page.next, "");
    container_list_done(&list);
}

static void a_page_names_the_next_one(void **state)
{
    struct container_list list;
    struct kubernetes_page page;

    (void)state;
    assert_int_equal(
        parse(LIST("\"resourceVersion\":\"9\",\"continue\":\"abc=\"", POD "," POD), &list, &page),
        0);
    assert_int_equal(list.count, 8);
    assert_string_equal(page.next, "abc=");
    container_list_done(&list);
    assert_int_equal(parse(LIST("\"resourceVersion\":\"9\",\"continue\":\"\"", ""), &list, &page),
                     0);
    assert_string_equal(page.next, "");
    container_list_done(&list);
}

static void a_static_pod_goes_by_the_hash_that_the_node_knows(void **state)
{
    struct container_list list;
    struct kubernetes_page page;

    (void)state;
    assert_int_equal(parse(LIST("\"resourceVersion\":\"9\"", STATIC_POD), &list, &page), 0);
    assert_int_equal(list.count, 2);
    assert_container(&list.items[0], "", "", "abc123", "");
    assert_container(&list.items[1], A, "etcd", "abc123", "etcd:3");
    container_list_done(&list);
}

static void a_hash_alone_does_not_make_a_static_pod(void **state)
{
    struct container_list list;
    struct kubernetes_page page;

    (void)state;
    assert_int_equal(
        parse(LIST("\"resourceVersion\":\"9\"",
                   "{\"metadata\":{\"name\":\"p\",\"uid\":\"u-2\",\"annotations\":{"
                   "\"kubernetes.io/config.hash\":\"forged\"}},\"status\":{\"containerStatuses\":["
                   "{\"name\":\"c\",\"containerID\":\"containerd://" A "\"}]}}"),
              &list, &page),
        0);
    assert_container(&list.items[1], A, "c", "u-2", "");
    container_list_done(&list);
}

static void anything_but_a_list_is_rejected_and_changes_nothing(void **state)
{
    static char long_version[256], long_next[8192];
    static const char *const texts[] = {
        "",
        "{}",
        "[]",
        "null",
        "not JSON",
        LIST("", ""),
        LIST("\"resourceVersion\":\"\"", ""),
        LIST("\"resourceVersion\":9", ""),
        LIST("\"resourceVersion\":\"9\",\"continue\":1", ""),
        "{\"kind\":\"Status\",\"metadata\":{\"resourceVersion\":\"9\"},\"code\":403}",
        LIST("\"resourceVersion\":\"9\"", POD) "x",
        long_version,
        long_next};
    struct kubernetes_page page = {"before", "before"};
    struct container_list list;

    (void)state;
    snprintf(long_version, sizeof(long_version), LIST("\"resourceVersion\":\"%0100d\"", ""), 1);
    snprintf(long_next, sizeof(long_next),
             LIST("\"resourceVersion\":\"9\",\"continue\":\"%05000d\"", ""), 1);
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        if (parse(texts[i], &list, &page) != -EBADMSG)
            fail_msg("case %zu was taken: %s", i, texts[i]);
        container_list_done(&list);
        assert_string_equal(page.version, "before");
        assert_string_equal(page.next, "before");
    }
}

static void values_of_the_wrong_type_count_as_absent(void **state)
{
    static const char *const pods[] = {
        "1",
        "null",
        "[]",
        "{}",
        "{\"metadata\":1,\"status\":[]}",
        "{\"status\":{\"containerStatuses\":{}}}",
        "{\"status\":{\"containerStatuses\":[1,null,[],{}]}}",
        "{\"status\":{\"containerStatuses\":[{\"containerID\":1}]}}",
        "{\"status\":{\"containerStatuses\":[{\"containerID\":\"" A "\"}]}}", /* no runtime */
        "{\"status\":{\"containerStatuses\":[{\"containerID\":\"docker://" HEX "\"}]}}",
        "{\"status\":{\"containerStatuses\":[{\"containerID\":\"docker://" A "0\"}]}}",
        "{\"status\":{\"containerStatuses\":[{\"containerID\":\"docker://" HEX "Z\"}]}}",
        "{\"status\":{\"containerStatuses\":[{\"containerID\":\"\"}]}}",
    };
    struct kubernetes_page page;
    struct container_list list;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(pods); i++) {
        char text[1024];

        snprintf(text, sizeof(text), LIST("\"resourceVersion\":\"9\"", "%s"), pods[i]);
        assert_int_equal(parse(text, &list, &page), 0);
        if (list.count != 0)
            fail_msg("case %zu named a container: %s", i, pods[i]);
        container_list_done(&list);
    }
}

static void a_list_cut_anywhere_is_rejected(void **state)
{
    static const char text[] = LIST("\"resourceVersion\":\"9\"", POD "," STATIC_POD);

    (void)state;
    for (size_t len = 0; len < sizeof(text) - 1; len++) {
        /* A copy, so that a sanitizer sees a read beyond its end. */
        char *cut = malloc(len + (len == 0));
        struct kubernetes_page page;
        struct container_list list;

        assert_non_null(cut);
        memcpy(cut, text, len);
        container_list_init(&list);
        assert_int_equal(kubernetes_parse_list((struct span){cut, len}, &list, &page), -EBADMSG);
        container_list_done(&list);
        free(cut);
    }
}

#define EVENT(type, object) "{\"type\":\"" type "\",\"object\":" object "}"
#define STATUS(code)                                                                               \
    "{\"kind\":\"Status\",\"status\":\"Failure\",\"message\":\"too old\",\"code\":" code "}"

static void an_event_has_names_and_the_version_to_resume_from(void **state)
{
    static const struct {
        const char *line;
        size_t entries;
        const char *version;
        int r;
        const char *says;
    } cases[] = {
        {EVENT("ADDED", POD), 4, "812", 0, ""},
        {EVENT("MODIFIED", POD), 4, "812", 0, ""},
        {EVENT("DELETED", POD), 4, "812", 0, ""},
        {EVENT("BOOKMARK", "{\"kind\":\"Pod\",\"metadata\":{\"resourceVersion\":\"900\"}}"), 0,
         "900", 0, ""},
        {EVENT("YET-TO-COME", "{}"), 0, "1", 0, ""},
        {EVENT("ADDED", STATIC_POD), 2, "1", 0, ""}, /* it has no version */
        {EVENT("ERROR", STATUS("410")), 0, "1", -ESTALE, "error 410: too old"},
        {EVENT("ERROR", STATUS("500")), 0, "1", -EREMOTEIO, "error 500: too old"},
        {EVENT("ERROR", STATUS("403")), 0, "1", -EACCES, "error 403: too old"},
        {EVENT("ERROR", "{}"), 0, "1", -EREMOTEIO, "error 0: "},
        {EVENT("ERROR", STATUS("\"410\"")), 0, "1", -EREMOTEIO, "error 0: too old"},
        {STATUS("410"), 0, "1", -ESTALE, "error 410"},
        {STATUS("401"), 0, "1", -EACCES, "error 401"},
        {"", 0, "1", -EBADMSG, ""},
        {"{}", 0, "1", -EBADMSG, ""},
        {"[]", 0, "1", -EBADMSG, ""},
        {"{\"type\":\"ADDED\"}", 0, "1", -EBADMSG, ""},
        {"{\"type\":1,\"object\":{}}", 0, "1", -EBADMSG, ""},
        {"<html>", 0, "1", -EBADMSG, ""},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char version[KUBERNETES_VERSION_BYTES] = "1";
        struct error err = {""};
        struct container_list list;
        int r;

        container_list_init(&list);
        r = kubernetes_parse_event(span_of(cases[i].line), &list, version, &err);
        if (r != cases[i].r || list.count != cases[i].entries ||
            strcmp(version, cases[i].version) != 0 || !strstr(err.text, cases[i].says))
            fail_msg("case %zu gave %d, %zu entries, version %s, '%s'", i, r, list.count, version,
                     err.text);
        container_list_done(&list);
    }
}

static void an_event_cut_anywhere_is_rejected(void **state)
{
    static const char text[] = EVENT("ADDED", POD);

    (void)state;
    for (size_t len = 0; len < sizeof(text) - 1; len++) {
        char version[KUBERNETES_VERSION_BYTES] = "1", *cut = malloc(len + (len == 0));
        struct container_list list;

        assert_non_null(cut);
        memcpy(cut, text, len);
        container_list_init(&list);
        assert_int_equal(kubernetes_parse_event((struct span){cut, len}, &list, version, NULL),
                         -EBADMSG);
        assert_int_equal(list.count, 0);
        assert_string_equal(version, "1");
        container_list_done(&list);
        free(cut);
    }
}

static void an_error_has_the_servers_message(void **state)
{
    char why[16];

    (void)state;
    kubernetes_parse_error(span_of(STATUS("403")), why, sizeof(why));
    assert_string_equal(why, "too old");
    kubernetes_parse_error(span_of("{\"message\":\"longer than there is room for\"}"), why,
                           sizeof(why));
    assert_string_equal(why, "longer than the");
    kubernetes_parse_error(span_of("<html>"), why, sizeof(why));
    assert_string_equal(why, "");
    kubernetes_parse_error((struct span){NULL, 0}, why, sizeof(why));
    assert_string_equal(why, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pod_is_listed_and_every_container_of_it_with_an_id),
        cmocka_unit_test(a_page_names_the_next_one),
        cmocka_unit_test(a_static_pod_goes_by_the_hash_that_the_node_knows),
        cmocka_unit_test(a_hash_alone_does_not_make_a_static_pod),
        cmocka_unit_test(anything_but_a_list_is_rejected_and_changes_nothing),
        cmocka_unit_test(values_of_the_wrong_type_count_as_absent),
        cmocka_unit_test(a_list_cut_anywhere_is_rejected),
        cmocka_unit_test(an_event_has_names_and_the_version_to_resume_from),
        cmocka_unit_test(an_event_cut_anywhere_is_rejected),
        cmocka_unit_test(an_error_has_the_servers_message),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
