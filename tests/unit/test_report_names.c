/* report/names: who a row is, whatever a server did to its labels. */
#include "unit.h"

#include <string.h>

#include "core/macros.h"
#include "report/names.h"

enum { FROM_S = 1700000000, LABELS = 12 };

struct labels {
    const char *text[LABELS][2];
};

static struct answer_label storage[LABELS];
static struct answer_sample sample = {FROM_S, 1};
static struct answer_series series;

static const struct answer *make(const struct labels *labels)
{
    static struct answer answer;

    series = (struct answer_series){storage, 0, 0, 1};
    for (; series.label_count < LABELS && labels->text[series.label_count][0]; series.label_count++)
        storage[series.label_count] = (struct answer_label){labels->text[series.label_count][0],
                                                            labels->text[series.label_count][1]};
    answer = (struct answer){
        .series = &series, .series_count = 1, .samples = &sample, .sample_count = 1};
    return &answer;
}

static void a_group_is_the_workload_s_and_never_the_exporter_s(void **state)
{
    static const struct {
        struct labels page, info, row;
        const char *groups[NAMES_BY_COUNT]; /* NULL: not looked at */
        const char *job_about;
    } cases[] = {
        /* As it should be scraped. */
        {{{{"instance", "n1"}}},
         {{{"instance", "n1"}, {"kind", "pod"}, {"id", "c1"}, {"image", "train:1"}}},
         {{{"instance", "n1"}, {"kind", "pod"}, {"id", "c1"}, {"namespace", "ml"}, {"pod", "t-0"}}},
         {"ml", "", "", "", "ml/t-0", "train:1", "n1"},
         ""},
        /* A DaemonSet with honor_labels: what has no namespace gets the exporter's. */
        {{{{"instance", "n1"}, {"namespace", "monitoring"}, {"pod", "wattribute-x"}}},
         {{{"instance", "n1"},
           {"kind", "slurm"},
           {"id", "7"},
           {"user", "bob"},
           {"account", "phys"},
           {"job_name", "fit"},
           {"namespace", "monitoring"}}},
         {{{"instance", "n1"},
           {"kind", "slurm"},
           {"id", "7"},
           {"namespace", "monitoring"},
           {"pod", "wattribute-x"}}},
         {"", "bob", "phys", "7", "", "", "n1"},
         "fit, bob, phys"},
        /* Without: ours are renamed. */
        {{{{"instance", "n1"}, {"namespace", "monitoring"}, {"pod", "wattribute-x"}}},
         {{{"instance", "n1"}, {"kind", "pod"}, {"id", "c1"}, {"exported_namespace", "ml"}}},
         {{{"instance", "n1"},
           {"kind", "pod"},
           {"id", "c1"},
           {"namespace", "monitoring"},
           {"pod", "wattribute-x"},
           {"exported_namespace", "ml"},
           {"exported_pod", "t-0"}}},
         {"ml", "", "", "", "ml/t-0", "", "n1"},
         ""},
        /* A name that came too late for the row is in the metadata. */
        {{{{"instance", "n1"}}},
         {{{"instance", "n1"}, {"kind", "pod"}, {"id", "c2"}, {"namespace", "ml"}, {"pod", "t-1"}}},
         {{{"instance", "n1"}, {"kind", "pod"}, {"id", "c2"}}},
         {"ml", "", "", "", "ml/t-1", "", "n1"},
         ""},
        /* The metadata of a namesake on another node is not its own. */
        {{{{"instance", "n1"}}},
         {{{"instance", "n2"}, {"kind", "unit"}, {"id", "a.service"}, {"user", "eve"}}},
         {{{"instance", "n1"}, {"kind", "unit"}, {"id", "a.service"}}},
         {"", "", "", "", "", "", "n1"},
         ""},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct pages pages = {.from_s = FROM_S, .step_s = 60};
        struct names names;

        names_init(&names);
        assert_int_equal(pages_take_seen(&pages, make(&cases[i].page)), 0);
        assert_int_equal(names_take(&names, &pages, make(&cases[i].info)), 0);
        (void)make(&cases[i].row);
        for (int by = 0; by < NAMES_BY_COUNT; by++) {
            struct buffer name, about;

            buffer_init(&name, 1000);
            buffer_init(&about, 1000);
            names_put_group(&names, (enum names_by)by, pages_find(&pages, &series), &series, &name,
                            &about);
            buffer_char(&name, '\0');
            buffer_char(&about, '\0');
            if (strcmp(name.data, cases[i].groups[by]) != 0)
                fail_msg("case %zu by %s: '%s', not '%s'", i, names_by_words[by], name.data,
                         cases[i].groups[by]);
            if (by == NAMES_JOB)
                assert_string_equal(about.data, cases[i].job_about);
            buffer_done(&name);
            buffer_done(&about);
        }
        names_done(&names);
        pages_done(&pages);
    }
}

static void the_last_that_is_told_wins_and_nothing_is_taken_back(void **state)
{
    static const struct labels page = {{{"instance", "n1"}}};
    static const struct labels told[] = {
        {{{"instance", "n1"}, {"kind", "slurm"}, {"id", "7"}, {"user", "bob"}}},
        {{{"instance", "n1"}, {"kind", "slurm"}, {"id", "7"}, {"user", ""}, {"account", "x"}}},
        {{{"instance", "n1"}, {"kind", "slurm"}, {"id", "7"}, {"user", "alice"}}},
    };
    struct pages pages = {.from_s = FROM_S, .step_s = 60};
    const struct name_details *details;
    struct names names;

    (void)state;
    names_init(&names);
    assert_int_equal(pages_take_seen(&pages, make(&page)), 0);
    for (size_t i = 0; i < ARRAY_SIZE(told); i++)
        assert_int_equal(names_take(&names, &pages, make(&told[i])), 0);
    details = names_find(&names, pages.table.items[0], "slurm", "7");
    assert_non_null(details);
    assert_string_equal(details->user, "alice");
    assert_string_equal(details->account, "x");
    assert_null(names_find(&names, pages.table.items[0], "slurm", "8"));
    names_done(&names);
    pages_done(&pages);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_group_is_the_workload_s_and_never_the_exporter_s),
        cmocka_unit_test(the_last_that_is_told_wins_and_nothing_is_taken_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
