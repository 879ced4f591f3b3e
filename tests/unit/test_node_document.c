/* top/node_document: the document of /api/v1/node as structs, whatever it holds. */
#include "top_fixture.h"

#include <errno.h>
#include <math.h>

#include "core/macros.h"

static void everything_that_the_document_says_is_there(void **state)
{
    struct node_document *document = node_at(100, "7");
    const struct document_workload *web, *train;

    (void)state;
    assert_string_equal(document->node, "gpu-07");
    assert_string_equal(document->version, "0.1.0");
    assert_string_equal(document->currency, "EUR");
    assert_true(document->watts == 300 && document->time == 100 && document->start_time == 50.5);
    assert_false(document->is_replay);
    assert_int_equal(document->meter_count, 2);
    assert_string_equal(document->meters[0].meter, "gpu");
    assert_true(document->meters[0].unowned_watts[NODE_IDLE] == 12);
    assert_true(document->meters[0].unowned_joules[NODE_IDLE] == 900);
    assert_true(document->meters[0].pending_joules == 1.5);
    assert_true(document->meters[1].is_modelled);
    assert_true(node_document_unowned_watts(document, NODE_IDLE) == 18);
    assert_true(node_document_unowned_watts(document, NODE_GAP) == 0);
    assert_true(node_document_measured_watts(document) == 281.5);
    assert_int_equal(document->workload_count, 4);
    web = &document->workloads[0];
    train = &document->workloads[1];
    assert_string_equal(web->kind, "container");
    assert_true(web->watts == 30 && web->cpu_seconds == 7);
    assert_string_equal(train->namespace, "ml");
    assert_true(train->cost == 0.125 && train->emissions_grams == 4.25);
    assert_int_equal(train->share_count, 2); /* those of meters that there are */
    assert_true(train->shares[0].confidence == 0.9);
    assert_int_equal(train->process_count, 2);
    assert_string_equal(train->processes[0].name, "python3"); /* the largest */
    assert_true(train->processes[0].pid == 12);
    assert_int_equal(train->allocation_count, 1);
    assert_true(train->allocations[0].is_unverified && train->allocations[0].gpu_instance == 3);
    assert_string_equal(train->image, "train:7");
    assert_string_equal(document->gpus[0].sharing, "time_sliced");
    assert_int_equal(document->gpus[0].instance_count, 2);
    assert_true(document->sources[0].is_up && document->sources[0].errors == 2);
    assert_false(document->sources[1].is_up);
    node_document_free(document);
}

static void what_is_absent_is_unknown_and_not_zero(void **state)
{
    struct node_document *document = node_at(100, "null");
    const struct document_workload *user = &document->workloads[3];

    (void)state;
    assert_true(isnan(user->watts) && isnan(user->cost) && isnan(user->cpu_seconds));
    assert_true(isnan(document->workloads[0].cpu_seconds));
    assert_true(isnan(document->meters[1].gpu) && isnan(document->meters[1].measured_watts));
    assert_true(isnan(document->price_per_kwh));
    assert_string_equal(user->namespace, "");
    node_document_free(document);
    document = parse_document("{\"api\":1}");
    assert_true(isnan(document->watts) && isnan(node_document_measured_watts(document)));
    assert_int_equal(document->workload_count, 0);
    assert_string_equal(document->node, "");
    assert_null(node_document_find(document, &(struct document_workload){.kind = "", .id = ""}));
    node_document_free(document);
}

static void members_of_another_type_are_as_if_absent(void **state)
{
    struct node_document *document = parse_document(
        "{\"api\":1,\"node\":7,\"watts\":\"many\",\"replay\":\"true\",\"meters\":{\"a\":1},"
        "\"workloads\":[1,null,[],{\"kind\":3,\"id\":\"x\",\"meters\":[{\"meter\":0}],"
        "\"processes\":\"none\",\"details\":[1]}],\"gpus\":[true],\"sources\":[{\"up\":1}]}");

    (void)state;
    assert_string_equal(document->node, "");
    assert_true(isnan(document->watts));
    assert_false(document->is_replay);
    assert_int_equal(document->meter_count, 0);
    assert_int_equal(document->workload_count, 4);
    assert_string_equal(document->workloads[3].kind, "");
    assert_string_equal(document->workloads[3].id, "x");
    assert_int_equal(document->workloads[3].share_count, 0);
    assert_int_equal(document->gpu_count, 1);
    assert_false(document->sources[0].is_up);
    node_document_free(document);
}

static void what_is_no_document_of_a_node_is_an_error_that_says_so(void **state)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"", "no JSON"},
        {"<html>", "no JSON"},
        {"[]", "not that of a node"},
        {"{}", "not that of a node"},
        {"{\"api\":\"1\"}", "not that of a node"},
        {"{\"error\":\"starting\"}", "not that of a node"},
        {"{\"api\":2}", "version 2"},
        {"{\"api\":1}{}", "no JSON"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct node_document *document = NULL;
        struct error err = {""};

        assert_int_equal(node_document_parse(span_of(cases[i].text), &document, &err), -EBADMSG);
        assert_null(document);
        assert_shows(err.text, cases[i].why);
    }
    node_document_free(NULL);
}

static double cores_of_web(const struct node_document *document)
{
    return document->workloads[0].cpu_cores;
}

static void busy_processors_are_the_difference_of_two_documents(void **state)
{
    struct node_document *first = node_at(100, "7"), *next = node_at(102, "10");
    struct node_document *same = node_at(102.05, "10.01"), *restarted = node_at(104, "1");

    (void)state;
    node_document_compare(first, NULL);
    assert_true(isnan(cores_of_web(first)));
    node_document_compare(next, first);
    assert_true(cores_of_web(next) == 1.5);
    assert_true(next->workloads[1].cpu_cores == 0);   /* it did nothing */
    assert_true(isnan(next->workloads[2].cpu_cores)); /* it has no CPU time */
    node_document_compare(same, next);                /* too soon to tell */
    assert_true(cores_of_web(same) == 1.5);
    node_document_compare(restarted, next);
    assert_true(isnan(cores_of_web(restarted)));
    node_document_compare(first, restarted); /* the clock was set back */
    assert_true(isnan(cores_of_web(first)));
    node_document_free(first);
    node_document_free(next);
    node_document_free(same);
    node_document_free(restarted);
}

static void a_workload_is_found_by_kind_and_id(void **state)
{
    struct node_document *document = node_at(100, "7");
    const struct document_workload *found;

    (void)state;
    for (size_t i = 0; i < document->workload_count; i++)
        assert_ptr_equal(node_document_find(document, &document->workloads[i]),
                         &document->workloads[i]);
    found = node_document_find(document, &(struct document_workload){.kind = "slurm", .id = "47"});
    assert_ptr_equal(found, &document->workloads[2]);
    assert_null(
        node_document_find(document, &(struct document_workload){.kind = "pod", .id = "47"}));
    assert_null(node_document_find(NULL, found));
    node_document_free(document);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_that_the_document_says_is_there),
        cmocka_unit_test(what_is_absent_is_unknown_and_not_zero),
        cmocka_unit_test(members_of_another_type_are_as_if_absent),
        cmocka_unit_test(what_is_no_document_of_a_node_is_an_error_that_says_so),
        cmocka_unit_test(busy_processors_are_the_difference_of_two_documents),
        cmocka_unit_test(a_workload_is_found_by_kind_and_id),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
