/* What a collection does with answers. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/macros.h"
#include "report/collect_private.h"

const struct counter_kind counter_kinds[COUNTER_KINDS] = {
    {"wattribute_meter_energy_joules_total", TOTALS_METER, TOTALS_ENERGY},
    {"wattribute_unowned_energy_joules_total", TOTALS_UNOWNED, TOTALS_ENERGY},
    {"wattribute_workload_energy_joules_total", TOTALS_WORKLOAD, TOTALS_ENERGY},
    {"wattribute_workload_energy_uncertainty_joules_total", TOTALS_WORKLOAD, TOTALS_UNCERTAINTY},
    {"wattribute_meter_emissions_grams_total", TOTALS_METER, TOTALS_GRAMS},
    {"wattribute_unowned_emissions_grams_total", TOTALS_UNOWNED, TOTALS_GRAMS},
    {"wattribute_workload_emissions_grams_total", TOTALS_WORKLOAD, TOTALS_GRAMS},
    {"wattribute_meter_cost_total", TOTALS_METER, TOTALS_COST},
    {"wattribute_unowned_cost_total", TOTALS_UNOWNED, TOTALS_COST},
    {"wattribute_workload_cost_total", TOTALS_WORKLOAD, TOTALS_COST},
};

static struct total *total_of(struct collection *c, const struct counter_kind *kind,
                              const struct page *page, const struct answer_series *series)
{
    struct total *total = NULL;
    struct buffer name, about;

    buffer_init(&name, COLLECT_TEXT_BYTES);
    buffer_init(&about, COLLECT_TEXT_BYTES);
    if (kind->account == TOTALS_METER)
        buffer_str(&name, page->title);
    else if (kind->account == TOTALS_UNOWNED)
        buffer_str(&name, answer_label(series, "owner"));
    else
        names_put_group(&c->out->names, collect_is_life(c) ? NAMES_NODE : c->options->by, page,
                        series, &name, &about);
    buffer_char(&name, '\0');
    buffer_char(&about, '\0');
    if (!buffer_failed(&name) && !buffer_failed(&about))
        total = totals_find(&c->out->totals, kind->account, name.data, about.data);
    buffer_done(&name);
    buffer_done(&about);
    return total;
}

static int add_increase(struct collection *c, const struct counter_kind *kind, struct total *total,
                        const struct answer_series *series, const struct totals_increase *increase)
{
    const char *device = answer_label(series, "meter_id");
    struct total *gpu;

    totals_add(&c->out->totals, total, increase);
    if (!collect_is_life(c) || kind->quantity != TOTALS_ENERGY ||
        strcmp(increase->meter, "gpu") != 0)
        return 0;
    gpu = totals_find(&c->out->totals, TOTALS_DEVICE, device, "");
    if (!gpu)
        return -ENOMEM;
    totals_add(&c->out->totals, gpu, increase);
    return 0;
}

/* A pod of this name in another namespace? */
static bool is_other_pod(const struct collection *c, const struct page *page,
                         const struct answer_series *series)
{
    const char *pod = c->options->pod, *slash = pod ? strrchr(pod, '/') : NULL;
    const char *namespace;

    if (!slash)
        return false;
    namespace = names_of_row(page, series, "namespace", "exported_namespace");
    return !span_equals((struct span){pod, (size_t)(slash - pod)}, namespace);
}

static int take_row(struct collection *c, const struct counter_kind *kind, struct page *page,
                    const struct answer *answer, const struct answer_series *series)
{
    struct collected *out = c->out;
    struct totals_increase increase = {.quantity = kind->quantity,
                                       .meter = answer_label(series, "meter"),
                                       .currency = answer_label(series, "currency")};
    bool is_new, is_late, is_continued;
    struct counter_row *row =
        counters_row(&c->counters[kind - counter_kinds], page, series, &is_new);
    struct total *total = NULL;
    struct counter_look look;
    double start_s;
    int r = 0;

    if (!row)
        return -ENOMEM;
    for (size_t i = 0; i < series->sample_count && r == 0; i++) {
        const struct answer_sample *sample = &answer->samples[series->first_sample + i];

        increase.window = pages_window_of(&out->pages, sample->t_s);
        /* After a rollout another series goes on in the same window. */
        is_continued = i == 0 && increase.window == row->window && sample->value > row->last;
        if ((increase.window <= row->window && !is_continued) || sample->value < 0)
            continue;
        increase.t_s = (int64_t)sample->t_s;
        look = (struct counter_look){.window = increase.window, .value = sample->value};
        look.is_split = page_restarted_within(&out->pages, page, look.window, &start_s);
        if (look.is_split && is_continued)
            continue;
        if (look.is_split) {
            look.before =
                counters_find_end(&c->before[kind - counter_kinds], page, series, look.window);
            look.after =
                counters_find_end(&c->after[kind - counter_kinds], page, series, look.window);
        }
        increase.amount = counter_increase(&out->pages, row, &look, &is_late);
        if (increase.window <= 0)
            continue;
        if (is_late && kind->account == TOTALS_METER && kind->quantity == TOTALS_ENERGY)
            page->late_joules += sample->value;
        if (!total)
            total = total_of(c, kind, page, series);
        r = total ? add_increase(c, kind, total, series, &increase) : -ENOMEM;
    }
    return r;
}

static int take_counters(struct collection *c, const struct counter_kind *kind,
                         const struct answer *answer)
{
    int r = 0;

    for (size_t i = 0; i < answer->series_count && r == 0; i++) {
        const struct answer_series *series = &answer->series[i];
        struct page *page = pages_find(&c->out->pages, series);

        if (!page)
            c->out->strange_series++;
        else if (!is_other_pod(c, page, series))
            r = take_row(c, kind, page, answer, series);
    }
    return r;
}

static int take_devices(struct collection *c, const struct answer *answer)
{
    for (size_t i = 0; i < answer->series_count; i++) {
        const struct answer_series *series = &answer->series[i];
        char about[256];

        snprintf(about, sizeof(about), "%.200s, GPU %.20s", answer_label(series, "name"),
                 answer_label(series, "gpu"));
        if (!totals_find(&c->out->totals, TOTALS_DEVICE, answer_label(series, "uuid"), about))
            return -ENOMEM;
    }
    return 0;
}

int collect_take_answer(void *context, const struct fetch_task *task, const struct answer *answer)
{
    struct collection *c = context;
    struct collected *out = c->out;

    if (answer->warning_count > 0 && out->warning_count == 0)
        snprintf(out->warning, sizeof(out->warning), "%s", answer->warning);
    out->warning_count += answer->warning_count;
    switch (task->index) {
    case ASK_SEEN:
        return pages_take_seen(&out->pages, answer);
    case ASK_STATES:
        return pages_take_states(&out->pages, answer);
    case ASK_STARTS:
        return pages_take_starts(&out->pages, answer);
    case ASK_METERS:
        return pages_take_meters(&out->pages, answer);
    case ASK_NAMES:
        return names_take(&out->names, &out->pages, answer);
    case ASK_DEVICES:
        return take_devices(c, answer);
    case ASK_BEFORE:
    case ASK_AFTER:
        return collect_take_restart(c, task, answer);
    default:
        return take_counters(c, &counter_kinds[task->index - ASK_FIRST_COUNTER], answer);
    }
}
