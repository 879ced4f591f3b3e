/* gpu_metrics: the layouts are those of the kernel's kgd_pp_interface.h, written down here a second
 * time, so that a mistake in the exporter's own tables shows. */
#include <string.h>

#include "writers.h"

/* Where each field is; 0: the revision has none. */
struct layout {
    uint8_t format, content;
    uint16_t size;
    uint16_t edge, hotspot, memory;                 /* u16, C */
    uint16_t gfx_activity, umc_activity;            /* u16, % */
    uint16_t power;                                 /* u16, W */
    uint16_t energy;                                /* u64 */
    uint16_t clock, firmware;                       /* u64, ns and 10 ns */
    uint16_t cycles, gfx_sum, umc_sum;              /* u32 */
    uint16_t gfx_clock, memory_clock;               /* u16, MHz; the first of eight, if several */
    uint16_t partitions;                            /* u16 */
    uint16_t xcp, xcp_size, xcp_busy, xcp_busy_sum; /* per partition; u32[8] and u64[8] in it */
};

static const struct layout layouts[] = {
    {1, 3, 120, .edge = 4, .hotspot = 6, .memory = 8, .gfx_activity = 16, .umc_activity = 18,
     .power = 22, .energy = 24, .clock = 32, .gfx_clock = 54, .memory_clock = 58, .gfx_sum = 80,
     .umc_sum = 84, .firmware = 96},
    {1,
     6,
     1664,
     .hotspot = 4,
     .memory = 6,
     .power = 10,
     .gfx_activity = 12,
     .umc_activity = 14,
     .energy = 16,
     .clock = 24,
     .cycles = 32,
     .gfx_sum = 68,
     .umc_sum = 72,
     .firmware = 256,
     .gfx_clock = 264,
     .memory_clock = 304,
     .partitions = 306,
     .xcp = 312,
     .xcp_size = 168,
     .xcp_busy_sum = 104},
    {1,
     7,
     2208,
     .hotspot = 4,
     .memory = 6,
     .power = 10,
     .gfx_activity = 12,
     .umc_activity = 14,
     .energy = 24,
     .clock = 32,
     .cycles = 40,
     .gfx_sum = 76,
     .umc_sum = 80,
     .firmware = 288,
     .gfx_clock = 296,
     .memory_clock = 336,
     .partitions = 338,
     .xcp = 344,
     .xcp_size = 232,
     .xcp_busy_sum = 104},
    {1,
     8,
     3872,
     .hotspot = 4,
     .memory = 6,
     .power = 10,
     .gfx_activity = 12,
     .umc_activity = 14,
     .energy = 24,
     .clock = 32,
     .cycles = 40,
     .gfx_sum = 76,
     .umc_sum = 80,
     .firmware = 288,
     .gfx_clock = 296,
     .memory_clock = 336,
     .partitions = 338,
     .xcp = 344,
     .xcp_size = 440,
     .xcp_busy_sum = 120},
    /* Of APUs: no energy. Power is in a unit that differs by chip; Phoenix reports milliwatts in
     * 16 bits. */
    {2, 1, 120, .edge = 4, .gfx_activity = 28, .clock = 32, .power = 40, .gfx_clock = 80},
};

static const struct layout *find_layout(const struct fake_chip *chip)
{
    for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++)
        if (layouts[i].format == chip->metrics_format &&
            layouts[i].content == chip->metrics_content)
            return &layouts[i];
    fake_die("no layout of gpu_metrics %u.%u", chip->metrics_format, chip->metrics_content);
}

/* Little endian. */
static void put(uint8_t *table, unsigned at, uint64_t value, unsigned bytes)
{
    for (unsigned i = 0; at > 0 && i < bytes; i++)
        table[at + i] = (uint8_t)(value >> 8 * i);
}

/* The firmware adds the percentage up once in a millisecond. */
static uint64_t percent_sum(uint64_t work)
{
    return work / 10 / 1000;
}

/* Of each partition, the XCCs that it has. */
static void put_partitions(const struct fake_machine *machine, unsigned board, uint64_t t_us,
                           const struct layout *layout, uint8_t *table)
{
    const struct fake_script *script = machine->script;
    unsigned xccs = script->boards[board].chip->xccs;
    unsigned partitions = machine->boards[board].partitions, each = xccs / partitions;

    put(table, layout->partitions, partitions, 2);
    for (unsigned xcc = 0; xcc < xccs; xcc++) {
        unsigned at = layout->xcp + xcc / each * layout->xcp_size;
        uint64_t work = fake_board_sum(script, board, (int)xcc, fake_work, t_us);
        uint64_t before =
            t_us < 1000 ? 0 : fake_board_sum(script, board, (int)xcc, fake_work, t_us - 1000);

        put(table, at + layout->xcp_busy + xcc % each * 4, (work - before) / 10000, 4);
        put(table, at + layout->xcp_busy_sum + xcc % each * 8, percent_sum(work), 8);
    }
}

size_t fake_metrics(const struct fake_machine *machine, unsigned board, uint64_t t_us,
                    uint8_t table[FAKE_METRICS_BYTES])
{
    const struct fake_script *script = machine->script;
    const struct fake_chip *chip = script->boards[board].chip;
    const struct layout *layout = find_layout(chip);
    uint64_t busy_percent = fake_busy_permille(script, board, t_us) / 10;
    uint64_t busy_sum = percent_sum(fake_board_sum(script, board, -1, fake_work, t_us));
    uint64_t power_w = fake_power_uw(script, board, t_us) / 1000000;
    uint64_t count = fake_energy_count(script, board, t_us);

    /* The driver sets all that it does not know to ones (smu_cmn_init_soft_gpu_metrics). */
    memset(table, 0xff, layout->size);
    table[0] = (uint8_t)layout->size;
    table[1] = (uint8_t)(layout->size >> 8);
    table[2] = layout->format;
    table[3] = layout->content;
    put(table, layout->edge, 41, 2);
    put(table, layout->hotspot, 48 + busy_percent / 4, 2);
    put(table, layout->memory, 44, 2);
    put(table, layout->gfx_activity, busy_percent, 2);
    put(table, layout->umc_activity, busy_percent / 2, 2);
    put(table, layout->power, chip->is_apu ? power_w * 1000 : power_w, 2);
    /* Firmware that does not count: the driver writes 32 ones (smu_v13_0_0_get_gpu_metrics). */
    if (chip->energy_bits <= 32)
        count = chip->energy_bits == 0 ? UINT32_MAX : (uint32_t)count;
    /* aldebaran_get_gpu_metrics: only the first die counts energy, the second reports 0. */
    if (script->boards[board].is_second_die)
        count = 0;
    put(table, layout->energy, count, 8);
    put(table, layout->clock, t_us * 1000 + 1000000000, 8);
    put(table, layout->firmware, t_us * 100, 8);
    put(table, layout->cycles, t_us / 1000, 4);
    /* Only aldebaran_get_gpu_metrics and smu_v13_0_6_get_gpu_metrics fill them in. */
    if (chip->has_occupancy) {
        put(table, layout->gfx_sum, (uint32_t)busy_sum, 4);
        put(table, layout->umc_sum, (uint32_t)busy_sum / 2, 4);
    }
    put(table, layout->gfx_clock, busy_percent > 0 ? 1700 : 800, 2);
    put(table, layout->memory_clock, 1600, 2);
    if (layout->xcp)
        put_partitions(machine, board, t_us, layout, table);
    return layout->size;
}
