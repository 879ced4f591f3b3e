#include "report/report_chart.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"
#include "core/utf8.h"

enum {
    WIDTH = 1000,
    LEFT = 64, /* of the axis' figures */
    PLOT = WIDTH - LEFT,
    TOP = 12,
    HEIGHT = 240, /* of the plot */
    TICKS_MAX = 5,
    LABELS_MAX = 11,
    LABEL_WIDTH = 84,
    ROW = 22,
    NODES_MAX = 40,
    NODE_LEFT = 220,
};

static const double KWH_JOULES = 3.6e6;

void chart_put_text(struct buffer *out, const char *text)
{
    struct span rest = span_of(text);

    while (rest.len > 0) {
        size_t len = utf8_char_len(rest);
        char c = rest.data[0];

        if (len == 0 || (unsigned char)c < ' ' || c == 0x7f) {
            buffer_str(out, UTF8_REPLACEMENT);
            len = 1;
        } else if (strchr("&<>\"'", c)) {
            words_put(out, "&#%d;", c);
        } else {
            buffer_bytes(out, rest.data, len);
        }
        rest = (struct span){rest.data + len, rest.len - len};
    }
}

/* 1, 2 or 5 times a power of ten, so that few steps reach the top. */
static double step_of(double top)
{
    static const double factors[] = {1, 2, 5};
    double power = pow(10, floor(log10(top / TICKS_MAX)));

    for (size_t i = 0; i < ARRAY_SIZE(factors); i++)
        if (top / (factors[i] * power) <= TICKS_MAX)
            return factors[i] * power;
    return 10 * power;
}

struct layer {
    const char *name;
    char colour[8];
    double *joules; /* of each part; owned */
    bool is_name;   /* somebody's, not ours */
};

struct layers {
    struct layer items[CHART_GROUPS + 1];
    size_t count;
};

static bool add_layer(struct layers *layers, const struct collected *collected, const char *name,
                      const char *colour, bool is_name)
{
    struct layer *layer = &layers->items[layers->count];

    *layer = (struct layer){.name = name, .is_name = is_name};
    snprintf(layer->colour, sizeof(layer->colour), "%s", colour);
    layer->joules = calloc(collected->totals.parts.count + 1, sizeof(double));
    layers->count += layer->joules != NULL;
    return layer->joules != NULL;
}

static void add_parts(struct layer *layer, const struct collected *collected,
                      const struct total *total)
{
    for (size_t i = 0; i < collected->totals.parts.count; i++)
        layer->joules[i] += MAX(total->part_joules[i], 0.0);
}

/* Nobody's are at the bottom, as they are always there. */
static bool make_layers(const struct collected *collected, struct total *const *groups,
                        size_t count, struct layers *layers)
{
    const struct totals *totals = &collected->totals;
    const struct table *unowned = &totals->accounts[TOTALS_UNOWNED];
    size_t shown = count > CHART_GROUPS ? CHART_GROUPS - 1 : count;
    char colour[8];

    if (!words_is_life(collected)) {
        if (!add_layer(layers, collected, "nobody's", "nobody", false))
            return false;
        for (size_t i = 0; i < unowned->count; i++)
            add_parts(&layers->items[0], collected, unowned->items[i]);
        add_parts(&layers->items[0], collected, &totals->unseen);
    }
    for (size_t i = 0; i < shown; i++) {
        snprintf(colour, sizeof(colour), "c%zu", i);
        if (!add_layer(layers, collected,
                       words_is_life(collected) ? groups[i]->name
                                                : words_name(collected, groups[i]),
                       colour, true))
            return false;
        add_parts(&layers->items[layers->count - 1], collected, groups[i]);
    }
    if (shown == count)
        return true;
    if (!add_layer(layers, collected, "all others", "c7", false))
        return false;
    for (size_t i = shown; i < count; i++)
        add_parts(&layers->items[layers->count - 1], collected, groups[i]);
    return true;
}

static double highest(const struct layers *layers, size_t parts)
{
    double most = 0;

    for (size_t i = 0; i < parts; i++) {
        double sum = 0;

        for (size_t j = 0; j < layers->count; j++)
            sum += layers->items[j].joules[i];
        most = MAX(most, sum);
    }
    return most / KWH_JOULES;
}

static void put_axis(double top, struct buffer *out)
{
    double step = step_of(top);

    for (int i = 0; i * step <= top * 1.0001; i++) {
        double y = TOP + HEIGHT - HEIGHT * i * step / top;

        words_put(out,
                  "<path class=\"grid\" d=\"M%d %.1fH%d\"/><text x=\"%d\" y=\"%.1f\" "
                  "text-anchor=\"end\">%.6g</text>",
                  LEFT, y, WIDTH, LEFT - 8, y + 4, i * step);
    }
}

/* "14:00" of hours, "10-31" of days. */
static void put_labels(const struct period_parts *parts, struct buffer *out)
{
    size_t every = (parts->count + LABELS_MAX - 1) / LABELS_MAX;
    double width = (double)PLOT / (double)parts->count;

    for (size_t i = 0; i < parts->count; i += MAX(every, (size_t)1)) {
        char title[PERIOD_TITLE_BYTES];

        period_part_title(parts, i, title);
        words_put(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">",
                  MIN(LEFT + width * ((double)i + 0.5), (double)WIDTH - 30), TOP + HEIGHT + 20);
        chart_put_text(out, parts->unit == PERIOD_DAYS ? title + 5 : title);
        buffer_str(out, "</text>");
    }
}

static void put_column(const struct layers *layers, const struct period_parts *parts, size_t part,
                       double top, struct buffer *out)
{
    double width = (double)PLOT / (double)parts->count, y = TOP + HEIGHT;
    double gap = width > 6 ? MIN(width * 0.18, 6.0) : 0.5;
    char title[PERIOD_TITLE_BYTES];

    period_part_title(parts, part, title);
    for (size_t i = 0; i < layers->count; i++) {
        const struct layer *layer = &layers->items[i];
        double height = HEIGHT * layer->joules[part] / KWH_JOULES / top;
        char kwh[FIGURE_BYTES];

        if (height < 0.05)
            continue;
        y -= height;
        words_kwh(layer->joules[part], kwh);
        words_put(out,
                  "<rect class=\"%s\" x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\"><title>",
                  layer->colour, LEFT + width * (double)part + gap / 2, y, width - gap, height);
        chart_put_text(out, layer->name);
        words_put(out, ", %s: %s kWh</title></rect>", title, kwh);
    }
}

static void put_legend(const struct layers *layers, struct buffer *out)
{
    buffer_str(out, "<ul class=\"legend\">");
    for (size_t i = layers->count; i > 0; i--) {
        const struct layer *layer = &layers->items[i - 1];

        words_put(out,
                  "<li><svg class=\"swatch\" viewBox=\"0 0 12 12\" aria-hidden=\"true\"><rect "
                  "class=\"%s\" width=\"12\" height=\"12\" rx=\"3\"/></svg><bdi>",
                  layer->colour);
        chart_put_text(out, layer->name);
        buffer_str(out, "</bdi></li>");
    }
    buffer_str(out, "</ul>\n");
}

void chart_parts(const struct collected *collected, struct total *const *groups, size_t count,
                 struct buffer *out)
{
    static const char *const units[] = {"hour", "day", "month"};
    const struct period_parts *parts = &collected->totals.parts;
    struct layers layers = {.count = 0};
    double top;

    if (make_layers(collected, groups, count, &layers)) {
        top = highest(&layers, parts->count);
        if (top > 0) {
            double step = step_of(top);

            top = step * ceil(top / step);
            words_put(out,
                      "<svg class=\"chart\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"kWh of "
                      "each %s, stacked by group; the table has the sums\">",
                      WIDTH, TOP + HEIGHT + 30, units[parts->unit]);
            put_axis(top, out);
            for (size_t i = 0; i < parts->count; i++)
                put_column(&layers, parts, i, top, out);
            put_labels(parts, out);
            buffer_str(out, "</svg>\n");
            put_legend(&layers, out);
        }
    } else {
        buffer_fail(out);
    }
    for (size_t i = 0; i < layers.count; i++)
        free(layers.items[i].joules);
}

void chart_bar(const struct total *total, double most, const char *colour, struct buffer *out)
{
    double width = most > 0 ? 196 * MAX(total->joules, 0.0) / most : 0;
    double error = most > 0 ? 196 * total->uncertainty_joules / most : 0;
    double from = MAX(width - error, 0.0), to = MIN(width + error, 199.0);

    words_put(out,
              "<svg class=\"bar\" viewBox=\"0 0 200 14\" preserveAspectRatio=\"none\" "
              "aria-hidden=\"true\"><rect class=\"%s\" y=\"2\" width=\"%.2f\" height=\"10\" "
              "rx=\"2\"/>",
              colour, MAX(width, total->joules > 0 ? 0.6 : 0.0));
    if (error >= 0.5)
        words_put(out, "<path class=\"error\" d=\"M%.2f 7H%.2fM%.2f 4V10M%.2f 4V10\"/>", from, to,
                  from, to);
    buffer_str(out, "</svg>");
}

void chart_meters(const struct collected *collected, struct buffer *out)
{
    const struct total *all = &collected->totals.all;
    double x = 0, sum = 0;

    for (size_t i = 0; i < TOTALS_METERS; i++)
        sum += MAX(all->meter_joules[i], 0.0);
    if (sum <= 0)
        return;
    words_put(out,
              "<svg class=\"chart\" viewBox=\"0 0 %d 26\" role=\"img\" aria-label=\"Energy by "
              "hardware; the list below has the figures\">",
              WIDTH);
    for (size_t i = 0; i < TOTALS_METERS; i++) {
        double width = WIDTH * MAX(all->meter_joules[i], 0.0) / sum;

        if (width > 0)
            words_put(out,
                      "<rect class=\"m%zu\" x=\"%.2f\" y=\"1\" width=\"%.2f\" height=\"24\" "
                      "rx=\"3\"><title>%s</title></rect>",
                      i, x, MAX(width - 2, 0.5), totals_meter_titles[i]);
        x += width;
    }
    buffer_str(out, "</svg>\n<ul class=\"legend\">");
    for (size_t i = 0; i < TOTALS_METERS; i++) {
        char kwh[FIGURE_BYTES];

        if (all->meter_joules[i] <= 0)
            continue;
        words_kwh(all->meter_joules[i], kwh);
        words_put(out,
                  "<li><svg class=\"swatch\" viewBox=\"0 0 12 12\" aria-hidden=\"true\"><rect "
                  "class=\"m%zu\" width=\"12\" height=\"12\" rx=\"3\"/></svg>%s <b>%s kWh</b> "
                  "(%.1f %%)</li>",
                  i, totals_meter_titles[i], kwh, 100 * all->meter_joules[i] / sum);
    }
    buffer_str(out, "</ul>\n");
}

static double place_of(const struct collected *collected, int64_t t_s)
{
    const struct period *period = &collected->period;

    return NODE_LEFT + (double)(WIDTH - NODE_LEFT) * (double)(t_s - period->from_s) /
                           (double)(period->to_s - period->from_s);
}

static void put_node(const struct collected *collected, const struct missing *missing, size_t count,
                     int y, struct buffer *out)
{
    static const char *const kinds[] = {"not seen yet", "missing", "not seen again"};

    words_put(out, "<text class=\"node\" x=\"%d\" y=\"%d\" text-anchor=\"end\">", NODE_LEFT - 10,
              y + 14);
    chart_put_text(out, missing->page->title);
    words_put(
        out, "</text><rect class=\"there\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"14\" rx=\"3\"/>",
        NODE_LEFT, y + 3, WIDTH - NODE_LEFT);
    for (size_t i = 0; i < count; i++) {
        double from = place_of(collected, missing[i].from_s),
               to = place_of(collected, missing[i].to_s);
        char duration[FIGURE_BYTES];

        words_duration(missing[i].to_s - missing[i].from_s, duration);
        words_put(out,
                  "<rect class=\"away\" x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"14\">"
                  "<title>%s for %s</title></rect>",
                  from, y + 3, MAX(to - from, 1.5), kinds[missing[i].kind], duration);
    }
}

/* The missing times of a node follow one another. */
void chart_nodes(const struct collected *collected, struct buffer *out)
{
    size_t nodes = 0, row = 0;

    for (size_t i = 0; i < collected->missing_count; i++)
        nodes += i == 0 || collected->missing[i].page != collected->missing[i - 1].page;
    if (nodes == 0)
        return;
    words_put(
        out,
        "<svg class=\"chart\" viewBox=\"0 0 %d %zu\" role=\"img\" aria-label=\"When nodes "
        "were missing; the list below has the times\"><defs><pattern id=\"hatch\" width=\"6\" "
        "height=\"6\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\"><rect "
        "class=\"hatch-ground\" width=\"6\" height=\"6\"/><path class=\"hatch\" "
        "d=\"M0 0V6\"/></pattern></defs>",
        WIDTH, MIN(nodes, (size_t)NODES_MAX) * ROW);
    for (size_t i = 0, next; i < collected->missing_count && row < NODES_MAX; i = next) {
        for (next = i; next < collected->missing_count &&
                       collected->missing[next].page == collected->missing[i].page;)
            next++;
        put_node(collected, &collected->missing[i], next - i, (int)row++ * ROW, out);
    }
    buffer_str(out, "</svg>\n");
}
