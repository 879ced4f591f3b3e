/* Intel: i915 and xe, which count the energy of a card and the time of each client. */
#include <stdio.h>
#include <string.h>

#include "core/macros.h"
#include "model/report.h"
#include "sources/drm/drm.h"
#include "sources/overlap.h"

/* Of the card, else of the package in it: never both. */
static const char *const ENERGY_FILES[] = {"energy1_input", "energy2_input"};

/* 0 is no reading: xe shows it when the firmware's telemetry cannot be read
 * (xe_hwmon_energy_get), or of a counter that the card does not have. */
static bool read_energy(const struct drm_card *card, const char *file, uint64_t *ret_uj)
{
    return drm_read_number(card->hwmon_fd, file, ret_uj) && *ret_uj > 0;
}

/* The file of its counter, once it counts. NULL: none does. */
static const char *find_energy_file(const struct drm_card *card)
{
    uint64_t energy_uj;

    for (size_t i = 0; i < ARRAY_SIZE(ENERGY_FILES); i++)
        if (read_energy(card, ENERGY_FILES[i], &energy_uj))
            return ENERGY_FILES[i];
    return NULL;
}

/* The clock of the first GT, of xe or of i915. 0: unknown. */
static uint32_t read_clock_mhz(const struct drm_card *card)
{
    char i915[64];
    uint64_t mhz = 0;

    snprintf(i915, sizeof(i915), "drm/card%u/gt_act_freq_mhz", card->found.dies[0].card);
    if (!drm_read_number(card->device_fds[0], "tile0/gt0/freq0/act_freq", &mhz))
        (void)drm_read_number(card->device_fds[0], i915, &mhz);
    return (uint32_t)MIN(mhz, (uint64_t)UINT32_MAX);
}

/* Neither driver reports power: the mean of a window. */
static void take_power(struct drm_poll *poll, struct drm_meters *meters)
{
    struct drm_card *card = poll->card;

    if (card->last_energy_us > 0 && poll->mono_us > card->last_energy_us &&
        meters->energy_uj >= card->last_energy_uj) {
        meters->power_uw =
            (uint64_t)((unsigned __int128)(meters->energy_uj - card->last_energy_uj) *
                       USEC_PER_SEC / (poll->mono_us - card->last_energy_us));
        meters->has_power = meters->power_uw <= PLAUSIBLE_POWER_MAX_UW;
    }
    card->last_energy_uj = meters->energy_uj;
    card->last_energy_us = poll->mono_us;
}

static void read_meters(struct drm_poll *poll, struct drm_meters *meters)
{
    struct drm_card *card = poll->card;
    uint64_t value;

    /* All work is of clients; if not all can be seen, their sum says nothing. */
    meters->has_activity = !drm_clients_are_partial(&card->clients, poll->mono_us);
    meters->utilisation = (struct sample_utilisation){
        .gpu_percent = drm_poll_busy_percent(poll),
        .memory_percent = SAMPLE_PERCENT_UNKNOWN,
        .sm_clock_mhz = read_clock_mhz(card),
    };
    /* Of the package: xe's, or i915's. */
    if (drm_read_number(card->hwmon_fd, "temp2_input", &value) ||
        drm_read_number(card->hwmon_fd, "temp1_input", &value))
        meters->utilisation.temperature_c = (uint32_t)(value / 1000);
    if (drm_read_number(card->hwmon_fd, "temp3_input", &value))
        drm_poll_add_gauge(poll, GPU_GAUGE_MEMORY_TEMPERATURE_C, value / 1000);
    if (!card->energy_file)
        card->energy_file = find_energy_file(card);
    meters->has_energy =
        card->energy_file && read_energy(card, card->energy_file, &meters->energy_uj);
    if (meters->has_energy)
        take_power(poll, meters);
}

/* Those are always at this address, and boards never. */
static bool is_integrated(const struct drm_card *card)
{
    return strcmp(card->found.dies[0].pci, "0000:00:02.0") == 0;
}

/* In a virtual machine, nothing in sysfs tells. */
static bool is_virtual_function(const struct drm_card *card)
{
    char board[DRM_TEXT_BYTES];

    drm_read_link(card->device_fds[0], "physfn", board, sizeof(board));
    return board[0] != '\0';
}

static void check(struct report *report, const struct drm_card *card)
{
    const struct source_context *context = card->shared->context;
    bool is_in_package = overlap_measures_package(context->host, context->switches);
    const char *file = find_energy_file(card);
    char what[64];

    snprintf(what, sizeof(what), "gpu %u: energy", card->index);
    if (file)
        report_add(report, what, VERDICT_OK, NULL, "counted, hwmon's %s", file);
    else if (is_integrated(card) && is_in_package)
        report_add(report, what, VERDICT_OK, NULL,
                   "part of the package's energy, which another meter counts");
    else if (is_integrated(card))
        report_add(report, what, VERDICT_LIMITED,
                   "let RAPL be read, which counts the package (see the lines of rapl)",
                   "part of the package's energy, which no meter counts: it has no joules");
    else if (is_virtual_function(card))
        report_add(report, what, VERDICT_LIMITED, "read the board itself: its physical function",
                   "a virtual function has no counter of its own: it has no joules");
    else if (card->hwmon_fd >= 0)
        report_add(report, what, VERDICT_LIMITED,
                   "look for the firmware's telemetry (pmt, GuC) in the kernel's log",
                   "its counter stands at 0, as where the firmware does not answer: it has no "
                   "joules");
    else
        report_add(report, what, VERDICT_LIMITED,
                   strcmp(card->found.driver, "xe") == 0
                       ? "use Linux 6.5 or newer; a virtual function has none: read the board's "
                         "energy on its host"
                       : "use Linux 6.2 or newer; a virtual function has none: read the board's "
                         "energy on its host",
                   "its driver shows no counter: it has no joules");
}

const struct drm_vendor drm_intel = {
    .name = "Intel",
    .power_limit = "power1_max",
    .read_meters = read_meters,
    .check = check,
};
