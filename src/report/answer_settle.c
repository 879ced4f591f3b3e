/* What an answer has beyond what was asked, and in what order. */
#include <math.h>
#include <stdlib.h>

#include "core/macros.h"
#include "report/answer.h"

/* More joules than there are; so that sums stay finite. */
static const double VALUE_MAX = 1e18;

static int by_time(const void *a, const void *b, void *context)
{
    const struct answer_series *x = a, *y = b;
    const struct answer_sample *samples = context;
    const double times[] = {
        samples[x->first_sample].t_s - samples[y->first_sample].t_s,
        samples[x->first_sample + x->sample_count - 1].t_s -
            samples[y->first_sample + y->sample_count - 1].t_s,
    };

    for (size_t i = 0; i < ARRAY_SIZE(times); i++)
        if (times[i] != 0)
            return times[i] < 0 ? -1 : 1;
    return x->first_sample < y->first_sample ? -1 : 1;
}

void answer_settle(struct answer *answer, double from_s, double to_s)
{
    size_t count = 0;

    for (size_t i = 0; i < answer->series_count; i++) {
        struct answer_series *series = &answer->series[i];
        struct answer_sample *samples;
        size_t kept = 0;

        if (series->sample_count == 0) /* then there may be no samples at all */
            continue;
        samples = answer->samples + series->first_sample;
        for (size_t j = 0; j < series->sample_count; j++)
            if (samples[j].t_s >= from_s - 0.5 && samples[j].t_s <= to_s + 0.5 &&
                fabs(samples[j].value) <= VALUE_MAX &&
                (kept == 0 || samples[j].t_s > samples[kept - 1].t_s))
                samples[kept++] = samples[j];
        series->sample_count = kept;
        if (kept > 0)
            answer->series[count++] = *series;
    }
    answer->series_count = count;
    if (count > 1)
        qsort_r(answer->series, count, sizeof(*answer->series), by_time, answer->samples);
}
