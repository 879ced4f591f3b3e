/* The machines. Facts of chips are those of their drivers: revisions of gpu_metrics and which files
 * exist are cited in metrics.c, cards.c, kfd.c and processes.c. */
#include "machine.h"

#define GIB ((uint64_t)1 << 30)
#define MIB ((uint64_t)1 << 20)

#define SLICE       "/system.slice/"
#define EIGHT(text) text text text text text text text text
#define POD(digit)                                                                                 \
    "/kubepods.slice/kubepods-pod0a0a0a0a_1111_4222_8333_44444444444" digit                        \
    ".slice/cri-containerd-" EIGHT(EIGHT(digit)) ".scope"
#define JOB(id) "/system.slice/slurmstepd.scope/job_" id "/step_0/user/task_0"

#define ALWAYS(permille)                                                                           \
    {                                                                                              \
        .steps = { {0, permille} }                                                                 \
    }
#define ALTERNATING(on_ms, permille, off_ms)                                                       \
    {                                                                                              \
        .steps = {{on_ms, permille}, {off_ms, 0}}, .repeats = true                                 \
    }

/* aldebaran_ppt.c: gpu_metrics 1.3, and an accumulator of 64 bits. */
static const struct fake_chip mi210 = {
    .driver = "amdgpu",
    .product_name = "AMD Instinct MI210",
    .vendor_id = 0x1002,
    .device_id = 0x740f,
    .metrics_format = 1,
    .metrics_content = 3,
    .energy_bits = 64,
    .power_file = "power1_average",
    .kfd_name = "aldebaran",
    .compute_units = 104,
    .simd_per_cu = 4,
    .gfx_target_version = 90010,
    .has_occupancy = true,
    .engines = {{"gfx", 1}, {"compute", 1}, {"dma", 1}},
    .power_cap_w = 300,
    .vram_bytes = 64 * GIB - 16 * MIB,
    .reserved_bytes = 11 * MIB,
};

static const struct fake_chip mi250 = {
    .driver = "amdgpu",
    .product_name = "AMD Instinct MI250",
    .vendor_id = 0x1002,
    .device_id = 0x740c,
    .metrics_format = 1,
    .metrics_content = 3,
    .energy_bits = 64,
    .power_file = "power1_average",
    .kfd_name = "aldebaran",
    .compute_units = 104,
    .simd_per_cu = 4,
    .gfx_target_version = 90010,
    .has_occupancy = true,
    .engines = {{"gfx", 1}, {"compute", 1}, {"dma", 1}},
    .power_cap_w = 560,
    .vram_bytes = 64 * GIB - 16 * MIB,
    .reserved_bytes = 11 * MIB,
};

/* smu_v13_0_6_ppt.c: the revision grew with the kernel, up to 1.8 before the list of attributes. */
#define MI300X(content)                                                                            \
    {                                                                                              \
        .driver = "amdgpu", .product_name = "AMD Instinct MI300X", .vendor_id = 0x1002,            \
        .device_id = 0x74a1, .metrics_format = 1, .metrics_content = content, .energy_bits = 64,   \
        .power_file = "power1_input", .kfd_name = "ip discovery", .compute_units = 304,            \
        .simd_per_cu = 4, .gfx_target_version = 90402, .has_occupancy = true, .xccs = 8,           \
        .engines = {{"compute", 1}, {"dma", 1}}, .power_cap_w = 750, .vram_bytes = 192 * GIB,      \
        .reserved_bytes = 283 * MIB                                                                \
    }
static const struct fake_chip mi300x_7 = MI300X(7), mi300x_8 = MI300X(8), mi300x_6 = MI300X(6);

/* smu_v13_0_0_ppt.c: 1.3, and a counter of 32 bits that wraps every 65536 J. Firmware after
 * 78.30.0 does not count: the driver reports 32 ones. */
#define RADEON(bits)                                                                               \
    {                                                                                              \
        .driver = "amdgpu", .product_name = "", .vendor_id = 0x1002, .device_id = 0x744c,          \
        .metrics_format = 1, .metrics_content = 3, .energy_bits = bits,                            \
        .power_file = "power1_average", .kfd_name = "ip discovery", .compute_units = 96,           \
        .simd_per_cu = 2, .gfx_target_version = 110000,                                            \
        .engines = {{"gfx", 1}, {"compute", 1}, {"dma", 1}, {"dec", 1}, {"enc", 1}},               \
        .power_cap_w = 327, .vram_bytes = 24 * GIB - 16 * MIB, .reserved_bytes = 60 * MIB          \
    }
static const struct fake_chip radeon = RADEON(32), radeon_uncounted = RADEON(0);

/* smu_v13_0_4_ppt.c: 2.1. */
static const struct fake_chip phoenix = {
    .driver = "amdgpu",
    .product_name = "",
    .vendor_id = 0x1002,
    .device_id = 0x15bf,
    .metrics_format = 2,
    .metrics_content = 1,
    .power_file = "power1_average",
    .kfd_name = "ip discovery",
    .compute_units = 12,
    .simd_per_cu = 2,
    .gfx_target_version = 110003,
    .is_apu = true,
    .engines = {{"gfx", 1}, {"compute", 1}, {"dma", 1}},
    .vram_bytes = 512 * MIB,
    .reserved_bytes = 60 * MIB,
};

static const struct fake_chip arc_a770 = {
    .driver = "i915",
    .vendor_id = 0x8086,
    .device_id = 0x56a0,
    .engines = {{"render", 1}, {"copy", 1}, {"video", 2}, {"video-enhance", 2}, {"compute", 1}},
    .power_cap_w = 190,
    .vram_bytes = 16 * GIB,
};

static const struct fake_chip arc_b580 = {
    .driver = "xe",
    .vendor_id = 0x8086,
    .device_id = 0xe20b,
    .has_package_energy = true,
    .engines = {{"rcs", 1}, {"bcs", 1}, {"vcs", 2}, {"vecs", 2}, {"ccs", 1}},
    .power_cap_w = 190,
    .vram_bytes = 12 * GIB,
};

static const struct fake_chip max_1550 = {
    .driver = "xe",
    .vendor_id = 0x8086,
    .device_id = 0x0bd5,
    .has_package_energy = true,
    .tiles = 2,
    .engines = {{"bcs", 18}, {"vcs", 4}, {"ccs", 8}},
    .power_cap_w = 600,
    .vram_bytes = 128 * GIB,
};

const struct fake_script fake_scripts[] =
    {
        {
            .name = "mi210",
            .boards = {{&mi210, "0000:63:00.0", 0x1f0a2b3c4d5e6f70, .idle_w = 45,
                        .first_uj = 8123456789012}},
            .processes =
                {
                    {101, "train", SLICE "train.service", .from_ms = 5000, .watts = 240,
                     .load = ALWAYS(500), .memory_bytes = 20 * GIB},
                    {102, "serve", POD("2"), .from_ms = 10000, .until_ms = 50000, .watts = 400,
                     .load = ALTERNATING(2000, 250, 1000), .memory_bytes = 8 * GIB},
                    {103, "notebook", SLICE "notebook.service", .memory_bytes = GIB, .watts = 1},
                },
        },
        {
            .name = "mi250",
            .boards = {{&mi250, "0000:32:00.0", 0x2f0a2b3c4d5e6f71, .idle_w = 45,
                        .first_uj = 123456789012},
                       {&mi250, "0000:35:00.0", 0x2f0a2b3c4d5e6f72, .idle_w = 45,
                        .is_second_die = true}},
            .processes =
                {
                    {101, "left", SLICE "left.service", .from_ms = 5000, .watts = 200,
                     .load = ALWAYS(750), .memory_bytes = 20 * GIB},
                    {102, "right", SLICE "right.service", .board = 1, .from_ms = 5000, .watts = 200,
                     .load = ALWAYS(250), .memory_bytes = 10 * GIB},
                },
        },
        {
            .name = "mi300x-spx",
            .boards = {{&mi300x_7, "0000:05:00.0", 0x3f0a2b3c4d5e6f70, .idle_w = 140,
                        .first_uj = 9007199254740993}},
            .processes =
                {
                    {101, "train", JOB("77"), .environment = "SLURM_JOB_ID=77\nSLURM_STEP_GPUS=0",
                     .from_ms = 5000, .watts = 500,
                     .load = {.steps = {{20000, 250}, {20000, 750}, {0, 500}}},
                     .memory_bytes = 120 * GIB},
                    {102, "serve", POD("2"), .from_ms = 5000, .until_ms = 55000, .watts = 500,
                     .load = ALWAYS(250), .memory_bytes = 30 * GIB},
                },
        },
        {
            .name = "mi300x-cpx",
            .boards = {{&mi300x_8, "0000:05:00.0", 0x3f0a2b3c4d5e6f70, .idle_w = 140,
                        .first_uj = 77000000, .partitions = 8}},
            .processes =
                {
                    {101, "first", POD("1"), .partitions = 8, .from_ms = 5000, .watts = 70,
                     .load = ALWAYS(1000), .memory_bytes = 10 * GIB},
                    {102, "second", POD("2"), .partition = 1, .partitions = 8, .from_ms = 5000,
                     .watts = 70, .load = ALWAYS(500), .memory_bytes = 5 * GIB},
                    {103, "third", POD("3"), .partition = 1, .partitions = 8, .from_ms = 20000,
                     .watts = 70, .load = ALWAYS(500), .memory_bytes = 5 * GIB},
                    {104, "sixth", POD("4"), .partition = 5, .partitions = 8, .from_ms = 5000,
                     .watts = 70, .load = ALTERNATING(3000, 1000, 3000), .memory_bytes = 15 * GIB},
                },
        },
        {
            /* The board changes from one partition to eight at 30 s, when nobody uses it. */
            .name = "mi300x-change",
            .boards = {{&mi300x_6, "0000:05:00.0", 0x3f0a2b3c4d5e6f70, .idle_w = 140,
                        .first_uj = 77000000}},
            .processes =
                {
                    {101, "whole", SLICE "whole.service", .until_ms = 25000, .from_ms = 5000,
                     .watts = 500, .load = ALWAYS(500), .memory_bytes = 100 * GIB},
                    {102, "part", SLICE "part.service", .partition = 3, .partitions = 8,
                     .from_ms = 35000, .watts = 70, .load = ALWAYS(1000), .memory_bytes = 10 * GIB},
                },
        },
        {
            /* The counter is about to wrap. */
            .name = "radeon",
            .boards = {{&radeon, "0000:03:00.0", .idle_w = 20, .first_uj = 65530000000}},
            .processes =
                {
                    {101, "rocm", SLICE "rocm.service", .from_ms = 5000, .watts = 250,
                     .load = ALWAYS(400), .memory_bytes = 12 * GIB},
                    {102, "game", "/user.slice/user-1000.slice/session-2.scope", .engine = "gfx",
                     .from_ms = 10000, .watts = 250, .load = ALTERNATING(4000, 400, 4000),
                     .memory_bytes = 2 * GIB},
                    {103, "compositor", "/user.slice/user-1000.slice/session-2.scope",
                     .client_of = 102, .from_ms = 12000},
                    {104, "video", SLICE "video.service", .engine = "dec", .from_ms = 30000,
                     .watts = 30, .load = ALWAYS(100), .memory_bytes = GIB},
                },
        },
        {
            .name = "radeon-uncounted",
            .boards = {{&radeon_uncounted, "0000:03:00.0", .idle_w = 20}},
            .processes =
                {
                    {101, "game", "/user.slice/user-1000.slice/session-2.scope", .engine = "gfx",
                     .from_ms = 5000, .watts = 250, .load = ALTERNATING(4000, 800, 4000),
                     .memory_bytes = 2 * GIB},
                },
        },
        {
            /* Its power has that of the CPU in it: 9 W of it are idle. */
            .name = "apu",
            .boards = {{&phoenix, "0000:c4:00.0", .idle_w = 9}},
            .processes =
                {
                    {101, "desktop", "/user.slice/user-1000.slice/session-2.scope", .engine = "gfx",
                     .from_ms = 5000, .watts = 20, .load = ALTERNATING(4000, 500, 2000),
                     .memory_bytes = 200 * MIB},
                    {102, "render", SLICE "render.service", .engine = "compute", .from_ms = 20000,
                     .watts = 20, .load = ALWAYS(250), .memory_bytes = 100 * MIB},
                },
        },
        {
            .name = "arc-i915",
            .boards = {{&arc_a770, "0000:03:00.0", .idle_w = 40, .first_uj = 4294967295000}},
            .processes =
                {
                    {101, "render", SLICE "render.service", .engine = "render", .from_ms = 5000,
                     .watts = 150, .load = ALTERNATING(5000, 600, 3000), .memory_bytes = 4 * GIB},
                    {102, "transcode", POD("2"), .engine = "video", .second_engine = "copy",
                     .from_ms = 8000, .until_ms = 52000, .watts = 60, .load = ALWAYS(500),
                     .memory_bytes = GIB},
                    {103, "child", POD("2"), .client_of = 102, .from_ms = 9000, .until_ms = 52000},
                },
        },
        {
            .name = "arc-xe",
            .boards = {{&arc_b580, "0000:03:00.0", .idle_w = 35, .first_uj = 1000000}},
            .processes =
                {
                    {101, "render", SLICE "render.service", .engine = "rcs", .from_ms = 5000,
                     .watts = 150, .load = ALTERNATING(5000, 600, 3000), .memory_bytes = 4 * GIB},
                    {102, "transcode", POD("2"), .engine = "vcs", .from_ms = 8000,
                     .until_ms = 52000, .watts = 60, .load = ALWAYS(500), .memory_bytes = GIB},
                },
        },
        {
            .name = "max-xe",
            .boards = {{&max_1550, "0000:29:00.0", .idle_w = 150, .first_uj = 55000000000},
                       {&max_1550, "0000:9a:00.0", .idle_w = 150, .first_uj = 66000000000}},
            .processes =
                {
                    {101, "solver", JOB("78"),
                     .environment = "SLURM_JOB_ID=78\nSLURM_STEP_GPUS=0\n"
                                    "ZE_AFFINITY_MASK=0",
                     .engine = "ccs", .from_ms = 5000, .watts = 400, .load = ALWAYS(500),
                     .memory_bytes = 40 * GIB},
                    {102, "analysis", POD("2"), .engine = "ccs", .from_ms = 10000, .watts = 400,
                     .load = ALTERNATING(6000, 375, 2000), .memory_bytes = 20 * GIB},
                    {103, "other", POD("3"), .board = 1, .engine = "ccs", .from_ms = 5000,
                     .watts = 400, .load = ALWAYS(250), .memory_bytes = 20 * GIB},
                },
        },
        {.name = 0},
};
