/*
 * A simulated meter: the file or the register that a source reads, what was really drawn, and what
 * somebody who reads it at given times can know of that. The last is reckoned here on its own, and
 * not by the code under test.
 */
#pragma once

#include "tree_fixture.h"

#include <stdbool.h>

#include "model/meter.h"
#include "random.h"

enum sim_source { SIM_RAPL, SIM_HWMON, SIM_CRAY, SIM_IPMI, SIM_CGROUPS, SIM_SOURCES };

enum sim_form {
    SIM_ZONE,   /* powercap: the energy of a zone, in uJ, that begins again when it is full */
    SIM_EVENT,  /* perf: counts of 2^-32 J since it was opened */
    SIM_ENERGY, /* hwmon: energy in uJ */
    SIM_JOULES, /* Cray: energy in J */
    SIM_POWER,  /* hwmon: power in uW */
    SIM_BMC,    /* IPMI: power in W */
};

struct sim_meter_plan {
    enum sim_form form;
    enum meter_kind kind;
    const char *id;
    unsigned watts;    /* about */
    uint64_t range_uj; /* of a zone */
    const char *file;  /* below sysfs, of those that have one */
    bool is_forbidden; /* nobody but root may read it: for us it is not there */
};

struct sim_meter {
    const struct sim_meter_plan *plan;
    int fd; /* to write its file */
    uint64_t drawn_uj, power_uw;
    uint64_t hidden_uj;  /* drawn before the register began, or began again */
    bool is_garbage;     /* what is there to be read now */
    bool was_reset;      /* since the last reading */
    bool has_last;       /* there was a reading from which can be counted on */
    uint64_t last_us;    /* of that: when, */
    uint64_t last_uj;    /* what it showed, had the register been wide enough, */
    uint64_t last_uw;    /* or which power */
    bool is_shown;       /* since its source was opened */
    uint64_t counted_uj; /* since then */
    unsigned __int128 area;
    uint64_t readable_uj; /* since ever */
};

static enum sim_source sim_source_of(enum sim_form form)
{
    switch (form) {
    case SIM_ZONE:
    case SIM_EVENT:
        return SIM_RAPL;
    case SIM_ENERGY:
    case SIM_POWER:
        return SIM_HWMON;
    case SIM_JOULES:
        return SIM_CRAY;
    default:
        return SIM_IPMI;
    }
}

static bool sim_is_integrated(const struct sim_meter *meter)
{
    return meter->plan->form == SIM_POWER || meter->plan->form == SIM_BMC;
}

static uint64_t sim_event_count(const struct sim_meter *meter)
{
    return (uint64_t)(((unsigned __int128)(meter->drawn_uj - meter->hidden_uj) << 32) / 1000000);
}

/* What its file shows, had it no end, in uJ. */
static uint64_t sim_shown_uj(const struct sim_meter *meter)
{
    uint64_t uj = meter->drawn_uj - meter->hidden_uj;

    switch (meter->plan->form) {
    case SIM_EVENT:
        return (uint64_t)((unsigned __int128)sim_event_count(meter) * 1000000 >> 32);
    case SIM_JOULES:
        return uj / 1000000 * 1000000;
    default:
        return uj;
    }
}

static void sim_meter_write(const struct sim_meter *meter, uint64_t now_us)
{
    uint64_t uj = sim_shown_uj(meter);
    char text[96];

    if (meter->plan->form == SIM_JOULES)
        snprintf(text, sizeof(text), "%ju J %ju us\n", (uintmax_t)(uj / 1000000),
                 (uintmax_t)now_us);
    else if (meter->plan->form == SIM_POWER)
        snprintf(text, sizeof(text), "%ju\n", (uintmax_t)meter->power_uw);
    else
        snprintf(text, sizeof(text), "%ju\n",
                 (uintmax_t)(meter->plan->range_uj ? uj % meter->plan->range_uj : uj));
    tree_write_fd(meter->fd, text);
}

static void sim_meter_write_garbage(const struct sim_meter *meter, struct random_source *random)
{
    static const char *const texts[] = {"",     "\n",         "junk\n",
                                        "-1\n", "12 13 14\n", "99999999999999999999999\n"};

    tree_write_fd(meter->fd, texts[random_u64(random) % ARRAY_SIZE(texts)]);
}

/* Draws for so long; half to one and a half of what is planned. */
static void sim_meter_draw(struct sim_meter *meter, uint64_t us, struct random_source *random)
{
    uint64_t planned_uw = meter->plan->watts * (uint64_t)1000000;

    meter->power_uw = planned_uw / 2 + random_u64(random) % planned_uw;
    meter->drawn_uj += meter->power_uw * us / 1000000;
}

/*
 * The register begins again at 0, if anybody can tell: near its end that would be a wrap, and near
 * its beginning it would not have gone back. 100 kJ are more than any of them can count in a step.
 */
static void sim_meter_reset(struct sim_meter *meter)
{
    static const uint64_t FAR_UJ = 100000000000;
    uint64_t range_uj = meter->plan->range_uj, uj = meter->drawn_uj - meter->hidden_uj;

    if (sim_is_integrated(meter) || meter->plan->form == SIM_EVENT)
        return;
    if (range_uj > 0)
        uj %= range_uj;
    if (uj < FAR_UJ || (range_uj > 0 && uj + FAR_UJ > range_uj))
        return;
    meter->hidden_uj = meter->drawn_uj;
    meter->was_reset = true;
}

/* The longest time between two readings after which it is still known what was counted. */
static uint64_t sim_longest_us(const struct sim_meter_plan *plan)
{
    switch (plan->form) {
    case SIM_ZONE: /* half of the range, by 2 kW, or 10 kW of a platform */
        return plan->range_uj / 2 / (plan->kind == METER_PSYS ? 10000 : 2000);
    case SIM_EVENT:
    case SIM_BMC:
        return 30000000;
    case SIM_POWER:
        return 3000000;
    default:
        return UINT64_MAX;
    }
}

/* What is known after a reading that somebody could use. */
static void sim_meter_count(struct sim_meter *meter, uint64_t now_us)
{
    uint64_t uj = sim_shown_uj(meter), before_uj = meter->counted_uj;
    bool is_known = meter->has_last && !meter->was_reset &&
                    now_us - meter->last_us <= sim_longest_us(meter->plan);

    if (is_known && sim_is_integrated(meter)) {
        meter->area +=
            (unsigned __int128)(meter->last_uw + meter->power_uw) * (now_us - meter->last_us);
        meter->counted_uj = (uint64_t)(meter->area / 2000000);
    } else if (is_known) {
        meter->counted_uj += uj - meter->last_uj;
    }
    meter->has_last = true;
    meter->was_reset = false;
    meter->last_us = now_us;
    meter->last_uj = uj;
    meter->last_uw = meter->power_uw;
    if (meter->plan->form == SIM_EVENT && uj == 0)
        return; /* it stands at 0, as those of virtual machines: it is not shown as yet */
    if (meter->is_shown)
        meter->readable_uj += meter->counted_uj - before_uj;
    meter->is_shown = true;
}

/* Its source was read now. RAPL trusts no count that it did not see pass. */
static void sim_meter_note_read(struct sim_meter *meter, uint64_t now_us)
{
    if (!meter->is_garbage)
        sim_meter_count(meter, now_us);
    else if (sim_source_of(meter->plan->form) == SIM_RAPL)
        meter->has_last = false;
}

static void sim_meter_note_closed(struct sim_meter *meter)
{
    meter->has_last = meter->is_shown = false;
    meter->counted_uj = 0;
    meter->area = 0;
}
