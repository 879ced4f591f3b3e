/* AMD: gpu_metrics, hwmon and KFD. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/fs.h"
#include "core/macros.h"
#include "core/parse.h"
#include "model/report.h"
#include "sources/amd/gpu_metrics.h"
#include "sources/drm/drm.h"
#include "sources/overlap.h"

enum { PATH_BYTES = 320, NARROW_BITS = 32, NARROW_CONTENT_MAX = 3 };

/* The table cannot be read while the GPU is being reset, or wakes up; after so many windows it is
 * taken to have none. */
enum { FAILURES_MAX = 5 };

/* Counts of 2^-16 J: no board draws 4 kW. */
enum { WATTS_MAX = 4000 };
static const uint64_t COUNTS_PER_S_MAX = (uint64_t)WATTS_MAX << 16;

/* A counter that jumps may go back to where it was. */
static const uint64_t GARBAGE_US = 5 * USEC_PER_SEC;

/* False: none of them is valid. */
static bool read_metrics(int device_fd, struct amd_metrics *ret_metrics)
{
    char data[AMD_METRICS_BYTES + 1];
    size_t len;

    *ret_metrics = (struct amd_metrics){0};
    return fs_read_at(device_fd, "gpu_metrics", data, sizeof(data), &len) == 0 &&
           amd_metrics_parse(data, len, ret_metrics) == 0;
}

static bool has(const struct amd_metrics *metrics, enum amd_metric metric)
{
    return metrics->valid & 1U << metric;
}

/* By the tables of APUs or, if none was read that is known, by a voltage that only they have
 * (hwmon_attributes_visible in amdgpu_pm.c). MI300A has the tables of a card, and counts what its
 * socket draws. */
static bool is_apu(const struct drm_card *card, const struct amd_metrics *metrics)
{
    char model[DRM_TEXT_BYTES];

    drm_read_text(card->device_fds[0], "device", model, sizeof(model));
    if (strcmp(model, "0x74a0") == 0)
        return true;
    return metrics->is_known
               ? metrics->format > 1
               : card->hwmon_fd >= 0 && faccessat(card->hwmon_fd, "in1_label", F_OK, 0) == 0;
}

/* The processors' own meter has its energy: what it shows of itself is not booked. At the start by
 * what can be read, as the other source may be slower; later once that has been read, so that
 * nothing is booked by neither for longer than a window. */
static bool is_in_package(const struct drm_card *card)
{
    const struct source_context *context = card->shared->context;

    return card->is_apu && (source_package_is_metered(context) ||
                            (card->energy == DRM_ENERGY_UNKNOWN &&
                             overlap_measures_package(context->host, context->switches)));
}

/* MI250 and MI250X are two dies, each a device of its own. */
static bool is_die(int device_fd)
{
    static const char *const boards[] = {"0x7408", "0x740c"};
    char model[DRM_TEXT_BYTES];

    drm_read_text(device_fd, "device", model, sizeof(model));
    for (size_t i = 0; i < ARRAY_SIZE(boards); i++)
        if (strcmp(model, boards[i]) == 0)
            return true;
    return false;
}

/* "": none. */
static void read_uuid(int device_fd, char uuid[DRM_TEXT_BYTES])
{
    char id[DRM_TEXT_BYTES / 2];
    size_t digits = 0;

    uuid[0] = '\0';
    drm_read_text(device_fd, "unique_id", id, sizeof(id));
    while (isxdigit((unsigned char)id[digits]))
        digits++;
    if (digits > 0 && id[digits] == '\0' && strspn(id, "0") < digits)
        snprintf(uuid, DRM_TEXT_BYTES, "AMD-%s", id);
}

/* Has a card before it the same id? */
static bool is_taken(const struct drm_card *card, const char *uuid)
{
    struct drm_found cards[DRM_CARDS_MAX];
    size_t count = drm_find_cards(card->shared, cards);

    for (size_t i = 0; i < count && strcmp(cards[i].dies[0].pci, card->found.dies[0].pci) < 0;
         i++) {
        _cleanup_close_ int fd = drm_open_die(card->shared->context->host, &cards[i].dies[0]);
        char other[DRM_TEXT_BYTES];

        read_uuid(fd, other);
        if (cards[i].vendor == card->found.vendor && strcmp(other, uuid) == 0)
            return true;
    }
    return false;
}

/* A counter of 32 bits may be full once more, unseen, after as long as the board takes for half of
 * it: at twice its highest limit, which peaks exceed. */
static uint64_t narrow_counts_per_s(const struct drm_card *card)
{
    uint64_t limit_uw;

    if ((!drm_read_number(card->hwmon_fd, "power1_cap_max", &limit_uw) || limit_uw == 0) &&
        (!drm_read_number(card->hwmon_fd, "power1_cap", &limit_uw) || limit_uw == 0))
        return COUNTS_PER_S_MAX;
    return (MIN(limit_uw / 1000000 * 2, (uint64_t)WATTS_MAX - 1) + 1) << 16;
}

static void identify(struct drm_card *card)
{
    read_uuid(card->device_fds[0], card->uuid);
    if (card->uuid[0] != '\0' && is_taken(card, card->uuid))
        card->uuid[0] = '\0';
    drm_read_text(card->device_fds[0], "product_name", card->name, sizeof(card->name));
    counter_limit(&card->count, (uint64_t)1 << NARROW_BITS, narrow_counts_per_s(card));
}

/* From here on: partitions and dies. */

static void add_part(struct drm_card *card, const struct kfd_node *node)
{
    int sysfs_fd = card->shared->context->host->sysfs_fd;
    struct drm_part *part = &card->parts[card->part_count++];
    char path[PATH_BYTES], name[DRM_TEXT_BYTES / 2] = "";

    *part = (struct drm_part){.gpu_id = node->gpu_id,
                              .render_minor = node->render_minor,
                              .compute_units = node->compute_units};
    snprintf(path, sizeof(path), "class/drm/renderD%u/device", node->render_minor);
    if (node->has_render)
        drm_read_link(sysfs_fd, path, name, sizeof(name));
    snprintf(part->id, sizeof(part->id), "%s%s", strchr(name, ':') ? "PCI-" : "", name);
    card->compute_units += part->compute_units;
}

/* Its nodes, die by die. */
static void find_parts(struct drm_card *card, const struct kfd_topology *topology)
{
    card->part_count = 0;
    card->compute_units = 0;
    for (size_t d = 0; d < card->found.die_count; d++)
        for (size_t i = 0; i < topology->count; i++)
            if (strcmp(topology->nodes[i].pci, card->found.dies[d].pci) == 0)
                add_part(card, &topology->nodes[i]);
    if (card->found.die_count > 1)
        snprintf(card->profile, sizeof(card->profile), "die");
    else
        drm_read_text(card->device_fds[0], "current_compute_partition", card->profile,
                      sizeof(card->profile));
}

static void pass_layout(struct drm_poll *poll)
{
    const struct drm_card *card = poll->card;
    struct arena *arena = &poll->batch->arena;
    struct sample_instance *items = arena_array(arena, card->part_count, sizeof(*items));
    const char *profile = arena_copy(arena, card->profile, strlen(card->profile));
    struct sample_layout layout = {0};
    uint64_t memory_bytes = 0;
    bool is_whole = card->part_count <= 1;

    (void)drm_card_sum(card, "mem_info_vram_total", &memory_bytes);
    for (size_t i = 0; !is_whole && items && i < card->part_count; i++) {
        const struct drm_part *part = &card->parts[i];

        items[i] = (struct sample_instance){
            .gpu_instance = (uint32_t)i,
            .index = part->render_minor,
            .uuid = arena_copy(arena, part->id, strlen(part->id)),
            .profile = profile,
            .slices = 1,
            .compute_slices = 1,
            .sm_count = part->compute_units,
            .memory_bytes = memory_bytes / card->part_count,
        };
        if (!items[i].uuid)
            items = NULL;
    }
    if (!profile || (!is_whole && !items)) {
        drm_poll_out_of_memory(poll);
        return;
    }
    if (!is_whole)
        layout = (struct sample_layout){
            .kind = LAYOUT_PARTITIONS,
            .slices = (uint32_t)card->part_count,
            .sm_count = card->compute_units,
            .count = card->part_count,
            .items = items,
        };
    drm_poll_add(poll, (struct sample){.kind = SAMPLE_LAYOUT, .layout = layout});
}

static void read_parts(struct drm_poll *poll, bool always)
{
    struct drm_card *card = poll->card;
    int sysfs_fd = card->shared->context->host->sysfs_fd;
    size_t before = card->part_count;
    struct kfd_topology topology;
    uint64_t generation;
    bool changed = false;

    if (kfd_read_generation(sysfs_fd, &generation) == 0 &&
        (!card->has_topology || generation != card->generation) &&
        kfd_read_topology(sysfs_fd, &topology) == 0) {
        card->has_topology = changed = true;
        card->generation = topology.generation;
        find_parts(card, &topology);
    }
    if ((changed || always) && (card->part_count > 1 || before > 1))
        pass_layout(poll);
}

/* From here on: processes. */

struct kfd_look {
    struct drm_poll *poll;
    uint32_t part;
};

static int take_usage(void *context, const struct kfd_usage *usage)
{
    const struct kfd_look *look = context;
    struct drm_process *process;

    if (usage->vram_bytes == 0 && !usage->has_queues)
        return 0; /* it may use the GPU, and does not */
    process = drm_poll_process(look->poll, usage->pid);
    if (!process)
        return -ENOMEM;
    if (!process->kfd.is_present)
        process->kfd = (__typeof__(process->kfd)){.is_present = true};
    process->is_compute = process->has_worked = true;
    process->parts |= 1U << MIN(look->part, 31U);
    if (usage->has_memory) {
        process->kfd.memory_bytes += MIN(usage->vram_bytes, UINT64_MAX / KFD_NODES_MAX);
        /* A descriptor of the same process shows the same memory. */
        if (process->memory_bytes == SAMPLE_MEMORY_UNKNOWN ||
            process->memory_bytes < process->kfd.memory_bytes)
            process->memory_bytes = process->kfd.memory_bytes;
    }
    process->kfd.copied_us += MIN(usage->sdma_us, UINT64_MAX / KFD_NODES_MAX);
    process->kfd.evicted_ms += MIN(usage->evicted_ms, UINT64_MAX / KFD_NODES_MAX);
    process->kfd.compute_units += MIN(usage->compute_units, UINT32_MAX / KFD_NODES_MAX);
    process->kfd.has_occupancy |= usage->has_occupancy;
    process->kfd.has_queues |= usage->has_queues;
    return 0;
}

/* Occupancy is taken to have been like this since it was last read. */
static void take_occupancy(const struct drm_poll *poll, struct drm_process *process)
{
    const struct drm_card *card = poll->card;
    uint64_t from_us = process->occupancy_at_us ? process->occupancy_at_us : card->poll_us;

    if (process->kfd.has_queues)
        process->is_uncounted = !process->kfd.has_occupancy || card->compute_units == 0;
    if (card->compute_units > 0 && from_us > 0)
        process->occupied_us += (double)(poll->mono_us - MIN(from_us, poll->mono_us)) *
                                MIN((double)process->kfd.compute_units / card->compute_units, 1.0);
    process->occupancy_at_us = poll->mono_us;
}

/* Counts may be 0 as a process ends: the most that they showed is kept. */
static void take_counts(struct drm_process *process)
{
    if (process->is_known) {
        process->copy_us +=
            process->kfd.copied_us - MIN(process->copied_us, process->kfd.copied_us);
        process->evicted_us +=
            1000 * (process->kfd.evicted_ms - MIN(process->evicted_ms, process->kfd.evicted_ms));
    }
    process->copied_us = MAX(process->copied_us, process->kfd.copied_us);
    process->evicted_ms = MAX(process->evicted_ms, process->kfd.evicted_ms);
    process->is_known = true;
}

static void read_processes(struct drm_poll *poll)
{
    struct drm_card *card = poll->card;
    /* It costs a scan of registers, and decides nothing while a process is alone. */
    bool with_occupancy = poll->window_ends || card->process_count > 1, has_occupancy = false;

    for (size_t i = 0; i < card->process_count; i++)
        card->processes[i].kfd.is_present = false;
    for (size_t i = 0; i < card->part_count; i++) {
        struct kfd_look look = {poll, (uint32_t)i};

        (void)kfd_each_process(card->shared->context->host->sysfs_fd, card->parts[i].gpu_id,
                               with_occupancy, take_usage, &look);
    }
    for (size_t i = 0; i < card->process_count; i++) {
        struct drm_process *process = &card->processes[i];

        if (!process->kfd.is_present)
            continue;
        take_counts(process);
        if (with_occupancy)
            take_occupancy(poll, process);
        has_occupancy |= process->kfd.has_occupancy;
    }
    /* What occupies units beside them has a render node open, too, and no chip with occupancy draws
     * pictures. */
    for (size_t i = 0; i < card->process_count && has_occupancy; i++)
        if (card->processes[i].is_untimed && !card->processes[i].kfd.has_queues)
            card->processes[i].is_uncounted = false;
}

/* From here on: meters. */

/* False: the counter has jumped, and is left as it was. */
static bool follow(struct counter *counter, uint64_t mono_us, uint64_t count)
{
    struct counter next = *counter;

    if (count >> NARROW_BITS)
        counter_limit(&next, 0, COUNTS_PER_S_MAX);
    if (!counter_add(&next, mono_us, count) || next.breaks > counter->breaks)
        return false;
    *counter = next;
    return true;
}

/* The firmware may show garbage for a moment, and then count on as before. True: it has counted
 * from elsewhere for so long that it has begun anew there. */
static bool restart(struct drm_card *card, uint64_t mono_us, uint64_t count)
{
    if (!card->suspect.has_last || !follow(&card->suspect, mono_us, count)) {
        card->suspect = card->count;
        card->suspect.has_last = false;
        card->suspect.total = 0;
        (void)follow(&card->suspect, mono_us, count);
        card->suspect_us = mono_us;
    }
    if (mono_us < card->suspect_us + GARBAGE_US)
        return false;
    card->suspect.total += card->count.total;
    card->count = card->suspect;
    return true;
}

/* In the revisions up to 1.3 some chips count 32 bits only, which are full after 65 kJ: until more
 * was seen, a count that goes back is taken as a full one. */
static void take_energy(struct drm_poll *poll, const struct amd_metrics *metrics,
                        struct drm_meters *meters)
{
    struct drm_card *card = poll->card;
    uint64_t count = metrics->values[AMD_ENERGY];

    if (card->energy == DRM_ENERGY_UNKNOWN && count == 0)
        return; /* it has no counter */
    if (metrics->format > 1 || metrics->content > NARROW_CONTENT_MAX)
        counter_limit(&card->count, 0, COUNTS_PER_S_MAX);
    if (!card->count.has_last)
        card->first_count = count;
    if (!follow(&card->count, poll->mono_us, count) && !restart(card, poll->mono_us, count))
        return;
    card->suspect.has_last = false;
    meters->has_energy = true;
    meters->energy_uj = amd_energy_uj(card->first_count + card->count.total);
}

static bool find_power(const struct drm_card *card, const struct amd_metrics *metrics,
                       uint64_t *ret_uw)
{
    if (has(metrics, AMD_POWER_MW))
        *ret_uw = metrics->values[AMD_POWER_MW] * 1000;
    else if (!drm_read_number(card->hwmon_fd, "power1_average", ret_uw) &&
             !drm_read_number(card->hwmon_fd, "power1_input", ret_uw))
        return false;
    return *ret_uw <= PLAUSIBLE_POWER_MAX_UW;
}

/* A metric, or what a file says instead. */
static bool find(const struct amd_metrics *metrics, enum amd_metric metric, int directory_fd,
                 const char *file, uint64_t divisor, uint64_t *ret_value)
{
    if (has(metrics, metric)) {
        *ret_value = metrics->values[metric];
        return true;
    }
    if (!drm_read_number(directory_fd, file, ret_value))
        return false;
    *ret_value /= divisor;
    return true;
}

static void take_activity(const struct drm_card *card, const struct amd_metrics *metrics,
                          struct drm_meters *meters)
{
    int device_fd = card->device_fds[0];
    uint64_t value, sum;

    meters->has_activity = find(metrics, AMD_GFX_PERCENT, device_fd, "gpu_busy_percent", 1, &value);
    if (card->found.die_count > 1 && drm_card_sum(card, "gpu_busy_percent", &sum)) {
        meters->has_activity = true;
        value = sum / card->found.die_count;
    }
    meters->utilisation.gpu_percent = meters->has_activity ? (uint8_t)MIN(value, (uint64_t)100) : 0;
}

static void read_instant(const struct drm_card *card, struct drm_meters *meters)
{
    struct amd_metrics metrics;

    (void)read_metrics(card->device_fds[0], &metrics);
    take_activity(card, &metrics, meters);
    meters->has_power = find_power(card, &metrics, &meters->power_uw);
}

static void take_utilisation(const struct drm_card *card, const struct amd_metrics *metrics,
                             struct sample_utilisation *to)
{
    int device_fd = card->device_fds[0], hwmon_fd = card->hwmon_fd;
    uint64_t value;

    to->memory_percent = SAMPLE_PERCENT_UNKNOWN;
    if (find(metrics, AMD_MEMORY_PERCENT, device_fd, "mem_busy_percent", 1, &value))
        to->memory_percent = (uint8_t)MIN(value, (uint64_t)100);
    if (find(metrics, AMD_GFX_MHZ, hwmon_fd, "freq1_input", 1000000, &value))
        to->sm_clock_mhz = (uint32_t)value;
    /* As rocm-smi: of the junction, if there is no other. */
    if (find(metrics, AMD_EDGE_C, hwmon_fd, "temp1_input", 1000, &value) ||
        find(metrics, AMD_HOTSPOT_C, hwmon_fd, "temp2_input", 1000, &value))
        to->temperature_c = (uint32_t)value;
}

/* The first die counts the energy of both, the other one reports zeros (aldebaran_ppt.c): else they
 * are of two boards, whose other dies are not here. */
static void confirm_dies(struct drm_poll *poll, const struct amd_metrics *first)
{
    struct drm_card *card = poll->card;
    struct amd_metrics second;

    if (!has(first, AMD_ENERGY) || !read_metrics(card->device_fds[1], &second) ||
        !has(&second, AMD_ENERGY))
        return; /* perhaps soon */
    card->is_joined = first->values[AMD_ENERGY] > 0 && second.values[AMD_ENERGY] == 0;
    if (card->is_joined)
        return;
    atomic_store(&card->shared->is_single[card->index], true);
    poll->result = error_set(poll->err, -ENODEV, "GPU %u: its dies are of two boards", card->index);
}

static void read_meters(struct drm_poll *poll, struct drm_meters *meters)
{
    struct drm_card *card = poll->card;
    struct amd_metrics metrics = {0};
    uint64_t value;

    if (read_metrics(card->device_fds[0], &metrics)) {
        card->failures = FAILURES_MAX;
        card->is_apu = is_apu(card, &metrics);
    } else {
        card->failures += card->failures < FAILURES_MAX;
        meters->may_have_energy = card->failures < FAILURES_MAX;
        card->is_apu |= is_apu(card, &metrics);
    }
    if (card->found.die_count > 1 && !card->is_joined)
        confirm_dies(poll, &metrics);
    if (drm_poll_is_over(poll))
        return;
    take_activity(card, &metrics, meters);
    take_utilisation(card, &metrics, &meters->utilisation);
    if (find(&metrics, AMD_MEMORY_MHZ, card->hwmon_fd, "freq2_input", 1000000, &value))
        drm_poll_add_gauge(poll, GPU_GAUGE_MEMORY_CLOCK_MHZ, value);
    if (find(&metrics, AMD_MEMORY_C, card->hwmon_fd, "temp3_input", 1000, &value))
        drm_poll_add_gauge(poll, GPU_GAUGE_MEMORY_TEMPERATURE_C, value);
    meters->has_power = find_power(card, &metrics, &meters->power_uw);
    if (has(&metrics, AMD_ENERGY))
        take_energy(poll, &metrics, meters);
    if (is_in_package(card))
        card->energy = DRM_ENERGY_NONE;
}

static void check(struct report *report, const struct drm_card *card)
{
    const struct host *host = card->shared->context->host;
    struct amd_metrics metrics = {0};
    struct kfd_topology topology;
    char what[64], uuid[DRM_TEXT_BYTES];
    uint64_t power_uw;
    bool is_read = read_metrics(card->device_fds[0], &metrics);
    bool of_apu = is_apu(card, &metrics);
    bool in_package = of_apu && overlap_measures_package(host, card->shared->context->switches);
    bool is_counted = is_read && has(&metrics, AMD_ENERGY) && metrics.values[AMD_ENERGY] > 0;

    read_uuid(card->device_fds[0], uuid);
    if (uuid[0] != '\0' && strcmp(uuid, card->uuid) != 0) {
        snprintf(what, sizeof(what), "gpu %u: id", card->index);
        report_add(report, what, VERDICT_OK, NULL,
                   "another GPU has the same unique_id: its PCI address stands for it");
    }
    snprintf(what, sizeof(what), "gpu %u: energy", card->index);
    if (in_package && is_counted)
        report_add(report, what, VERDICT_LIMITED,
                   "to book the GPU's counter instead: --no-collector.rapl or --no-collector.cray",
                   "counted by gpu_metrics %u.%u with the processors, which have a meter of their "
                   "own: only that is booked",
                   metrics.format, metrics.content);
    else if (in_package)
        report_add(report, what, VERDICT_OK, NULL,
                   "part of the package's energy, which another meter counts: not booked again");
    else if (is_counted)
        report_add(report, what, VERDICT_OK, NULL, "counted by gpu_metrics %u.%u%s", metrics.format,
                   metrics.content, of_apu ? ", with the processors" : "");
    else if (find_power(card, &metrics, &power_uw))
        report_add(
            report, what, VERDICT_LIMITED, NULL,
            "no counter%s: its power is integrated instead, always estimated%s",
            is_read && !metrics.is_known ? " that is known here, gpu_metrics is newer" : "",
            of_apu ? "; it contains the processors, and is not booked once a meter of them is read"
                   : "");
    else
        report_add(report, what, VERDICT_FAILED,
                   "use a kernel with amdgpu's gpu_metrics (5.10 or newer), and mount the host's "
                   "/sys",
                   "neither gpu_metrics nor the power of hwmon can be read");
    snprintf(what, sizeof(what), "gpu %u: compute processes", card->index);
    if (kfd_read_topology(host->sysfs_fd, &topology) < 0)
        report_add(report, what, VERDICT_LIMITED,
                   "load amdgpu with KFD (CONFIG_HSA_AMD), and mount the host's /sys",
                   "there is no /sys/class/kfd: programs of ROCm are not seen");
    else if (topology.denied > 0)
        report_add(report, what, VERDICT_LIMITED,
                   "systemd: DeviceAllow=char-drm rw; Docker: --device-cgroup-rule 'c 226:* rw'; "
                   "Kubernetes: kubernetes/amd-patch.yaml",
                   "the device cgroup forbids %zu GPU%s, so that KFD hides them: programs of ROCm "
                   "are not seen there",
                   topology.denied, PLURAL_S(topology.denied));
    else
        report_add(report, what, VERDICT_OK, NULL, "by KFD, %zu node%s", topology.count,
                   PLURAL_S(topology.count));
}

const struct drm_vendor drm_amd = {
    .name = "AMD",
    .power_limit = "power1_cap",
    .identify = identify,
    .read_parts = read_parts,
    .read_processes = read_processes,
    .read_instant = read_instant,
    .read_meters = read_meters,
    .check = check,
    .is_die = is_die,
};
