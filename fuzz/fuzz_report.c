/* What `wattribute report` reads: a period, and the answer of a server. Any bytes are an error, or
 * samples whose sums can be shown. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "report/counters.h"
#include "report/names.h"
#include "report/period.h"
#include "report/report_output.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct period day = {1700000000, 1700086400, false};

static void show(struct collected *collected)
{
    static const struct report_source source = {"http://localhost:9090", "fuzz", 1700090000};
    struct buffer out;

    totals_finish(&collected->totals, true);
    if (collected_find_missing(collected) < 0)
        abort();
    buffer_init(&out, 64 << 20);
    report_text(collected, &source, &out);
    report_csv(collected, &out);
    report_json(collected, &source, &out);
    report_html(collected, &source, &out);
    buffer_done(&out);
}

/* Each series is a page, a workload and its counter. */
static void add_up(struct collected *collected, const struct answer *answer)
{
    struct counters counters = {0};

    for (size_t i = 0; i < answer->series_count; i++) {
        const struct answer_series *series = &answer->series[i];
        struct page *page = pages_find(&collected->pages, series);
        struct buffer name, about;
        struct counter_row *row;
        struct total *total;
        bool is_new, is_late;

        if (!page)
            abort();
        buffer_init(&name, 1 << 20);
        buffer_init(&about, 1 << 20);
        names_put_group(&collected->names, (enum names_by)(i % NAMES_BY_COUNT), page, series, &name,
                        &about);
        buffer_char(&name, '\0');
        buffer_char(&about, '\0');
        row = counters_row(&counters, page, series, &is_new);
        total = totals_find(&collected->totals, TOTALS_WORKLOAD, name.data, about.data);
        for (size_t j = 0; row && total && j < series->sample_count; j++) {
            const struct answer_sample *sample = &answer->samples[series->first_sample + j];
            int32_t window = pages_window_of(&collected->pages, sample->t_s);
            struct counter_look look;
            double increase, start_s;

            if (window <= row->window || sample->value < 0)
                continue;
            look = (struct counter_look){.window = window, .value = sample->value};
            look.is_split = page_restarted_within(&collected->pages, page, window, &start_s);
            increase = counter_increase(&collected->pages, row, &look, &is_late);
            if (!(increase >= 0) || increase > sample->value || row->window != window)
                abort();
            totals_add(&collected->totals, total,
                       &(struct totals_increase){.quantity = (enum totals_quantity)(i % 4),
                                                 .amount = increase,
                                                 .meter = answer_label(series, "meter"),
                                                 .currency = answer_label(series, "currency"),
                                                 .t_s = (int64_t)day.from_s,
                                                 .window = window > 0 ? window : 1});
        }
        buffer_done(&name);
        buffer_done(&about);
    }
    counters_done(&counters);
}

static void check_answer(struct answer *answer)
{
    struct collected collected = {.period = day, .step_s = 60, .windows = 1440};

    for (size_t i = 0; i < answer->series_count; i++)
        if (answer->series[i].first_sample + answer->series[i].sample_count > answer->sample_count)
            abort();
    for (size_t i = 0; i < answer->sample_count; i++)
        if (!isfinite(answer->samples[i].value) || !isfinite(answer->samples[i].t_s))
            abort();
    answer_settle(answer, (double)day.from_s - 60, (double)day.to_s);
    collected.pages.from_s = day.from_s;
    collected.pages.step_s = collected.step_s;
    names_init(&collected.names);
    if (answer->series_count < 1000 && answer->sample_count < 10000 &&
        totals_init(&collected.totals, &day) == 0) {
        if (pages_take_seen(&collected.pages, answer) == 0 &&
            pages_take_states(&collected.pages, answer) == 0 &&
            pages_take_starts(&collected.pages, answer) == 0 &&
            pages_take_meters(&collected.pages, answer) == 0 &&
            names_take(&collected.names, &collected.pages, answer) == 0 &&
            pages_make_titles(&collected.pages) == 0) {
            add_up(&collected, answer);
            show(&collected);
        }
    }
    collected_done(&collected);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span text = {(const char *)data, size};
    struct answer *answer;
    struct period period;
    struct error err = {""};

    if (answer_parse(text, &answer, &err) == 0) {
        check_answer(answer);
        answer_free(answer);
    } else if (err.text[0] == '\0') {
        abort();
    }
    if (size < 64 && period_parse(text, 1700000000, &period, &err) == 0 &&
        (period.to_s <= period.from_s || period.to_s > 1700000000))
        abort();
    return 0;
}
