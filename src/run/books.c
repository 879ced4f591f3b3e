#include "run/books.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/json_reader.h"
#include "core/macros.h"

void books_done(struct books *books)
{
    free(books->rows);
    *books = (struct books){0};
}

const struct books_meter *books_find(const struct books *books, enum meter_kind kind,
                                     const char *id)
{
    for (size_t i = 0; i < books->meter_count; i++)
        if (books->meters[i].kind == kind && strcmp(books->meters[i].id, id) == 0)
            return &books->meters[i];
    return NULL;
}

/* NULL: there are too many, or its id is too long. */
static struct books_meter *obtain_meter(struct books *books, enum meter_kind kind, const char *id)
{
    struct books_meter *meter = (struct books_meter *)books_find(books, kind, id);

    if (meter)
        return meter;
    if (books->meter_count == BOOKS_METERS_MAX || strlen(id) >= sizeof(meter->id))
        return NULL;
    meter = &books->meters[books->meter_count++];
    *meter = (struct books_meter){.kind = kind};
    memcpy(meter->id, id, strlen(id) + 1);
    return meter;
}

/* What a process used never goes back: a row that is gone stays as it was last seen. */
static int put_row(struct books *books, const struct books_row *row)
{
    struct books_row *items = books->rows;

    for (size_t i = books->row_count; i-- > 0;)
        if (items[i].gpu == row->gpu && items[i].pid == row->pid &&
            items[i].start_us == row->start_us) {
            items[i].energy_uj = MAX(items[i].energy_uj, items[i].past_uj + row->energy_uj);
            items[i].uncertain_uj =
                MAX(items[i].uncertain_uj, items[i].past_uncertain_uj + row->uncertain_uj);
            return 0;
        }
    if (books->row_count == BOOKS_ROWS_MAX)
        return 0;
    if (!array_reserve(&books->rows, &books->row_capacity, books->row_count, sizeof(*books->rows)))
        return -ENOMEM;
    books->rows[books->row_count++] = *row;
    return 0;
}

static double units(unsigned __int128 bill)
{
    return (double)bill / (double)BILL_ONE;
}

static void take_command(struct books *books, const struct snapshot *snapshot)
{
    for (size_t i = 0; i < snapshot->workload_count; i++) {
        const struct snapshot_workload *workload = &snapshot->workloads[i];
        const struct snapshot_meter *from = &snapshot->meters[workload->meter];
        struct books_meter *meter = obtain_meter(books, from->kind, from->meter_id);

        if (meter && workload->kind == WORKLOAD_UNIT && strcmp(workload->id, BOOKS_COMMAND_ID) == 0)
            meter->command_uj = account_total_uj(&workload->account);
    }
}

void books_open_meters(struct books *books, const struct books *of_daemon)
{
    for (size_t i = 0; i < of_daemon->meter_count; i++)
        if (of_daemon->meters[i].kind == METER_PACKAGE || of_daemon->meters[i].kind == METER_DRAM)
            (void)obtain_meter(books, of_daemon->meters[i].kind, of_daemon->meters[i].id);
}

int books_take_snapshot(struct books *books, const struct snapshot *snapshot)
{
    struct price_rate rate = price_rate_of(&snapshot->price);
    int r = 0;

    for (size_t i = 0; i < snapshot->meter_count; i++) {
        const struct snapshot_meter *from = &snapshot->meters[i];
        struct books_meter *meter = obtain_meter(books, from->kind, from->meter_id);

        if (!meter)
            continue;
        meter->gpu = from->gpu;
        meter->is_modelled = from->modelled;
        meter->counted_uj = from->energy_uj + from->pending_uj;
        meter->divided_uj = from->energy_uj;
        meter->idle_uj = from->unowned_uj[UNOWNED_IDLE];
        meter->grams = units(from->bill.emission);
        meter->cost = units(from->bill.cost);
    }
    take_command(books, snapshot);
    for (size_t i = 0; i < snapshot->process_count && r == 0; i++) {
        const struct snapshot_process *from = &snapshot->processes[i];
        struct books_row row = {
            .gpu = from->gpu,
            .pid = from->pid,
            .start_us = from->valid & SNAPSHOT_PROCESS_START ? from->start_us : 0,
            .energy_uj = from->active_uj + from->idle_uj,
            .uncertain_uj = from->uncertain_uj,
        };

        snprintf(row.name, sizeof(row.name), "%s", from->name);
        if (row.pid > 0)
            r = put_row(books, &row);
    }
    books->has_grams = snapshot->price.factor.known;
    books->has_cost = snapshot->price.cost.known;
    books->grams_per_kwh = (double)rate.emission / 1e12;
    books->cost_per_kwh = (double)rate.cost / 1e12;
    memcpy(books->currency, snapshot->price.cost.currency, sizeof(books->currency));
    return r;
}

static double number(const struct json *object, const char *key)
{
    double value;

    return json_double(json_get(object, key), &value) && value > 0 ? value : 0;
}

/* Of a number of seconds or joules, which a document has with six decimals. */
static uint64_t micro(const struct json *object, const char *key)
{
    double value = number(object, key) * 1e6 + 0.5;

    return value < 9e18 ? (uint64_t)value : 0;
}

static bool find_kind(const char *word, enum meter_kind *ret_kind)
{
    for (int kind = 0; word && kind < METER_KINDS; kind++)
        if (strcmp(word, meter_words[kind]) == 0) {
            *ret_kind = (enum meter_kind)kind;
            return true;
        }
    return false;
}

static void take_meter(struct books *books, const struct json *from)
{
    const char *id = json_text(json_get(from, "meter_id"));
    struct books_meter *meter;
    enum meter_kind kind;

    if (!id || !find_kind(json_text(json_get(from, "meter")), &kind))
        return;
    meter = obtain_meter(books, kind, id);
    if (!meter)
        return;
    meter->is_of_daemon = true;
    meter->gpu = (uint32_t)number(from, "gpu");
    meter->is_modelled = json_is_true(json_get(from, "modelled"));
    meter->divided_uj = meter->past_divided_uj + micro(from, "energy_joules");
    meter->counted_uj =
        meter->past_counted_uj + micro(from, "energy_joules") + micro(from, "pending_joules");
    meter->idle_uj =
        meter->past_idle_uj + micro(json_get(json_get(from, "unowned"), "idle"), "energy_joules");
    meter->idle_w = number(json_get(json_get(from, "unowned"), "idle"), "watts");
}

static int take_processes(struct books *books, const struct json *processes)
{
    int r = 0;

    for (size_t i = 0; i < json_length(processes) && r == 0; i++) {
        const struct json *from = json_at(processes, i);
        const char *name = json_text(json_get(from, "name"));
        struct books_row row = {
            .gpu = (uint32_t)number(from, "gpu"),
            .pid = (uint32_t)number(from, "pid"),
            .start_us = micro(from, "start_time"),
            .energy_uj = micro(from, "energy_joules"),
            .uncertain_uj = micro(from, "uncertainty_joules"),
        };

        snprintf(row.name, sizeof(row.name), "%s", name ? name : "");
        if (row.pid > 0)
            r = put_row(books, &row);
    }
    return r;
}

static void take_price(struct books *books, const struct json *node)
{
    const char *currency = json_text(json_get(node, "currency"));
    double ignored, pue = number(node, "pue");

    pue = pue > 0 ? pue : 1;
    books->has_grams = json_double(json_get(node, "grams_per_kwh"), &ignored);
    books->grams_per_kwh = pue * number(node, "grams_per_kwh");
    books->has_cost = currency && price_is_currency(currency) &&
                      json_double(json_get(node, "price_per_kwh"), &ignored);
    books->cost_per_kwh = pue * number(node, "price_per_kwh");
    memset(books->currency, 0, sizeof(books->currency));
    if (books->has_cost)
        memcpy(books->currency, currency, sizeof(books->currency));
}

static uint64_t divided_uj(const struct json *meters, const struct books_meter *of)
{
    for (size_t i = 0; i < json_length(meters); i++) {
        const struct json *from = json_at(meters, i);
        const char *id = json_text(json_get(from, "meter_id"));
        enum meter_kind kind;

        if (id && strcmp(id, of->id) == 0 && find_kind(json_text(json_get(from, "meter")), &kind) &&
            kind == of->kind)
            return micro(from, "energy_joules");
    }
    return 0;
}

/* Whatever it had not kept, it counts from 0. */
static void go_on(struct books *books, const struct json *meters)
{
    for (size_t i = 0; i < books->meter_count; i++) {
        struct books_meter *meter = &books->meters[i];

        if (divided_uj(meters, meter) + meter->past_divided_uj >= meter->divided_uj)
            continue;
        meter->past_counted_uj = meter->counted_uj;
        meter->past_divided_uj = meter->divided_uj;
        meter->past_idle_uj = meter->idle_uj;
        for (size_t row = 0; row < books->row_count; row++)
            if (meter->kind == METER_GPU && books->rows[row].gpu == meter->gpu) {
                books->rows[row].past_uj = books->rows[row].energy_uj;
                books->rows[row].past_uncertain_uj = books->rows[row].uncertain_uj;
            }
    }
}

static int take_node(struct books *books, const struct json *node, struct error *err)
{
    const struct json *meters = json_get(node, "meters"), *workloads = json_get(node, "workloads");
    uint64_t started_us;
    int64_t api;
    int r = 0;

    if (!json_int64(json_get(node, "api"), &api) || api != 1)
        return error_set(err, -EBADMSG,
                         "this is no document of a wattribute that we know: update the older one");
    if (json_is_true(json_get(node, "replay")))
        return error_set(err, -ENOTSUP, "it plays a trace, and measures nothing of this node");
    started_us = micro(node, "start_time");
    if (books->started_us > 0 && started_us != books->started_us)
        go_on(books, meters);
    books->started_us = started_us;
    for (size_t i = 0; i < json_length(meters); i++)
        take_meter(books, json_at(meters, i));
    for (size_t i = 0; i < json_length(workloads) && r == 0; i++)
        r = take_processes(books, json_get(json_at(workloads, i), "processes"));
    if (r == 0)
        r = take_processes(books, json_get(node, "system_processes"));
    take_price(books, node);
    return r < 0 ? error_set(err, r, "out of memory") : 0;
}

int books_take_document(struct books *books, struct span text, struct error *err)
{
    struct json *node = NULL;
    int r = json_read(text, &node);

    if (r < 0)
        return error_set(err, r, "its document cannot be read: %s", strerror(-r));
    r = take_node(books, node, err);
    json_free(node);
    return r;
}

size_t books_copy_samples(const struct books *books, uint64_t t_us, struct sample *samples,
                          size_t room)
{
    size_t count = 0;

    for (size_t i = 0; i < books->meter_count && count < room; i++) {
        const struct books_meter *meter = &books->meters[i];

        if (meter->is_of_daemon && (meter->kind == METER_PACKAGE || meter->kind == METER_DRAM))
            samples[count++] = (struct sample){
                .kind = SAMPLE_METER,
                .t_us = t_us,
                .meter = {.source = "daemon",
                          .kind = meter->kind,
                          .id = meter->id,
                          .counter_uj = meter->counted_uj,
                          .integrated = true},
            };
    }
    return count;
}
