#include "report/report_words.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"

enum { MISSING_TOLD = 20 };

static const double KWH_JOULES = 3.6e6;

void words_put(struct buffer *out, const char *format, ...)
{
    char text[2 * WORDS_BYTES];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    buffer_str(out, text);
}

/* With commas between thousands. */
static void put_number(double value, int decimals, char text[FIGURE_BYTES])
{
    char plain[FIGURE_BYTES];
    size_t len, whole, at = 0;

    snprintf(plain, sizeof(plain), "%.*f", decimals, MIN(fabs(value), 1e18));
    len = strlen(plain);
    whole = strcspn(plain, ".");
    if (value < 0 && strspn(plain, "0.") < len)
        text[at++] = '-';
    for (size_t i = 0; i < len && at + 2 < FIGURE_BYTES; i++) {
        if (i > 0 && i < whole && (whole - i) % 3 == 0)
            text[at++] = ',';
        text[at++] = plain[i];
    }
    text[at] = '\0';
}

void words_kwh(double joules, char text[FIGURE_BYTES])
{
    double kwh = fabs(joules / KWH_JOULES);

    put_number(joules / KWH_JOULES, kwh >= 1000 ? 1 : kwh >= 10 ? 2 : 3, text);
    if (joules > 0 && kwh < 0.0005)
        snprintf(text, FIGURE_BYTES, "<0.001");
}

void words_grams(double grams, char text[FIGURE_BYTES])
{
    char number[FIGURE_BYTES];
    double size = fabs(grams);
    const char *unit = size >= 1e6 ? "t" : size >= 1000 ? "kg" : "g";
    double value = size >= 1e6 ? grams / 1e6 : size >= 1000 ? grams / 1000 : grams;

    put_number(value, fabs(value) >= 100 ? 0 : fabs(value) >= 10 ? 1 : 2, number);
    snprintf(text, FIGURE_BYTES, "%.40s %s", number, unit);
}

void words_cost(const struct totals *totals, const struct total *total, char text[WORDS_BYTES])
{
    size_t len = 0;

    text[0] = '\0';
    for (size_t i = 0; i < totals->currency_count; i++) {
        char number[FIGURE_BYTES];

        if (total->cost[i] == 0 && (totals->currency_count > 1 || !totals->has_cost))
            continue;
        put_number(total->cost[i], fabs(total->cost[i]) < 0.05 && total->cost[i] != 0 ? 4 : 2,
                   number);
        len += (size_t)snprintf(text + len, WORDS_BYTES - len, "%s%.40s %.8s", len > 0 ? " + " : "",
                                number, totals->currencies[i]);
    }
}

void words_duration(int64_t seconds, char text[FIGURE_BYTES])
{
    long long days = seconds / 86400, hours = seconds / 3600 % 24, minutes = seconds / 60 % 60;

    if (days > 0)
        snprintf(text, FIGURE_BYTES, "%lld d %lld h", days, hours);
    else if (hours > 0)
        snprintf(text, FIGURE_BYTES, "%lld h %lld min", hours, minutes);
    else
        snprintf(text, FIGURE_BYTES, "%lld min", minutes);
}

bool words_is_life(const struct collected *collected)
{
    return collected->job || collected->pod;
}

bool words_life(const struct collected *collected, char text[WORDS_BYTES])
{
    const struct table *nodes = &collected->totals.accounts[TOTALS_WORKLOAD];
    char from[PERIOD_TITLE_BYTES], to[PERIOD_TITLE_BYTES], duration[FIGURE_BYTES];
    int32_t first = INT32_MAX, last = 0;

    for (size_t i = 0; i < nodes->count; i++) {
        const struct total *node = nodes->items[i];

        if (node->first_window > 0)
            first = MIN(first, node->first_window);
        last = MAX(last, node->last_window);
    }
    if (last == 0)
        return false;
    period_moment(collected_window_end(collected, first - 1), from);
    period_moment(collected_window_end(collected, last), to);
    words_duration((last - first + 1) * collected->step_s, duration);
    snprintf(text, WORDS_BYTES, "from %s to %s: %s on %zu node%s", from, to, duration, nodes->count,
             PLURAL_S(nodes->count));
    return true;
}

void words_subject(const struct collected *collected, char text[WORDS_BYTES])
{
    if (collected->job)
        snprintf(text, WORDS_BYTES, "Job %.300s", collected->job);
    else if (collected->pod)
        snprintf(text, WORDS_BYTES, "Pod %.300s", collected->pod);
    else
        snprintf(text, WORDS_BYTES, "Energy by %s", names_by_words[collected->by]);
}

const char *words_name(const struct collected *collected, const struct total *total)
{
    static const char *const none[NAMES_BY_COUNT] = {"(no namespace)", "(no user)", "(no account)",
                                                     "(no job)",       "(no pod)",  "(no image)",
                                                     "(no node)"};

    return total->name[0] ? total->name : none[collected->by];
}

struct total **words_unowned(const struct collected *collected, size_t *ret_count)
{
    const struct totals *totals = &collected->totals;
    struct total **sorted = totals_sorted(totals, TOTALS_UNOWNED), **with_unseen;
    size_t count = totals->accounts[TOTALS_UNOWNED].count;

    *ret_count = 0;
    if (!sorted)
        return NULL;
    with_unseen = reallocarray(sorted, count + 1, sizeof(void *));
    if (!with_unseen) {
        free(sorted);
        return NULL;
    }
    if (totals->unseen.joules != 0)
        with_unseen[count++] = (struct total *)&totals->unseen;
    *ret_count = count;
    return with_unseen;
}

const char *words_reason(const struct total *total)
{
    static const struct {
        const char *owner, *title;
    } reasons[] = {
        {"idle", "idle: nobody used the hardware"},
        {"system", "system: the operating system"},
        {"unattributed", "unattributed: by an unknown process"},
        {"gap", "gap: the exporter was not there"},
        {"", "unseen: ended before a scrape had its name"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(reasons); i++)
        if (strcmp(reasons[i].owner, total->name) == 0)
            return reasons[i].title;
    return total->name;
}

static void describe_missing(const struct missing *missing, char text[WORDS_BYTES])
{
    static const char *const late =
        "it was first seen then; what it did before is not in this report";
    char from[PERIOD_TITLE_BYTES], to[PERIOD_TITLE_BYTES], duration[FIGURE_BYTES];

    period_moment(missing->from_s, from);
    period_moment(missing->to_s, to);
    words_duration(missing->to_s - missing->from_s, duration);
    snprintf(text, WORDS_BYTES, "%.120s: missing for %s, from %s to %s: %s", missing->page->title,
             duration, from, to,
             missing->is_fresh               ? "its exporter began then"
             : missing->kind == MISSING_LATE ? late
             : missing->kind == MISSING_LOST ? "it was not seen again; nothing was estimated for it"
             : missing->is_older
                 ? "it was away before this period, too; what its counters counted in all that "
                   "time is in this report"
             : missing->has_restarted
                 ? "its counters began anew; what it booked meanwhile is lost, and nothing was "
                   "estimated"
             : missing->has_new_start
                 ? "its exporter began anew with a state file, so what it counted meanwhile is in "
                   "this report, but for what was booked before a boot in that time"
                 : "its counters went on, so what they counted meanwhile is in this report");
}

/* Those about the whole, one for each bit. */
static bool describe_whole(const struct collected *collected, size_t which, char text[WORDS_BYTES])
{
    const struct totals *totals = &collected->totals;
    char kwh[FIGURE_BYTES], duration[FIGURE_BYTES];

    switch (which) {
    case 0:
        words_duration(collected_missing_s(collected), duration);
        snprintf(text, WORDS_BYTES, "%zu times in all a node was missing, for %s together",
                 collected->missing_count, duration);
        return collected->missing_count > MISSING_TOLD;
    case 1:
        words_duration(collected->step_s, duration);
        snprintf(text, WORDS_BYTES,
                 "counters began anew %zu time%s: of each, up to %s of energy before it is missing",
                 collected->restarts, PLURAL_S(collected->restarts), duration);
        return collected->restarts > 0;
    case 2:
        words_kwh(collected->late_joules, kwh);
        snprintf(text, WORDS_BYTES,
                 "%s kWh were booked before their nodes were seen for the first time; when is "
                 "unknown, and they are not counted",
                 kwh);
        return collected->late_joules > 0;
    case 3:
        words_kwh(totals->unseen.joules, kwh);
        snprintf(text, WORDS_BYTES,
                 "%s kWh are of workloads that ended, or came back, between two looks: nobody's "
                 "name is on them",
                 kwh);
        return totals->unseen.joules > 0;
    case 4:
        words_kwh(-totals->unseen.joules, kwh);
        snprintf(text, WORDS_BYTES,
                 "workloads have %s kWh more than the meters: please report this with the period's "
                 "data",
                 kwh);
        return totals->unseen.joules < 0;
    case 5:
        snprintf(text, WORDS_BYTES,
                 "%zu series belong to no wattribute_build_info and are not counted: were labels "
                 "dropped?",
                 collected->strange_series);
        return collected->strange_series > 0;
    case 6:
        snprintf(text, WORDS_BYTES,
                 "%zu target%s scraped twice, as %.200s: by another job, or by a replica; their "
                 "energy is counted twice, choose one by --select",
                 collected->twice, collected->twice == 1 ? " is" : "s are",
                 collected->twice_page ? collected->twice_page->title : "");
        return collected->twice > 0;
    case 7:
        snprintf(text, WORDS_BYTES,
                 "%zu answers could not be kept for --resume: is its directory full?",
                 collected->progress.unkept);
        return collected->progress.unkept > 0;
    case 8:
        snprintf(text, WORDS_BYTES, "the server warned %zu time%s, first: %s",
                 collected->warning_count, PLURAL_S(collected->warning_count), collected->warning);
        return collected->warning_count > 0;
    default:
        snprintf(text, WORDS_BYTES, "%.2f are of a fifth currency and in no sum",
                 totals->unknown_currency);
        return totals->unknown_currency > 0;
    }
}

bool words_finding(const struct collected *collected, size_t index, char text[WORDS_BYTES])
{
    size_t told = MIN(collected->missing_count, (size_t)MISSING_TOLD);

    if (index < told) {
        describe_missing(&collected->missing[index], text);
        return true;
    }
    index -= told;
    for (size_t which = 0; which < 10; which++)
        if (describe_whole(collected, which, text) && index-- == 0)
            return true;
    return false;
}
