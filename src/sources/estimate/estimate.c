#include "sources/source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"
#include "host/machine.h"
#include "model/report.h"
#include "sources/estimate/cpu_power.h"
#include "sources/overlap.h"

struct model {
    const struct source_context *context;
    struct cpu_energy energy;
};

static int model_open(const struct source_context *context, void **ret_state, struct error *err)
{
    const struct source_estimate *config = context->model;
    struct cpu_identity cpu = {0};
    struct cpu_power power;
    struct model *model;
    int r;

    if (context->replay_path || !config || !config->is_on || source_package_is_metered(context))
        return -ENODEV;
    power = (struct cpu_power){.idle_uw = config->idle_uw, .full_uw = config->full_uw};
    r = config->by_table ? cpu_power_of_host(context->host, &cpu, &power) : 0;
    if (r == -ENOENT || r == -ENODATA)
        return error_set(err, -ENOTSUP,
                         "no estimate: the power of this processor is unknown (%s family %u model "
                         "%u, '%s'); set --model.idle-watts and --model.full-watts",
                         cpu.vendor, (unsigned)cpu.family, (unsigned)cpu.model, cpu.name);
    if (r < 0)
        return error_set(err, -ENOTSUP, "no estimate: /proc/cpuinfo: %s", strerror(-r));
    model = calloc(1, sizeof(*model));
    if (!model)
        return error_set(err, -ENOMEM, "out of memory");
    model->context = context;
    model->energy = (struct cpu_energy){.idle_uw = power.idle_uw, .full_uw = power.full_uw};
    *ret_state = model;
    return 0;
}

static int model_read(void *state, struct batch *batch, struct error *err)
{
    struct model *model = state;
    const struct clock *clock = model->context->clock;
    const struct cpu_energy *energy = &model->energy;
    struct machine machine;
    int r;

    if (source_package_is_metered(model->context))
        return error_set(err, -ENODEV, "a meter measures the processors: the estimate ends");
    r = machine_read(model->context->host, &machine);
    if (r < 0)
        return error_set(err, r, "/proc/stat and /proc/meminfo: %s", strerror(-r));
    cpu_energy_add(&model->energy, clock->monotonic_us(clock), machine.busy_us,
                   machine.capacity_us);
    r = batch_add(batch,
                  &(struct sample){.kind = SAMPLE_METER,
                                   .t_us = clock->realtime_us(clock),
                                   .meter = {.source = "model",
                                             .kind = METER_PACKAGE,
                                             .id = "model",
                                             .counter_uj = energy->idle_uj + energy->active_uj,
                                             .breaks = energy->breaks,
                                             .integrated = true,
                                             .modelled = true,
                                             .idle_uj = energy->idle_uj}});
    return r < 0 ? error_set(err, r, "out of memory") : 0;
}

static unsigned whole_watts(uint64_t power_uw)
{
    return (unsigned)((power_uw + 500000) / 1000000);
}

/* No finding where it is off and RAPL measures the processors. */
static void model_check(const struct source_context *context, struct report *report)
{
    const struct source_estimate *model = context->model;
    struct cpu_identity cpu = {0};
    struct cpu_power power;

    if (!model->is_on && overlap_rapl_measures(context->host, context->switches, METER_PACKAGE))
        return;
    report->has_model = model->is_on;
    if (model->is_on && !model->by_table) {
        report_add(report, "model", VERDICT_OK, NULL, "as configured: %u W idle, %u W busy",
                   whole_watts(model->idle_uw), whole_watts(model->full_uw));
    } else if (cpu_power_of_host(context->host, &cpu, &power) == 0) {
        report_add(report, "model", model->is_on ? VERDICT_OK : VERDICT_MISSING,
                   model->is_on ? NULL : "where no meter measures the processors: --model.cpu=auto",
                   "%s%s, %u CPU%s: %u W idle, %u W busy",
                   model->is_on ? "" : "off; known for this machine: ", power.generation,
                   (unsigned)cpu.cpus, PLURAL_S(cpu.cpus), whole_watts(power.idle_uw),
                   whole_watts(power.full_uw));
    } else {
        report->has_model = false;
        report_add(report, "model", VERDICT_MISSING,
                   "where no meter measures the processors: --model.idle-watts and "
                   "--model.full-watts",
                   "%sthe power of this processor is unknown: %s family %u model %u, '%s'",
                   model->is_on ? "" : "off; ", cpu.vendor, (unsigned)cpu.family,
                   (unsigned)cpu.model, cpu.name);
    }
}

const struct source_ops estimate_source = {
    .name = "model",
    .open = model_open,
    .read = model_read,
    .close = free,
    .check = model_check,
};
