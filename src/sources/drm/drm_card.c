/* One card: opened, polled in the right order, closed. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/fs.h"
#include "core/macros.h"
#include "core/parse.h"
#include "sources/drm/drm.h"

/* Again and again: who had no memory for it the first time would never know the GPU. */
static const uint64_t DESCRIBE_US = 60 * USEC_PER_SEC;

/* Without a reading for so long, the energy in between is not guessed. */
static const uint64_t STALE_POWER_US = 5 * USEC_PER_SEC;

enum { NUMBER_BYTES = 64, PATH_BYTES = 320 };

bool drm_read_number(int directory_fd, const char *name, uint64_t *ret_value)
{
    char text[NUMBER_BYTES];
    struct span number = {text, 0};

    if (directory_fd < 0 || fs_read_at(directory_fd, name, text, sizeof(text), &number.len) < 0)
        return false;
    span_strip_suffix(&number, "\n");
    return parse_u64(number, ret_value) == 0;
}

void drm_read_text(int directory_fd, const char *name, char *text, size_t size_bytes)
{
    size_t len;

    if (directory_fd < 0 || fs_read_at(directory_fd, name, text, size_bytes, &len) < 0)
        text[0] = '\0';
    text[strcspn(text, "\n")] = '\0';
}

bool drm_card_sum(const struct drm_card *card, const char *name, uint64_t *ret_sum)
{
    uint64_t sum = 0, value;

    for (size_t i = 0; i < card->found.die_count; i++)
        if (!drm_read_number(card->device_fds[i], name, &value) ||
            __builtin_add_overflow(sum, value, &sum))
            return false;
    *ret_sum = sum;
    return true;
}

bool drm_poll_is_over(const struct drm_poll *poll)
{
    return poll->result == -ENODEV || poll->result == -ENOMEM;
}

void drm_poll_out_of_memory(struct drm_poll *poll)
{
    poll->result = error_set(poll->err, -ENOMEM, "out of memory");
}

void drm_poll_add(struct drm_poll *poll, struct sample sample)
{
    sample.gpu = poll->card->index;
    sample.t_us = poll->now_us;
    if (batch_add(poll->batch, &sample) < 0)
        drm_poll_out_of_memory(poll);
}

void drm_poll_add_gauge(struct drm_poll *poll, enum gpu_gauge gauge, uint64_t value)
{
    drm_poll_add(
        poll, (struct sample){.kind = SAMPLE_GAUGE, .gauge = {gauge, value, SAMPLE_NO_INSTANCE}});
}

/* The directory of the card's own chip: i915 has one for each GT, too. */
static int open_hwmon(const struct drm_card *card)
{
    DIR *directory = fs_open_dir(card->device_fds[0], "hwmon");
    const struct dirent *entry;
    int found_fd = -1;

    while (directory && found_fd < 0 && (entry = readdir(directory))) {
        char path[PATH_BYTES], name[DRM_TEXT_BYTES];

        snprintf(path, sizeof(path), "%s/name", entry->d_name);
        drm_read_text(dirfd(directory), path, name, sizeof(name));
        if (strcmp(name, card->found.driver) == 0)
            found_fd = openat(dirfd(directory), entry->d_name, O_PATH | O_DIRECTORY | O_CLOEXEC);
    }
    if (directory)
        closedir(directory);
    return found_fd;
}

/* "amdgpu", or with its version if it does not come with the kernel. */
static void find_driver(struct drm_card *card)
{
    char path[PATH_BYTES], version[DRM_TEXT_BYTES / 2];

    snprintf(path, sizeof(path), "module/%s/version", card->found.driver);
    drm_read_text(card->shared->context->host->sysfs_fd, path, version, sizeof(version));
    snprintf(card->driver, sizeof(card->driver), "%s%s%s", card->found.driver,
             version[0] ? " " : "", version);
}

static void identify(struct drm_card *card)
{
    char model[DRM_TEXT_BYTES / 2];

    if (card->found.vendor->identify)
        card->found.vendor->identify(card);
    if (card->uuid[0] == '\0')
        snprintf(card->uuid, sizeof(card->uuid), "PCI-%s", card->found.dies[0].pci);
    drm_read_text(card->device_fds[0], "device", model, sizeof(model));
    if (card->name[0] == '\0')
        snprintf(card->name, sizeof(card->name), "%s GPU %s", card->found.vendor->name, model);
}

int drm_card_open(struct drm_card *card, struct error *err)
{
    const struct host *host = card->shared->context->host;

    for (size_t i = 0; i < card->found.die_count; i++) {
        card->device_fds[i] = drm_open_die(host, &card->found.dies[i]);
        if (card->device_fds[i] < 0)
            return error_set(err, -ENODEV, "GPU %u: %s", card->index,
                             strerror(-card->device_fds[i]));
    }
    card->hwmon_fd = open_hwmon(card);
    find_driver(card);
    identify(card);
    return 0;
}

void drm_card_close(struct drm_card *card)
{
    for (size_t i = 0; i < DRM_DIES_MAX; i++)
        if (card->device_fds[i] >= 0)
            close(TAKE_FD(card->device_fds[i]));
    if (card->hwmon_fd >= 0)
        close(TAKE_FD(card->hwmon_fd));
}

bool drm_card_is_suspended(const struct drm_card *card)
{
    char text[NUMBER_BYTES];

    drm_read_text(card->device_fds[0], "power/runtime_status", text, sizeof(text));
    return strcmp(text, "suspended") == 0;
}

static bool has_hwmon(const struct drm_card *card)
{
    _cleanup_close_ int fd = open_hwmon(card);

    return fd >= 0;
}

/* Or must it begin anew? */
static bool is_gone(const struct drm_card *card)
{
    if (atomic_load(&card->shared->is_outdated[card->index]))
        return true;
    for (size_t i = 0; i < card->found.die_count; i++)
        if (faccessat(card->device_fds[i], "vendor", F_OK, 0) < 0)
            return true;
    /* The device outlives its driver, the files of the driver do not; and it may make them late. */
    return card->hwmon_fd >= 0 ? faccessat(card->hwmon_fd, "name", F_OK, 0) < 0 : has_hwmon(card);
}

/* 0: none. */
static uint32_t find_render_minor(const struct drm_card *card)
{
    DIR *directory = fs_open_dir(card->device_fds[0], "drm");
    const struct dirent *entry;
    uint64_t minor = 0;

    while (directory && minor == 0 && (entry = readdir(directory))) {
        struct span number = span_of(entry->d_name);

        if (span_strip_prefix(&number, "renderD"))
            (void)parse_u64_max(number, UINT32_MAX, &minor);
    }
    if (directory)
        closedir(directory);
    return (uint32_t)minor;
}

/* Copies the strings: a batch may outlive the card. */
static void describe(struct drm_poll *poll)
{
    struct drm_card *card = poll->card;
    struct arena *arena = &poll->batch->arena;
    const char *pci = card->found.dies[0].pci;
    struct sample_device device = {
        .uuid = arena_copy(arena, card->uuid, strlen(card->uuid)),
        .name = arena_copy(arena, card->name, strlen(card->name)),
        .driver = arena_copy(arena, card->driver, strlen(card->driver)),
        .pci = arena_copy(arena, pci, strlen(pci)),
        .has_minor = true,
        .minor = card->found.dies[0].card,
        .render_minor = find_render_minor(card),
    };
    uint64_t value;

    if (drm_read_number(card->hwmon_fd, card->found.vendor->power_limit, &value))
        device.power_limit_mw = value / 1000;
    if (drm_card_sum(card, "mem_info_vram_total", &value))
        device.memory_bytes = value;
    if (!device.uuid || !device.name || !device.driver || !device.pci)
        drm_poll_out_of_memory(poll);
    else
        drm_poll_add(poll, (struct sample){.kind = SAMPLE_DEVICE, .device = device});
    if (!drm_poll_is_over(poll))
        card->describe_us = poll->mono_us + DESCRIBE_US;
}

/* What all cards have. */
static void read_gauges(struct drm_poll *poll)
{
    const struct drm_card *card = poll->card;
    uint64_t total, used, value;

    if (drm_read_number(card->hwmon_fd, card->found.vendor->power_limit, &value) && value > 0)
        drm_poll_add_gauge(poll, GPU_GAUGE_POWER_LIMIT_MW, value / 1000);
    if (drm_card_sum(card, "mem_info_vram_total", &total) &&
        drm_card_sum(card, "mem_info_vram_used", &used)) {
        drm_poll_add_gauge(poll, GPU_GAUGE_MEMORY_TOTAL_BYTES, total);
        drm_poll_add_gauge(poll, GPU_GAUGE_MEMORY_USED_BYTES, used);
        drm_poll_add_gauge(poll, GPU_GAUGE_MEMORY_FREE_BYTES, total - MIN(total, used));
    }
    if (drm_read_number(card->device_fds[0], "current_link_width", &value) && value > 0 &&
        value <= 32) /* of an integrated GPU it is 255 */
        drm_poll_add_gauge(poll, GPU_GAUGE_PCIE_WIDTH, value);
}

static void pass_energy(struct drm_poll *poll, const struct drm_meters *meters)
{
    struct drm_card *card = poll->card;

    if (meters->has_power)
        drm_poll_add(poll,
                     (struct sample){.kind = SAMPLE_POWER, .power_mw = meters->power_uw / 1000});
    if (card->energy == DRM_ENERGY_UNKNOWN && meters->has_energy)
        card->energy = DRM_ENERGY_COUNTER;
    else if (card->energy == DRM_ENERGY_UNKNOWN && meters->has_power && !meters->may_have_energy)
        card->energy = DRM_ENERGY_INTEGRAL;
    if (card->energy == DRM_ENERGY_COUNTER && meters->has_energy)
        drm_poll_add(poll, (struct sample){.kind = SAMPLE_ENERGY, .counter_uj = meters->energy_uj});
    if (card->energy == DRM_ENERGY_INTEGRAL && meters->has_power) {
        integrator_add(&card->integrator, poll->mono_us, meters->power_uw);
        drm_poll_add(poll, (struct sample){.kind = SAMPLE_INTEGRAL,
                                           .counter_uj = card->integrator.energy_uj});
    }
}

/* Activity is taken to have been like this since it was last read. */
static void take_activity(const struct drm_poll *poll, const struct drm_meters *meters)
{
    struct drm_card *card = poll->card;
    uint64_t percent = meters->has_activity ? meters->utilisation.gpu_percent : 100;

    card->active_us += (poll->mono_us - MIN(card->activity_us, poll->mono_us)) * percent / 100;
    card->activity_us = poll->mono_us;
}

/* The energy closes the window: it is last. */
static void end_window(struct drm_poll *poll)
{
    struct drm_meters meters = {0};

    poll->card->found.vendor->read_meters(poll, &meters);
    if (meters.has_activity && !drm_poll_is_over(poll))
        drm_poll_add(
            poll, (struct sample){.kind = SAMPLE_UTILISATION, .utilisation = meters.utilisation});
    take_activity(poll, &meters);
    if (!drm_poll_is_over(poll))
        drm_poll_pass_busy(poll);
    if (!drm_poll_is_over(poll))
        read_gauges(poll);
    if (!drm_poll_is_over(poll))
        pass_energy(poll, &meters);
}

/* Between the ends of windows, for what would be missed there. */
static void read_instant(const struct drm_poll *poll)
{
    struct drm_card *card = poll->card;
    struct drm_meters meters = {0};

    card->found.vendor->read_instant(card, &meters);
    take_activity(poll, &meters);
    if (card->energy == DRM_ENERGY_INTEGRAL && meters.has_power)
        integrator_add(&card->integrator, poll->mono_us, meters.power_uw);
}

static void card_poll(struct drm_poll *poll)
{
    struct drm_card *card = poll->card;
    const struct drm_vendor *vendor = card->found.vendor;
    bool is_due = poll->mono_us >= card->describe_us;

    if (is_due)
        describe(poll);
    if (vendor->read_parts && (is_due || poll->window_ends) && !drm_poll_is_over(poll))
        vendor->read_parts(poll, is_due);
    if (!drm_poll_is_over(poll))
        drm_poll_read_processes(poll);
    if (poll->window_ends && !drm_poll_is_over(poll))
        end_window(poll);
    else if (vendor->read_instant && !drm_poll_is_over(poll) &&
             (drm_card_has_uncounted(card) ||
              (card->energy == DRM_ENERGY_INTEGRAL && card->process_count > 0)))
        read_instant(poll);
    card->poll_us = poll->mono_us;
}

static int card_read(void *state, struct batch *batch, struct error *err)
{
    struct drm_card *card = state;
    const struct clock *clock = card->shared->context->clock;
    struct drm_poll poll = {
        .card = card,
        .batch = batch,
        .err = err,
        .now_us = clock->realtime_us(clock),
        .mono_us = clock->monotonic_us(clock),
        .window_ends = card->polls++ % card->shared->polls_per_window == 0 || batch->is_requested,
    };

    if (card->device_fds[0] < 0)
        poll.result = drm_card_open(card, err);
    else if (poll.window_ends && is_gone(card))
        poll.result = error_set(
            err, -ENODEV, "GPU %u: it or its driver was removed, or begins anew", card->index);
    if (poll.result == 0 && !drm_card_is_suspended(card))
        card_poll(&poll);
    if (poll.result == -ENODEV)
        (void)batch_add(
            batch, &(struct sample){.kind = SAMPLE_LOST, .gpu = card->index, .t_us = poll.now_us});
    return poll.result;
}

static void card_close(void *state)
{
    struct drm_card *card = state;

    if (!card)
        return;
    drm_card_close(card);
    gpu_pids_done(&card->pids);
    drm_clients_done(&card->clients);
    free(card->processes);
    atomic_store(&card->shared->running[card->index], false);
    drm_shared_unref(card->shared);
    free(card);
}

int drm_card_new(struct drm_shared *shared, uint32_t index, const struct drm_found *found,
                 void **ret_state)
{
    struct drm_card *card = calloc(1, sizeof(*card));

    if (!card)
        return -ENOMEM;
    card->shared = shared;
    card->found = *found;
    card->index = index;
    for (size_t i = 0; i < DRM_DIES_MAX; i++)
        card->device_fds[i] = -1;
    card->hwmon_fd = -1;
    drm_clients_init(&card->clients, &shared->files);
    for (size_t i = 0; i < found->die_count; i++)
        drm_clients_add_card(&card->clients, card->found.dies[i].pci);
    card->integrator.stale_us = STALE_POWER_US;
    card->pids = (struct gpu_pids){.context = shared->context, .proc = &shared->proc, .gpu = index};
    atomic_fetch_add(&shared->references, 1);
    atomic_store(&shared->is_outdated[index], false);
    atomic_store(&shared->running[index], true);
    *ret_state = card;
    return 0;
}

const struct source_ops drm_card_unit = {
    .name = "drm",
    .read = card_read,
    .close = card_close,
};
