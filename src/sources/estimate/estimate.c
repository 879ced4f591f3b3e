#include "sources/source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"
#include "host/machine.h"
#include "model/report.h"
#include "sources/estimate/cpu_power.h"
#include "sources/estimate/estimated_power.h"
#include "sources/overlap.h"

struct model {
    const struct source_context *context;
    struct estimated_power power;
};

/* The watts that were given, or those of the processor. */
static int find_power(const struct source_context *context, struct estimated_power *power,
                      struct error *err)
{
    struct cpu_identity cpu = {0};
    struct cpu_power known;
    int r;

    power->idle_uw = context->model->idle_uw;
    power->full_uw = context->model->full_uw;
    if (!context->model->by_table)
        return 0;
    r = cpu_power_of_host(context->host, &cpu, &known);
    if (r == -ENOENT || r == -ENODATA)
        return error_set(err, -ENOTSUP,
                         "nothing is modelled: what this processor draws is not known (%s family "
                         "%u model %u, '%s'); give --model.idle-watts and --model.full-watts",
                         cpu.vendor, (unsigned)cpu.family, (unsigned)cpu.model, cpu.name);
    if (r < 0)
        return error_set(err, -ENOTSUP, "nothing is modelled: /proc/cpuinfo: %s", strerror(-r));
    power->idle_uw = known.idle_uw;
    power->full_uw = known.full_uw;
    return 0;
}

static int model_open(const struct source_context *context, void **ret_state, struct error *err)
{
    struct model *model;
    int r;

    if (context->replay_path || !context->model || !context->model->is_on ||
        atomic_load(&context->model->gives_way))
        return -ENODEV;
    model = calloc(1, sizeof(*model));
    if (!model)
        return error_set(err, -ENOMEM, "out of memory");
    model->context = context;
    r = find_power(context, &model->power, err);
    if (r < 0) {
        free(model);
        return r;
    }
    *ret_state = model;
    return 0;
}

static int model_read(void *state, struct batch *batch, struct error *err)
{
    struct model *model = state;
    const struct clock *clock = model->context->clock;
    const struct estimated_power *power = &model->power;
    struct machine machine;
    int r;

    if (atomic_load(&model->context->model->gives_way))
        return error_set(err, -ENODEV,
                         "a meter measures the processors: nothing is modelled any more");
    r = machine_read(model->context->host, &machine);
    if (r < 0)
        return error_set(err, r, "/proc/stat and /proc/meminfo: %s", strerror(-r));
    estimated_power_add(&model->power, clock->monotonic_us(clock), machine.busy_us,
                        machine.capacity_us);
    r = batch_add(batch, &(struct sample){.kind = SAMPLE_METER,
                                          .t_us = clock->realtime_us(clock),
                                          .meter = {.source = "model",
                                                    .kind = METER_PACKAGE,
                                                    .id = "model",
                                                    .counter_uj = power->idle_uj + power->active_uj,
                                                    .breaks = power->breaks,
                                                    .integrated = true,
                                                    .modelled = true,
                                                    .idle_uj = power->idle_uj}});
    return r < 0 ? error_set(err, r, "out of memory") : 0;
}

static unsigned whole_watts(uint64_t power_uw)
{
    return (unsigned)((power_uw + 500000) / 1000000);
}

static void report_known_power(struct report *report, const struct host *host, bool is_on)
{
    struct cpu_identity cpu = {0};
    struct cpu_power power;
    int r = cpu_power_of_host(host, &cpu, &power);

    report->has_model = r == 0 && is_on;
    if (r == 0)
        report_add(report, "model", is_on ? VERDICT_OK : VERDICT_MISSING,
                   is_on ? NULL : "where no meter measures the processors: --model.cpu=auto",
                   "%s%s, %u CPU%s: %u W idle, %u W busy",
                   is_on ? "" : "off; known for this machine: ", power.generation,
                   (unsigned)cpu.cpus, PLURAL_S(cpu.cpus), whole_watts(power.idle_uw),
                   whole_watts(power.full_uw));
    else
        report_add(report, "model", VERDICT_MISSING,
                   "where no meter measures the processors: --model.idle-watts and "
                   "--model.full-watts",
                   "%swhat this processor draws is not known: %s family %u model %u, '%s'",
                   is_on ? "" : "off; ", cpu.vendor, (unsigned)cpu.family, (unsigned)cpu.model,
                   cpu.name);
}

/* Says nothing where it is off and RAPL measures the processors. */
static void model_check(const struct source_context *context, struct report *report)
{
    const struct source_estimate *model = context->model;

    if (!model->is_on && overlap_rapl_measures(context->host, context->switches, METER_PACKAGE))
        return;
    if (model->is_on && !model->by_table) {
        report->has_model = true;
        report_add(report, "model", VERDICT_OK, NULL, "as given: %u W idle, %u W busy",
                   whole_watts(model->idle_uw), whole_watts(model->full_uw));
    } else {
        report_known_power(report, context->host, model->is_on);
    }
}

const struct source_ops model_source = {
    .name = "model",
    .open = model_open,
    .read = model_read,
    .close = free,
    .check = model_check,
};
