/*
 * The fake NVML against the facts of the ABI: sizes, version words, entry sizes, codes. Everything
 * goes through bytes at known offsets between guard bytes, never through the fake's own structs.
 * FAKE_NVML is the library; FAKE_NVML_R530 and FAKE_NVML_OMIT_MEMORY_V2 (without
 * nvmlDeviceGetMemoryInfo_v2 and nvmlDeviceGetRunningProcessDetailList) are its variants.
 */
#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "../fakes/nvml/fake_nvml.h"
#include "unit.h"

#define HEAD                                                                                       \
    "wattribute-trace 1\n"                                                                         \
    "gpu 0 uuid=GPU-0 name=NVIDIA_H200 driver=580.159.04 power_limit_mw=700000 "                   \
    "memory_bytes=150754820096 pci=0000:1b:00.0 serial=1651\n"                                     \
    "gpu 1 uuid=GPU-1 name=NVIDIA_H200\n"
#define AT(ms) "18000000" #ms "000"
/* A line of a trace at a time after its start. */
#define LINE(ms, text) AT(ms) " " text "\n"
#define START_US       UINT64_C(1800000000000000)

enum { GUARD = 64, GUARD_BYTE = 0xc7 };

static void *library;

/* A struct of the caller, with guard bytes around it. */
struct room {
    size_t size;
    unsigned char bytes[GUARD + 16384 + GUARD];
};

static void *room_init(struct room *room, size_t size)
{
    assert_true(size <= 16384);
    memset(room->bytes, GUARD_BYTE, sizeof(room->bytes));
    memset(room->bytes + GUARD, 0, size);
    room->size = size;
    return room->bytes + GUARD;
}

/* Nothing outside the struct was written. */
static void assert_guarded(const struct room *room)
{
    for (size_t i = 0; i < GUARD; i++)
        assert_int_equal(room->bytes[i], GUARD_BYTE);
    for (size_t i = GUARD + room->size; i < sizeof(room->bytes); i++)
        assert_int_equal(room->bytes[i], GUARD_BYTE);
}

static uint32_t u32_at(const struct room *room, size_t offset)
{
    uint32_t value;

    assert_true(offset + sizeof(value) <= room->size);
    memcpy(&value, room->bytes + GUARD + offset, sizeof(value));
    return value;
}

static uint64_t u64_at(const struct room *room, size_t offset)
{
    uint64_t value;

    assert_true(offset + sizeof(value) <= room->size);
    memcpy(&value, room->bytes + GUARD + offset, sizeof(value));
    return value;
}

static void put(struct room *room, size_t offset, const void *value, size_t size)
{
    assert_true(offset + size <= room->size);
    memcpy(room->bytes + GUARD + offset, value, size);
}

static void put_u32(struct room *room, size_t offset, uint32_t value)
{
    put(room, offset, &value, sizeof(value));
}

static void put_u64(struct room *room, size_t offset, uint64_t value)
{
    put(room, offset, &value, sizeof(value));
}

static void put_ptr(struct room *room, size_t offset, void *value)
{
    put(room, offset, &value, sizeof(value));
}

static void *symbol(const char *name)
{
    void *address = dlsym(library, name);

    if (!address)
        fail_msg("no symbol %s", name);
    return address;
}

/* The shapes that most calls have. */

static int call0(const char *name)
{
    int (*function)(void) = symbol(name);

    return function();
}

static int call_out(const char *name, void *dev, void *out)
{
    int (*function)(void *, void *) = symbol(name);

    return function(dev, out);
}

static int call_list(const char *name, void *dev, unsigned *count, void *list)
{
    int (*function)(void *, unsigned *, void *) = symbol(name);

    return function(dev, count, list);
}

static int call_text(const char *name, void *dev, char *buf, unsigned len)
{
    int (*function)(void *, char *, unsigned) = symbol(name);

    return function(dev, buf, len);
}

static int utilization(void *dev, void *samples, unsigned *count, uint64_t last_seen_us)
{
    int (*function)(void *, void *, unsigned *, unsigned long long) =
        symbol("nvmlDeviceGetProcessUtilization");

    return function(dev, samples, count, last_seen_us);
}

static uint64_t energy_mj(void *dev)
{
    unsigned long long value = 0;

    assert_int_equal(call_out("nvmlDeviceGetTotalEnergyConsumption", dev, &value), 0);
    return value;
}

#define CONTROL(name) ((typeof(name) *)symbol(#name))

static void set_time_ms(uint64_t ms)
{
    CONTROL(fake_nvml_set_time_us)(ms * 1000);
}

static void *handle(unsigned index)
{
    int (*function)(unsigned, void **) = symbol("nvmlDeviceGetHandleByIndex_v2");
    void *dev = NULL;

    assert_int_equal(function(index, &dev), 0);
    assert_non_null(dev);
    return dev;
}

static int load(const char *text)
{
    int fd = memfd_create("scenario", MFD_CLOEXEC);
    char path[32];
    int r;

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    r = CONTROL(fake_nvml_load)(path);
    close(fd);
    return r;
}

/* Loads a scenario, stops the clock at its start and initialises. */
static void *play(const char *text)
{
    assert_int_equal(load(text), 0);
    set_time_ms(0);
    assert_int_equal(call0("nvmlInit_v2"), 0);
    return handle(0);
}

static int open_library(void **state)
{
    (void)state;
    library = dlopen(FAKE_NVML, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        fprintf(stderr, "%s\n", dlerror());
    return library ? 0 : -1;
}

static int close_library(void **state)
{
    (void)state;
    return dlclose(library);
}

static int reset(void **state)
{
    (void)state;
    CONTROL(fake_nvml_reset)();
    return 0;
}

#define BOARD                                                                                      \
    HEAD LINE(00000, "E 0 5000") LINE(00000, "P 0 300000 290000 310000")                           \
        LINE(00000, "U 0 99 25 1980 64") LINE(00000, "M 0 2644939776 148109880320 150754820096")   \
            LINE(00000, "R 0 c 2 41:1000 42:2000") LINE(00000, "R 0 m 1 42:2000")                  \
                LINE(00000, "R 0 g 1 43:18446744073709551615") LINE(01000, "E 0 9000")

static void calls_need_init_and_shutdown_is_counted(void **state)
{
    unsigned long long value = 7;
    void *dev = play(BOARD);

    (void)state;
    assert_int_equal(call0("nvmlInit"), 0);
    assert_int_equal(CONTROL(fake_nvml_init_count)(), 2);
    assert_int_equal(call0("nvmlShutdown"), 0);
    assert_int_equal(call_out("nvmlDeviceGetTotalEnergyConsumption", dev, &value), 0);
    assert_int_equal(call0("nvmlShutdown"), 0);
    assert_int_equal(CONTROL(fake_nvml_stale_uses)(), 0);
    assert_int_equal(call_out("nvmlDeviceGetTotalEnergyConsumption", dev, &value), 1);
    assert_int_equal(CONTROL(fake_nvml_stale_uses)(), 1);
    assert_int_equal(call0("nvmlShutdown"), 1);
    assert_int_equal(CONTROL(fake_nvml_call_count)("nvmlDeviceGetTotalEnergyConsumption"), 2);
    assert_int_equal(CONTROL(fake_nvml_call_count)("nvmlNoSuchCall"), 0);
}

static void a_handle_does_not_outlive_its_initialisation(void **state)
{
    unsigned long long value;
    void *old = play(BOARD);

    (void)state;
    assert_int_equal(call0("nvmlShutdown"), 0);
    assert_int_equal(call0("nvmlInit_v2"), 0);
    assert_int_equal(call_out("nvmlDeviceGetTotalEnergyConsumption", old, &value), 2);
    assert_int_equal(CONTROL(fake_nvml_stale_uses)(), 1);
    assert_int_equal(energy_mj(handle(0)), 5000);
}

static void devices_are_found_by_index_and_by_uuid(void **state)
{
    int (*by_index)(unsigned, void **) = symbol("nvmlDeviceGetHandleByIndex");
    int (*by_uuid)(const char *, void **) = symbol("nvmlDeviceGetHandleByUUID");
    int (*get_count)(unsigned *) = symbol("nvmlDeviceGetCount_v2");
    int (*version)(char *, unsigned) = symbol("nvmlSystemGetDriverVersion");
    void *dev = play(BOARD), *found = NULL;
    unsigned number = 0;
    char text[96];

    (void)state;
    assert_int_equal(get_count(&number), 0);
    assert_int_equal(number, 2);
    assert_int_equal(get_count(NULL), 2);
    assert_int_equal(by_index(2, &found), 2);
    assert_int_equal(by_uuid("GPU-0", &found), 0);
    assert_ptr_equal(found, dev);
    assert_int_equal(by_uuid("GPU-9", &found), 6);
    assert_int_equal(call_out("nvmlDeviceGetIndex", handle(1), &number), 0);
    assert_int_equal(number, 1);
    assert_int_equal(call_text("nvmlDeviceGetUUID", dev, text, 6), 0);
    assert_string_equal(text, "GPU-0");
    assert_int_equal(call_text("nvmlDeviceGetUUID", dev, text, 5), 7);
    assert_int_equal(call_text("nvmlDeviceGetName", dev, text, 96), 0);
    assert_string_equal(text, "NVIDIA H200");
    assert_int_equal(call_text("nvmlDeviceGetSerial", handle(1), text, 30), 3);
    assert_int_equal(version(text, 80), 0);
    assert_string_equal(text, "580.159.04");
}

static void pci_info_below_v3_fills_only_36_bytes(void **state)
{
    void *dev = play(BOARD);
    struct room room;

    (void)state;
    assert_int_equal(call_out("nvmlDeviceGetPciInfo_v3", dev, room_init(&room, 68)), 0);
    assert_guarded(&room);
    assert_string_equal((char *)room.bytes + GUARD, "0000:1B:00.0");
    assert_int_equal(u32_at(&room, 20), 0x1b);
    assert_string_equal((char *)room.bytes + GUARD + 36, "00000000:1B:00.0");
    assert_int_equal(call_out("nvmlDeviceGetPciInfo_v2", dev, room_init(&room, 36)), 0);
    assert_guarded(&room);
    assert_int_equal(call_out("nvmlDeviceGetPciInfo", dev, room_init(&room, 36)), 0);
    assert_guarded(&room);
}

static void energy_follows_the_clock_and_stays_after_the_end(void **state)
{
    void *dev = play(BOARD);

    (void)state;
    assert_int_equal(energy_mj(dev), 5000);
    set_time_ms(999);
    assert_int_equal(energy_mj(dev), 5000);
    set_time_ms(1000);
    assert_int_equal(energy_mj(dev), 9000);
    set_time_ms(1000000);
    assert_int_equal(energy_mj(dev), 9000);
    set_time_ms(0);
    assert_int_equal(energy_mj(dev), 5000);
}

static void what_a_trace_does_not_hold_is_not_supported(void **state)
{
    static const char *const calls[] = {
        "nvmlDeviceGetTotalEnergyConsumption", "nvmlDeviceGetPowerUsage",
        "nvmlDeviceGetUtilizationRates",       "nvmlDeviceGetMemoryInfo",
        "nvmlDeviceGetEnforcedPowerLimit",
    };
    struct room room;
    void *dev;

    (void)state;
    play(BOARD);
    dev = handle(1);
    for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
        assert_int_equal(call_out(calls[i], dev, room_init(&room, 24)), 3);
}

static void memory_v1_counts_reserved_as_used_and_v2_does_not(void **state)
{
    void *dev = play(BOARD);
    struct room room;

    (void)state;
    assert_int_equal(call_out("nvmlDeviceGetMemoryInfo", dev, room_init(&room, 24)), 0);
    assert_guarded(&room);
    assert_int_equal(u64_at(&room, 0), 150754820096);
    assert_int_equal(u64_at(&room, 8), 148109880320);
    assert_int_equal(u64_at(&room, 16), 2644939776);

    room_init(&room, 40);
    put_u32(&room, 0, 0x02000028);
    assert_int_equal(call_out("nvmlDeviceGetMemoryInfo_v2", dev, room.bytes + GUARD), 0);
    assert_guarded(&room);
    assert_int_equal(u64_at(&room, 8), 150754820096);
    assert_int_equal(u64_at(&room, 16), 644939776);
    assert_int_equal(u64_at(&room, 24), 148109880320);
    assert_int_equal(u64_at(&room, 32), 2000000000);
}

static void a_wrong_version_word_is_refused(void **state)
{
    static const struct {
        const char *name;
        uint32_t version;
        size_t size;
    } calls[] = {
        {"nvmlDeviceGetMemoryInfo_v2", 0x02000028, 40},
        {"nvmlDeviceGetTemperatureV", 0x0100000c, 12},
        {"nvmlDeviceGetRunningProcessDetailList", 0x01000018, 24},
        {"nvmlDeviceGetProcessesUtilizationInfo", 0x01000018, 24},
        {"nvmlGpmQueryDeviceSupport", 1, 8},
    };
    void *dev = play(BOARD);
    struct room room;

    (void)state;
    for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
        void *at = room_init(&room, calls[i].size);

        assert_int_equal(call_out(calls[i].name, dev, at), 25);
        put_u32(&room, 0, calls[i].version + 1);
        assert_int_equal(call_out(calls[i].name, dev, at), 25);
        put_u32(&room, 0, calls[i].version);
        assert_int_not_equal(call_out(calls[i].name, dev, at), 25);
        assert_guarded(&room);
        assert_int_equal(call_out(calls[i].name, dev, NULL), 2);
    }
}

static void a_null_out_argument_is_refused(void **state)
{
    static const char *const calls[] = {
        "nvmlDeviceGetTotalEnergyConsumption",
        "nvmlDeviceGetPowerUsage",
        "nvmlDeviceGetEnforcedPowerLimit",
        "nvmlDeviceGetPowerManagementLimit",
        "nvmlDeviceGetPowerManagementDefaultLimit",
        "nvmlDeviceGetUtilizationRates",
        "nvmlDeviceGetMemoryInfo",
        "nvmlDeviceGetPciInfo_v3",
        "nvmlDeviceGetIndex",
        "nvmlDeviceGetMinorNumber",
        "nvmlDeviceGetPerformanceState",
        "nvmlDeviceGetCurrentClocksEventReasons",
        "nvmlDeviceGetCurrentClocksThrottleReasons",
        "nvmlDeviceGetAccountingMode",
        "nvmlDeviceGetMaxMigDeviceCount",
        "nvmlDeviceGetSupportedEventTypes",
        "nvmlDeviceGetCurrPcieLinkGeneration",
        "nvmlDeviceGetCurrPcieLinkWidth",
        "nvmlDeviceGetVirtualizationMode",
        "nvmlDeviceGetPersistenceMode",
        "nvmlDeviceGetComputeMode",
    };
    void *dev = play(BOARD);

    (void)state;
    for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
        uint64_t room[16];

        assert_int_equal(call_out(calls[i], dev, NULL), 2);
        assert_int_equal(call_out(calls[i], NULL, room), 2);
        assert_int_equal(call_out(calls[i], &room, room), 2);
    }
}

static void process_lists_have_entries_of_16_or_24_bytes(void **state)
{
    static const struct {
        const char *name;
        size_t size;
    } calls[] = {
        {"nvmlDeviceGetComputeRunningProcesses", 16},
        {"nvmlDeviceGetComputeRunningProcesses_v2", 24},
        {"nvmlDeviceGetComputeRunningProcesses_v3", 24},
    };
    void *dev = play(BOARD);
    struct room room;

    (void)state;
    for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
        unsigned count = 2;
        void *at = room_init(&room, 2 * calls[i].size);

        assert_int_equal(call_list(calls[i].name, dev, &count, at), 0);
        assert_guarded(&room);
        assert_int_equal(count, 2);
        assert_int_equal(u32_at(&room, 0), 41);
        assert_int_equal(u64_at(&room, 8), 1000);
        assert_int_equal(u32_at(&room, calls[i].size), 42);
        assert_int_equal(u64_at(&room, calls[i].size + 8), 2000);
        if (calls[i].size == 24) {
            assert_int_equal(u32_at(&room, 16), UINT32_MAX);
            assert_int_equal(u32_at(&room, 20), UINT32_MAX);
        }
    }
}

static void a_small_list_is_told_the_needed_count(void **state)
{
    void *dev = play(BOARD);
    unsigned count = 0;
    struct room room;

    (void)state;
    assert_int_equal(call_list("nvmlDeviceGetComputeRunningProcesses_v3", dev, &count, NULL), 7);
    assert_int_equal(count, 2);
    count = 1;
    assert_int_equal(
        call_list("nvmlDeviceGetComputeRunningProcesses_v3", dev, &count, room_init(&room, 0)), 7);
    assert_guarded(&room);
    assert_int_equal(count, 2);
    assert_int_equal(call_list("nvmlDeviceGetComputeRunningProcesses_v3", dev, NULL, NULL), 2);
    count = 9;
    assert_int_equal(call_list("nvmlDeviceGetComputeRunningProcesses_v3", dev, &count, NULL), 2);
    count = 0;
    assert_int_equal(
        call_list("nvmlDeviceGetMPSComputeRunningProcesses_v3", handle(1), &count, NULL), 0);
    assert_int_equal(count, 0);
}

static void the_three_lists_are_apart(void **state)
{
    void *dev = play(BOARD);
    unsigned count = 4;
    struct room room;

    (void)state;
    assert_int_equal(
        call_list("nvmlDeviceGetMPSComputeRunningProcesses", dev, &count, room_init(&room, 64)), 0);
    assert_int_equal(count, 1);
    assert_int_equal(u32_at(&room, 0), 42);
    count = 4;
    assert_int_equal(
        call_list("nvmlDeviceGetGraphicsRunningProcesses_v2", dev, &count, room_init(&room, 96)),
        0);
    assert_int_equal(count, 1);
    assert_int_equal(u32_at(&room, 0), 43);
    assert_true(u64_at(&room, 8) == UINT64_MAX);
}

static void the_detail_list_has_entries_of_32_bytes(void **state)
{
    void *dev = play(BOARD);
    struct room list, entries;
    void *at = room_init(&list, 24);

    (void)state;
    put_u32(&list, 0, 0x01000018);
    assert_int_equal(call_out("nvmlDeviceGetRunningProcessDetailList", dev, at), 7);
    assert_int_equal(u32_at(&list, 8), 2);
    put_ptr(&list, 16, room_init(&entries, 64));
    assert_int_equal(call_out("nvmlDeviceGetRunningProcessDetailList", dev, at), 0);
    assert_guarded(&list);
    assert_guarded(&entries);
    assert_int_equal(u32_at(&entries, 32), 42);
    assert_int_equal(u64_at(&entries, 40), 2000);
    put_u32(&list, 4, 2);
    assert_int_equal(call_out("nvmlDeviceGetRunningProcessDetailList", dev, at), 0);
    assert_int_equal(u32_at(&list, 8), 1);
    put_u32(&list, 4, 3);
    assert_int_equal(call_out("nvmlDeviceGetRunningProcessDetailList", dev, at), 2);
}

/* Three samples at 100, 300 and 500 ms. */
#define SAMPLES                                                                                    \
    BOARD LINE(01000, "S 0 41 " AT(00100) " 99 10 1 2")                                            \
        LINE(01000, "S 0 42 " AT(00300) " 98 11 0 0")                                              \
            LINE(01000, "S 0 41 " AT(00500) " 97 12 0 0")

static void utilisation_gives_each_sample_once_and_then_not_found(void **state)
{
    void *dev = play(SAMPLES);
    unsigned count = 72;
    struct room room;

    (void)state;
    assert_int_equal(utilization(dev, room_init(&room, 72 * 32), &count, 0), 6);
    set_time_ms(300);
    assert_int_equal(utilization(dev, room_init(&room, 64), &count, 0), 0);
    assert_guarded(&room);
    assert_int_equal(count, 2);
    assert_int_equal(u32_at(&room, 0), 41);
    assert_int_equal(u64_at(&room, 8), START_US + 100000);
    assert_int_equal(u32_at(&room, 16), 99);
    assert_int_equal(u32_at(&room, 20), 10);
    assert_int_equal(u32_at(&room, 24), 1);
    assert_int_equal(u32_at(&room, 28), 2);
    assert_int_equal(u32_at(&room, 32), 42);
    assert_int_equal(utilization(dev, room_init(&room, 64), &count, START_US + 300000), 6);
    set_time_ms(500);
    count = 1;
    assert_int_equal(utilization(dev, room_init(&room, 32), &count, START_US + 300000), 0);
    assert_int_equal(count, 1);
    assert_int_equal(u64_at(&room, 8), START_US + 500000);
    count = 2;
    assert_int_equal(utilization(dev, room_init(&room, 64), &count, 0), 7);
    assert_int_equal(count, 3);
    assert_int_equal(utilization(dev, NULL, &count, 0), 7);
    assert_int_equal(count, 72);
    assert_int_equal(utilization(dev, NULL, NULL, 0), 2);
}

static void utilisation_info_has_entries_of_40_bytes(void **state)
{
    void *dev = play(SAMPLES);
    struct room info, entries;
    void *at = room_init(&info, 24);

    (void)state;
    set_time_ms(500);
    put_u32(&info, 0, 0x01000018);
    put_u64(&info, 8, START_US + 100000);
    assert_int_equal(call_out("nvmlDeviceGetProcessesUtilizationInfo", dev, at), 7);
    assert_int_equal(u32_at(&info, 4), 72);
    put_ptr(&info, 16, room_init(&entries, 80));
    put_u32(&info, 4, 2);
    assert_int_equal(call_out("nvmlDeviceGetProcessesUtilizationInfo", dev, at), 0);
    assert_guarded(&info);
    assert_guarded(&entries);
    assert_int_equal(u64_at(&entries, 40), START_US + 500000);
    assert_int_equal(u32_at(&entries, 48), 41);
    assert_int_equal(u32_at(&entries, 52), 97);
}

static void the_ring_holds_72_samples_and_14_seconds(void **state)
{
    static char text[16384];
    size_t len = (size_t)snprintf(text, sizeof(text), "%s", BOARD);
    unsigned count = 100;
    struct room room;
    void *dev;

    (void)state;
    for (uint64_t i = 0; i < 100; i++) {
        unsigned long long t_us = START_US + i * 100000;

        len += (size_t)snprintf(text + len, sizeof(text) - len, "%llu S 0 41 %llu 99 9 0 0\n", t_us,
                                t_us);
    }
    dev = play(text);
    set_time_ms(9900);
    assert_int_equal(utilization(dev, room_init(&room, 3200), &count, 0), 0);
    assert_int_equal(count, 72);
    assert_int_equal(u64_at(&room, 8), START_US + 2800000);
    assert_int_equal(u64_at(&room, 71 * 32 + 8), START_US + 9900000);
    set_time_ms(9900 + 14000);
    count = 100;
    assert_int_equal(utilization(dev, room_init(&room, 3200), &count, 0), 0);
    assert_int_equal(count, 4);
    set_time_ms(9900 + 14400);
    assert_int_equal(utilization(dev, room_init(&room, 3200), &count, 0), 6);
}

static void means_are_over_all_samples_and_stamped_with_the_last(void **state)
{
    void *dev = play(SAMPLES "0 X * samples mean\n");
    unsigned count = 72;
    struct room room;

    (void)state;
    set_time_ms(500);
    assert_int_equal(utilization(dev, room_init(&room, 72 * 32), &count, 0), 0);
    assert_int_equal(count, 2);
    assert_int_equal(u32_at(&room, 0), 42);
    assert_int_equal(u32_at(&room, 16), 98 / 3);
    assert_int_equal(u32_at(&room, 32), 41);
    assert_int_equal(u64_at(&room, 40), START_US + 500000);
    assert_int_equal(u32_at(&room, 48), (99 + 97) / 3);
}

static void fields_have_their_own_code_and_type(void **state)
{
    static const uint32_t ids[] = {83, 185, 186, 188, 82, 94};
    int (*get)(void *, int, void *) = symbol("nvmlDeviceGetFieldValues");
    void *dev = play(BOARD "0 X 0 field 82 55\n0 X 0 limit 500000\n");
    struct room room;
    void *at = room_init(&room, 40 * 7);

    (void)state;
    for (size_t i = 0; i < 6; i++)
        put_u32(&room, 40 * i, ids[i]);
    put_u32(&room, 40 * 6, 185);
    put_u32(&room, 40 * 6 + 4, 1);
    assert_int_equal(get(dev, 7, at), 0);
    assert_guarded(&room);
    assert_int_equal(u64_at(&room, 8), START_US);
    assert_int_equal(u32_at(&room, 24), 3);
    assert_int_equal(u64_at(&room, 32), 5000);
    assert_int_equal(u32_at(&room, 40 + 24), 1);
    assert_int_equal(u32_at(&room, 40 + 32), 290000);
    assert_int_not_equal(u32_at(&room, 40 + 36), 0);
    assert_int_equal(u32_at(&room, 80 + 32), 310000);
    assert_int_equal(u32_at(&room, 120 + 32), 700000);
    assert_int_equal(u32_at(&room, 160 + 28), 0);
    assert_int_equal(u32_at(&room, 160 + 32), 55);
    assert_int_equal(u32_at(&room, 200 + 28), 3);
    assert_int_equal(u32_at(&room, 240 + 28), 3);
    assert_int_equal(get(dev, 0, at), 2);
    assert_int_equal(get(dev, 1, NULL), 2);
}

static void sensors_answer_from_the_records_and_directives(void **state)
{
    int (*clock_info)(void *, int, unsigned *) = symbol("nvmlDeviceGetClockInfo");
    int (*temperature)(void *, int, unsigned *) = symbol("nvmlDeviceGetTemperature");
    int (*ecc)(void *, int, int, unsigned long long *) = symbol("nvmlDeviceGetTotalEccErrors");
    int (*constraints)(void *, unsigned *, unsigned *) =
        symbol("nvmlDeviceGetPowerManagementLimitConstraints");
    void *dev = play(BOARD "0 X 0 throttle 0x44\n0 X 0 ecc 3 4\n0 X 0 limit 500000\n");
    unsigned value = 0, max_mw = 0;
    unsigned long long wide = 0;
    struct room room;

    (void)state;
    assert_int_equal(call_out("nvmlDeviceGetPowerUsage", dev, &value), 0);
    assert_int_equal(value, 300000);
    assert_int_equal(call_out("nvmlDeviceGetEnforcedPowerLimit", dev, &value), 0);
    assert_int_equal(value, 500000);
    assert_int_equal(call_out("nvmlDeviceGetPowerManagementDefaultLimit", dev, &value), 0);
    assert_int_equal(value, 700000);
    assert_int_equal(constraints(dev, &value, &max_mw), 0);
    assert_int_equal(value, 200000);
    assert_int_equal(max_mw, 700000);
    assert_int_equal(clock_info(dev, 1, &value), 0);
    assert_int_equal(value, 1980);
    assert_int_equal(clock_info(dev, 4, &value), 2);
    assert_int_equal(temperature(dev, 0, &value), 0);
    assert_int_equal(value, 64);
    room_init(&room, 12);
    put_u32(&room, 0, 0x0100000c);
    assert_int_equal(call_out("nvmlDeviceGetTemperatureV", dev, room.bytes + GUARD), 0);
    assert_guarded(&room);
    assert_int_equal(u32_at(&room, 8), 64);
    assert_int_equal(call_out("nvmlDeviceGetCurrentClocksEventReasons", dev, &wide), 0);
    assert_int_equal(wide, 0x44);
    assert_int_equal(ecc(dev, 1, 1, &wide), 0);
    assert_int_equal(wide, 4);
    assert_int_equal(call_out("nvmlDeviceGetUtilizationRates", dev, room_init(&room, 8)), 0);
    assert_guarded(&room);
    assert_int_equal(u32_at(&room, 4), 25);
}

static void an_error_holds_for_its_call_its_gpu_and_its_time(void **state)
{
    void *dev =
        play(BOARD LINE(01000, "X 0 error nvmlDeviceGetPowerUsage 999")
                 LINE(02000, "X 0 error nvmlDeviceGetPowerUsage 4")
                     LINE(03000, "X 0 error nvmlDeviceGetPowerUsage 0") LINE(03000, "P 1 1 1 1"));
    unsigned value;

    (void)state;
    assert_int_equal(call_out("nvmlDeviceGetPowerUsage", dev, &value), 0);
    set_time_ms(1000);
    assert_int_equal(call_out("nvmlDeviceGetPowerUsage", dev, &value), 999);
    assert_int_equal(call_out("nvmlDeviceGetPowerUsage", handle(1), &value), 0);
    assert_int_equal(energy_mj(dev), 9000);
    set_time_ms(2000);
    assert_int_equal(call_out("nvmlDeviceGetPowerUsage", dev, &value), 4);
    set_time_ms(3000);
    assert_int_equal(call_out("nvmlDeviceGetPowerUsage", dev, &value), 0);
}

static void a_lost_gpu_fails_every_call_until_it_is_back(void **state)
{
    int (*by_index)(unsigned, void **) = symbol("nvmlDeviceGetHandleByIndex_v2");
    void *dev = play(BOARD LINE(01000, "X 0 lost") LINE(02000, "X 0 back"));
    unsigned long long value;
    char text[96];
    void *found;

    (void)state;
    set_time_ms(1000);
    assert_int_equal(call_out("nvmlDeviceGetTotalEnergyConsumption", dev, &value), 15);
    assert_int_equal(call_text("nvmlDeviceGetUUID", dev, text, 96), 15);
    assert_int_equal(by_index(0, &found), 15);
    assert_int_equal(call_text("nvmlDeviceGetUUID", handle(1), text, 96), 0);
    set_time_ms(2000);
    assert_int_equal(energy_mj(dev), 9000);
}

static void an_unloaded_driver_needs_a_new_init_and_restarts_the_counter(void **state)
{
    void *dev = play(BOARD LINE(02000, "X * driver-unload") LINE(03000, "X * driver-load")
                         LINE(04000, "E 0 9500"));
    unsigned long long value;

    (void)state;
    set_time_ms(2000);
    assert_int_equal(call_out("nvmlDeviceGetTotalEnergyConsumption", dev, &value), 9);
    assert_int_equal(call0("nvmlInit_v2"), 9);
    set_time_ms(3000);
    assert_int_equal(call_out("nvmlDeviceGetTotalEnergyConsumption", dev, &value), 1);
    assert_int_equal(call0("nvmlShutdown"), 0);
    assert_int_equal(call0("nvmlInit_v2"), 0);
    assert_int_equal(energy_mj(handle(0)), 0);
    set_time_ms(4000);
    assert_int_equal(energy_mj(handle(0)), 500);
}

struct hung {
    void *dev;
    int code;
};

static void *call_power(void *argument)
{
    struct hung *hung = argument;
    unsigned value;

    hung->code = call_out("nvmlDeviceGetPowerUsage", hung->dev, &value);
    return NULL;
}

static void a_hung_call_is_released_and_blocks_no_other(void **state)
{
    void *dev =
        play(BOARD LINE(01000, "X 0 hang nvmlDeviceGetPowerUsage 60000") LINE(02000, "X 0 lost"));
    struct hung hung = {.dev = dev, .code = -1};
    pthread_t thread;

    (void)state;
    set_time_ms(1000);
    assert_int_equal(pthread_create(&thread, NULL, call_power, &hung), 0);
    CONTROL(fake_nvml_wait_hanging)(1);
    assert_int_equal(energy_mj(dev), 9000);
    set_time_ms(2000);
    CONTROL(fake_nvml_release_hangs)();
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(hung.code, 15);
}

static void a_call_that_hangs_over_shutdown_finds_no_library(void **state)
{
    void *dev = play(BOARD "0 X 0 hang nvmlDeviceGetPowerUsage 60000\n");
    struct hung hung = {.dev = dev, .code = -1};
    pthread_t thread;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, call_power, &hung), 0);
    CONTROL(fake_nvml_wait_hanging)(1);
    assert_int_equal(call0("nvmlShutdown"), 0);
    CONTROL(fake_nvml_release_hangs)();
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(hung.code, 1);
}

static void mig_takes_utilisation_away(void **state)
{
    int (*mode)(void *, unsigned *, unsigned *) = symbol("nvmlDeviceGetMigMode");
    int (*slot)(void *, unsigned, void **) = symbol("nvmlDeviceGetMigDeviceHandleByIndex");
    void *dev = play(SAMPLES LINE(01000, "X 0 mig on"));
    unsigned current = 9, pending = 9, count = 72;
    struct room room;
    void *found;

    (void)state;
    assert_int_equal(mode(dev, &current, &pending), 0);
    assert_int_equal(current, 0);
    set_time_ms(1000);
    assert_int_equal(mode(dev, &current, &pending), 0);
    assert_int_equal(current, 1);
    assert_int_equal(utilization(dev, room_init(&room, 72 * 32), &count, 0), 3);
    assert_int_equal(call_out("nvmlDeviceGetUtilizationRates", dev, room_init(&room, 8)), 3);
    assert_int_equal(call_out("nvmlDeviceGetMaxMigDeviceCount", dev, &count), 0);
    assert_int_equal(count, 7);
    assert_int_equal(slot(dev, 0, &found), 6);
    assert_int_equal(slot(dev, 7, &found), 2);
    assert_int_equal(energy_mj(dev), 9000);
}

#define MIG                                                                                        \
    HEAD LINE(00000,                                                                               \
              "B 0 1 7 98 3 2:0:0:3:1:14:20937965568:1c.3g.20gb:MIG-a "                            \
              "2:1:1:3:2:28:20937965568:2c.3g.20gb:MIG-b 9:0:6:1:1:14:5100273664:1g.5gb:MIG-c")    \
        LINE(00000, "E 0 9000") LINE(00000, "R 0 c 3 41:1024:2:0 42:2048:2:1 43:4096:9:0")         \
            LINE(00000, "G 0 i=2 2=40") LINE(00000, "G 0 i=9 2=90") LINE(00500, "G 0 i=2 2=60")    \
                LINE(03000, "B 0 1 7 98 1 2:0:0:3:3:42:20937965568:3g.20gb:MIG-d")                 \
                    LINE(04000, "B 0 0 0 0 0")

/* The MIG device in this slot of the board. */
static void *mig_device(void *dev, unsigned index)
{
    int (*slot)(void *, unsigned, void **) = symbol("nvmlDeviceGetMigDeviceHandleByIndex");
    void *found = NULL;

    assert_int_equal(slot(dev, index, &found), 0);
    return found;
}

static void a_mig_device_has_the_ids_the_name_and_the_attributes_of_its_instance(void **state)
{
    int (*slot)(void *, unsigned, void **) = symbol("nvmlDeviceGetMigDeviceHandleByIndex");
    void *dev = play(MIG), *mig, *none;
    unsigned id = 99;
    struct room room;
    char text[96];

    (void)state;
    assert_int_equal(slot(dev, 2, &none), 6);
    assert_int_equal(slot(dev, 7, &none), 2);
    mig = mig_device(dev, 1);
    assert_int_equal(call_out("nvmlDeviceGetGpuInstanceId", mig, &id), 0);
    assert_int_equal(id, 2);
    assert_int_equal(call_out("nvmlDeviceGetComputeInstanceId", mig, &id), 0);
    assert_int_equal(id, 1);
    assert_int_equal(call_out("nvmlDeviceGetGpuInstanceId", dev, &id), 2);
    assert_int_equal(call_text("nvmlDeviceGetUUID", mig, text, sizeof(text)), 0);
    assert_string_equal(text, "MIG-b");
    {
        int (*by_uuid)(const char *, void **) = symbol("nvmlDeviceGetHandleByUUID");
        void *found = NULL;

        assert_int_equal(by_uuid("MIG-b", &found), 0);
        assert_ptr_equal(found, mig);
        assert_int_equal(by_uuid("MIG-z", &found), 6);
    }
    assert_int_equal(call_text("nvmlDeviceGetName", mig, text, sizeof(text)), 0);
    assert_string_equal(text, "NVIDIA H200 MIG 2c.3g.20gb");
    assert_int_equal(call_out("nvmlDeviceGetAttributes_v2", mig, room_init(&room, 40)), 0);
    assert_guarded(&room);
    assert_int_equal(u32_at(&room, 0), 28);
    assert_int_equal(u32_at(&room, 24), 3);
    assert_int_equal(u32_at(&room, 28), 2);
    assert_int_equal(u64_at(&room, 32), 19968);
    assert_int_equal(call_out("nvmlDeviceGetAttributes_v2", dev, room_init(&room, 40)), 3);
    /* Energy and power are the board's. */
    assert_int_equal(call_out("nvmlDeviceGetTotalEnergyConsumption", mig, room_init(&room, 8)), 3);
    assert_int_equal(call_out("nvmlDeviceGetPowerUsage", mig, room_init(&room, 4)), 3);
    assert_int_equal(energy_mj(dev), 9000);
}

static void profiles_are_numbered_and_the_largest_is_the_board(void **state)
{
    /* 1, 2, 3, 4 and 7 slices; 8 and 6 are not of this board; no more are known. */
    static const struct {
        int code;
        uint32_t slices, sms;
    } expected[] = {{0, 1, 14}, {0, 2, 28}, {0, 3, 42}, {0, 4, 56},
                    {0, 7, 98}, {3, 0, 0},  {3, 0, 0},  {2, 0, 0}};
    int (*profile)(void *, unsigned, void *) = symbol("nvmlDeviceGetGpuInstanceProfileInfo");
    void *dev = play(MIG);
    struct room room;

    (void)state;
    for (unsigned i = 0; i < sizeof(expected) / sizeof(*expected); i++) {
        assert_int_equal(profile(dev, i, room_init(&room, 48)), expected[i].code);
        assert_guarded(&room);
        assert_int_equal(u32_at(&room, 8), expected[i].slices);
        assert_int_equal(u32_at(&room, 16), expected[i].sms);
    }
}

static void lists_have_instances_and_a_mig_device_has_its_own(void **state)
{
    void *dev = play(MIG LINE(01000, "X 0 monitor off")), *mig;
    unsigned count = 3;
    struct room room;

    (void)state;
    assert_int_equal(
        call_list("nvmlDeviceGetComputeRunningProcesses_v3", dev, &count, room_init(&room, 72)), 0);
    assert_guarded(&room);
    assert_int_equal(count, 3);
    assert_int_equal(u32_at(&room, 24), 42);
    assert_int_equal(u32_at(&room, 24 + 16), 2);
    assert_int_equal(u32_at(&room, 24 + 20), 1);
    mig = mig_device(dev, 6);
    count = 3;
    assert_int_equal(
        call_list("nvmlDeviceGetComputeRunningProcesses_v3", mig, &count, room_init(&room, 72)), 0);
    assert_int_equal(count, 1);
    assert_int_equal(u32_at(&room, 0), 43);
    set_time_ms(1000);
    assert_int_equal(call_list("nvmlDeviceGetComputeRunningProcesses_v3", dev, &count, NULL), 4);
    assert_int_equal(
        call_list("nvmlDeviceGetComputeRunningProcesses_v3", mig, &count, room_init(&room, 72)), 0);
}

static void memory_of_a_mig_device_is_its_instances(void **state)
{
    void *dev = play(MIG LINE(01000, "K 0 2 used 777") LINE(01000, "X 0 monitor off"));
    void *mig = mig_device(dev, 0);
    struct room room;

    (void)state;
    room_init(&room, 40);
    put_u32(&room, 0, 0x02000028);
    assert_int_equal(call_out("nvmlDeviceGetMemoryInfo_v2", mig, room.bytes + GUARD), 0);
    assert_guarded(&room);
    assert_int_equal(u64_at(&room, 8), 20937965568);
    assert_int_equal(u64_at(&room, 32), 3072); /* of both compute instances */
    set_time_ms(1000);
    assert_int_equal(call_out("nvmlDeviceGetMemoryInfo_v2", mig, room.bytes + GUARD), 0);
    assert_int_equal(u64_at(&room, 32), 777);
    assert_int_equal(call_out("nvmlDeviceGetMemoryInfo_v2", dev, room.bytes + GUARD), 4);
}

static void the_handle_of_a_destroyed_instance_is_invalid(void **state)
{
    void *dev = play(MIG LINE(03500, "X 0 destroyed 15")), *mig, *first;
    unsigned id;

    (void)state;
    mig = mig_device(dev, 1);
    first = mig_device(dev, 0);
    set_time_ms(3000);
    assert_int_equal(call_out("nvmlDeviceGetGpuInstanceId", mig, &id), 2);
    /* The slot has another device now, with another handle. */
    assert_int_equal(call_out("nvmlDeviceGetGpuInstanceId", first, &id), 2);
    assert_ptr_not_equal(mig_device(dev, 0), first);
    set_time_ms(3500);
    assert_int_equal(call_out("nvmlDeviceGetGpuInstanceId", mig, &id), 15);
    set_time_ms(4000);
    assert_int_equal(call_out("nvmlDeviceGetMaxMigDeviceCount", dev, &id), 0);
    assert_int_equal(id, 0);
}

static void gpm_of_an_instance_is_its_own(void **state)
{
    int (*take)(void *, unsigned, void *) = symbol("nvmlGpmMigSampleGet");
    int (*alloc)(void **) = symbol("nvmlGpmSampleAlloc");
    int (*metrics)(void *) = symbol("nvmlGpmMetricsGet");
    void *dev = play(MIG), *from, *until, *other;
    struct room room;
    double value;

    (void)state;
    assert_int_equal(alloc(&from), 0);
    assert_int_equal(alloc(&until), 0);
    assert_int_equal(alloc(&other), 0);
    assert_int_equal(take(dev, 2, from), 0);
    assert_int_equal(take(dev, 9, other), 0);
    assert_int_equal(take(dev, 5, until), 2); /* there is no such instance */
    set_time_ms(1000);
    assert_int_equal(take(dev, 2, until), 0);
    room_init(&room, 24 + 40);
    put_u32(&room, 0, 1);
    put_u32(&room, 4, 1);
    put_ptr(&room, 8, from);
    put_ptr(&room, 16, until);
    put_u32(&room, 24, 2);
    assert_int_equal(metrics(room.bytes + GUARD), 0);
    assert_guarded(&room);
    memcpy(&value, room.bytes + GUARD + 32, sizeof(value));
    assert_true(value == 60);
    put_ptr(&room, 8, other);
    assert_int_equal(metrics(room.bytes + GUARD), 2); /* of two instances */
}

#define VGPUS                                                                                      \
    HEAD LINE(00000, "E 0 9000")                                                                   \
        LINE(00000, "V 0 2 7:1024:u:0f4f1cbb-7d3d:9d0a4a52 8:18446744073709551615:d:12:-")         \
            LINE(00200, "Y 0 7 " AT(00100) " 60 5 1 2")                                            \
                LINE(00200, "Y 0 8 " AT(00150) " 20 5 0 0")                                        \
                    LINE(00400, "Y 0 7 " AT(00300) " 70 5 1 2")                                    \
                        LINE(02000, "V 0 1 7:1024:u:0f4f1cbb-7d3d:9d0a4a52")

static void a_vgpu_host_lists_vgpus_with_their_machines(void **state)
{
    int (*vm)(unsigned, char *, unsigned, unsigned *) = symbol("nvmlVgpuInstanceGetVmID");
    int (*uuid)(unsigned, char *, unsigned) = symbol("nvmlVgpuInstanceGetUUID");
    int (*memory)(unsigned, unsigned long long *) = symbol("nvmlVgpuInstanceGetFbUsage");
    void *dev = play(VGPUS);
    unsigned mode = 0, count = 1, vgpus[2], type = 9;
    unsigned long long bytes = 0;
    char text[96];

    (void)state;
    assert_int_equal(call_out("nvmlDeviceGetVirtualizationMode", dev, &mode), 0);
    assert_int_equal(mode, 3);
    assert_int_equal(call_list("nvmlDeviceGetActiveVgpus", dev, &count, vgpus), 7);
    assert_int_equal(count, 2);
    assert_int_equal(call_list("nvmlDeviceGetActiveVgpus", dev, &count, vgpus), 0);
    assert_int_equal(vgpus[0], 7);
    assert_int_equal(vm(7, text, sizeof(text), &type), 0);
    assert_string_equal(text, "0f4f1cbb-7d3d");
    assert_int_equal(type, 1);
    assert_int_equal(uuid(7, text, sizeof(text)), 0);
    assert_string_equal(text, "9d0a4a52");
    assert_int_equal(memory(7, &bytes), 0);
    assert_int_equal(bytes, 1024);
    assert_int_equal(vm(8, text, sizeof(text), &type), 0);
    assert_int_equal(type, 0);
    assert_int_equal(memory(8, &bytes), 3);
    assert_int_equal(vm(0, text, sizeof(text), &type), 2);
    assert_int_equal(vm(9, text, sizeof(text), &type), 6);
    set_time_ms(2000);
    assert_int_equal(vm(8, text, sizeof(text), &type), 6);
}

static void the_use_of_vgpus_is_told_once_in_both_versions(void **state)
{
    int (*old)(void *, unsigned long long, unsigned *, unsigned *, void *) =
        symbol("nvmlDeviceGetVgpuUtilization");
    void *dev = play(VGPUS);
    unsigned type = 0, count = 2;
    struct room room, list;

    (void)state;
    set_time_ms(250);
    assert_int_equal(old(dev, 0, &type, &count, room_init(&room, 96)), 0);
    assert_guarded(&room);
    assert_int_equal(type, 1);
    assert_int_equal(count, 2);
    assert_int_equal(u32_at(&room, 0), 8);
    assert_int_equal(u64_at(&room, 8), START_US + 150000);
    assert_int_equal(u32_at(&room, 16), 20);
    set_time_ms(450);
    assert_int_equal(old(dev, START_US + 150000, &type, &count, room_init(&room, 96)), 0);
    assert_int_equal(count, 1);
    assert_int_equal(u32_at(&room, 0), 7);
    assert_int_equal(u32_at(&room, 16), 70);
    count = 2;
    assert_int_equal(old(dev, START_US + 300000, &type, &count, room_init(&room, 96)), 6);

    room_init(&list, 128);
    room_init(&room, 32);
    put_u32(&room, 0, 0x01000020);
    put_u32(&room, 8, 2);
    put_ptr(&room, 24, list.bytes + GUARD);
    assert_int_equal(call_out("nvmlDeviceGetVgpuInstancesUtilizationInfo", dev, room.bytes + GUARD),
                     0);
    assert_guarded(&room);
    assert_guarded(&list);
    assert_int_equal(u32_at(&room, 4), 1);
    assert_int_equal(u32_at(&room, 8), 2);
    assert_int_equal(u64_at(&list, 0), START_US + 300000);
    assert_int_equal(u32_at(&list, 8), 7);
    assert_int_equal(u32_at(&list, 16), 70);
    put_u32(&room, 0, 0x02000020);
    assert_int_equal(call_out("nvmlDeviceGetVgpuInstancesUtilizationInfo", dev, room.bytes + GUARD),
                     25);
}

static void accounting_is_off_until_a_directive_and_keeps_the_last_entry(void **state)
{
    int (*stats)(void *, unsigned, void *) = symbol("nvmlDeviceGetAccountingStats");
    void *dev =
        play(BOARD LINE(01000, "X 0 accounting on") LINE(01000, "X 0 account 41 " AT(00200) " 0 50")
                 LINE(02000, "X 0 account 41 " AT(00200) " 1500 60"));
    unsigned count = 0, pid = 0;
    struct room room;

    (void)state;
    assert_int_equal(call_list("nvmlDeviceGetAccountingPids", dev, &count, NULL), 3);
    set_time_ms(1000);
    assert_int_equal(call_list("nvmlDeviceGetAccountingPids", dev, &count, NULL), 7);
    assert_int_equal(count, 1);
    assert_int_equal(call_list("nvmlDeviceGetAccountingPids", dev, &count, &pid), 0);
    assert_int_equal(pid, 41);
    assert_int_equal(stats(dev, 41, room_init(&room, 56)), 0);
    assert_guarded(&room);
    assert_int_equal(u32_at(&room, 0), 50);
    assert_int_equal(u64_at(&room, 16), 0);
    assert_int_equal(u64_at(&room, 24), START_US + 200000);
    assert_int_equal(u32_at(&room, 32), 1);
    set_time_ms(2000);
    assert_int_equal(stats(dev, 41, room_init(&room, 56)), 0);
    assert_int_equal(u64_at(&room, 16), 1500);
    assert_int_equal(u32_at(&room, 32), 0);
    assert_int_equal(stats(dev, 40, room_init(&room, 56)), 6);
    count = 0;
    assert_int_equal(call_list("nvmlDeviceGetAccountingPids", dev, &count, NULL), 7);
    assert_int_equal(count, 1);
}

static double metric_at(const struct room *room, size_t offset)
{
    double value;

    memcpy(&value, room->bytes + GUARD + offset, sizeof(value));
    return value;
}

static void gpm_needs_two_samples_100_ms_apart(void **state)
{
    int (*alloc)(void **) = symbol("nvmlGpmSampleAlloc");
    int (*release)(void *) = symbol("nvmlGpmSampleFree");
    int (*metrics)(void *) = symbol("nvmlGpmMetricsGet");
    void *dev = play(BOARD LINE(00000, "G 0 1=0.000 2=nan") LINE(00500, "G 0 1=12.500 2=80.25"));
    void *first = NULL, *second = NULL;
    struct room room;
    void *at = room_init(&room, 24 + 3 * 40);

    (void)state;
    assert_int_equal(alloc(&first), 0);
    assert_int_equal(alloc(&second), 0);
    assert_int_equal(CONTROL(fake_nvml_open_handles)(), 2);
    put_u32(&room, 0, 1);
    put_u32(&room, 4, 3);
    put_ptr(&room, 8, first);
    put_ptr(&room, 16, second);
    put_u32(&room, 24, 1);
    put_u32(&room, 64, 2);
    put_u32(&room, 104, 99);
    assert_int_equal(metrics(at), 2);
    assert_int_equal(call_out("nvmlGpmSampleGet", dev, first), 0);
    set_time_ms(500);
    assert_int_equal(call_out("nvmlGpmSampleGet", dev, second), 0);
    assert_int_equal(metrics(at), 0);
    assert_guarded(&room);
    assert_int_equal(u32_at(&room, 28), 0);
    assert_true(metric_at(&room, 32) == 12.5);
    assert_true(metric_at(&room, 72) == 80.25);
    assert_int_equal(u32_at(&room, 108), 3);
    set_time_ms(550);
    assert_int_equal(call_out("nvmlGpmSampleGet", dev, first), 0);
    put_ptr(&room, 8, second);
    put_ptr(&room, 16, first);
    assert_int_equal(metrics(at), 0);
    assert_true(isnan(metric_at(&room, 32)));
    put_u32(&room, 0, 0x01000018);
    assert_int_equal(metrics(at), 25);
    assert_int_equal(call_out("nvmlGpmSampleGet", handle(1), first), 3);
    assert_int_equal(release(first), 0);
    assert_int_equal(release(first), 2);
    assert_int_equal(release(second), 0);
    assert_int_equal(CONTROL(fake_nvml_open_handles)(), 0);
}

static void an_xid_is_told_once_to_sets_registered_before_it(void **state)
{
    int (*create)(void **) = symbol("nvmlEventSetCreate");
    int (*release)(void *) = symbol("nvmlEventSetFree");
    int (*watch)(void *, unsigned long long, void *) = symbol("nvmlDeviceRegisterEvents");
    int (*wait)(void *, void *, unsigned) = symbol("nvmlEventSetWait_v2");
    int (*wait_v1)(void *, void *, unsigned) = symbol("nvmlEventSetWait");
    void *dev = play(BOARD LINE(01000, "X 0 xid 13") LINE(02000, "X 0 xid 79")
                         LINE(02000, "X 0 xid 48") LINE(02000, "X 1 xid 31"));
    void *set = NULL;
    struct room room;

    (void)state;
    set_time_ms(1000);
    assert_int_equal(create(&set), 0);
    assert_int_equal(watch(dev, 0x8, set), 0);
    assert_int_equal(watch(dev, 0x4000, set), 3);
    assert_int_equal(wait(set, room_init(&room, 32), 60000), 10);
    set_time_ms(2000);
    assert_int_equal(wait(set, room_init(&room, 32), 60000), 0);
    assert_guarded(&room);
    assert_int_equal(u64_at(&room, 0), (uintptr_t)dev);
    assert_int_equal(u64_at(&room, 8), 0x8);
    assert_int_equal(u64_at(&room, 16), 79);
    assert_int_equal(u32_at(&room, 24), UINT32_MAX);
    assert_int_equal(wait_v1(set, room_init(&room, 24), 60000), 0);
    assert_guarded(&room);
    assert_int_equal(u64_at(&room, 16), 48);
    assert_int_equal(wait(set, room_init(&room, 32), 60000), 10);
    assert_int_equal(release(set), 0);
    assert_int_equal(wait(set, room_init(&room, 32), 60000), 2);
    assert_int_equal(CONTROL(fake_nvml_open_handles)(), 0);
}

static void a_looping_trace_goes_on_counting(void **state)
{
    void *dev = play(SAMPLES LINE(02000, "X * loop"));
    unsigned count = 72;
    struct room room;

    (void)state;
    set_time_ms(2000);
    assert_int_equal(energy_mj(dev), 9000);
    set_time_ms(3000);
    assert_int_equal(energy_mj(dev), 13000);
    set_time_ms(2100);
    assert_int_equal(utilization(dev, room_init(&room, 72 * 32), &count, START_US + 300000), 0);
    assert_int_equal(count, 2);
    assert_int_equal(u64_at(&room, 8), START_US + 500000);
    assert_int_equal(u64_at(&room, 40), START_US + 2100000);
}

static void write_pairs(int fd, const char *text)
{
    assert_int_equal(ftruncate(fd, 0), 0);
    assert_int_equal(pwrite(fd, text, strlen(text), 0), (ssize_t)strlen(text));
}

static void real_pids_stand_in_and_are_read_again(void **state)
{
    int fd = memfd_create("pids", MFD_CLOEXEC);
    char text[2048];
    unsigned count = 2;
    struct room room;
    void *dev;

    (void)state;
    assert_true(fd >= 0);
    write_pairs(fd, "41 7041\n");
    snprintf(text, sizeof(text), "%s0 X * pids-from /proc/self/fd/%d\n", BOARD, fd);
    dev = play(text);
    assert_int_equal(
        call_list("nvmlDeviceGetComputeRunningProcesses_v3", dev, &count, room_init(&room, 48)), 0);
    assert_int_equal(u32_at(&room, 0), 7041);
    assert_int_equal(u32_at(&room, 24), 42);
    write_pairs(fd, "41 7041\n42 7042\n");
    assert_int_equal(
        call_list("nvmlDeviceGetComputeRunningProcesses_v3", dev, &count, room_init(&room, 48)), 0);
    assert_int_equal(u32_at(&room, 24), 7042);
    close(fd);
}

static void a_bad_scenario_is_refused(void **state)
{
    static const char *const bad[] = {
        "",
        "wattribute-trace 4\n",
        HEAD LINE(00000, "E 0 0"),
        HEAD LINE(00000, "E 2 1"),
        HEAD AT(00000) " E 0 1",
        HEAD LINE(00000, "E 0 1 1"),
        HEAD LINE(00000, "R 0 c 2 1:1"),
        HEAD LINE(00001, "E 0 1") LINE(00000, "E 0 2"),
        HEAD LINE(00000, "X 0 explode"),
        HEAD LINE(00000, "X 0 error nvmlNoSuchCall 3"),
        HEAD LINE(00000, "X 0 error nvmlDeviceGetName"),
        HEAD LINE(00000, "X 0 lost and found"),
        HEAD LINE(00000, "X 0 driver-unload"),
        HEAD LINE(00000, "E 0 1") LINE(00000, "X * loop"),
        "wattribute-trace 1\ngpu 1 uuid=GPU-1\n",
        "wattribute-trace 1\ngpu 16 uuid=GPU-16\n",
        "wattribute-trace 1\ngpu 0 name=nobody\n",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        assert_int_equal(load(bad[i]), -EINVAL);
    assert_int_equal(load(HEAD LINE(00000, "Z 9 whatever") LINE(00000, "# 0 a remark")), 0);
    assert_int_equal(call0("nvmlInit_v2"), 0);
    assert_int_equal(load(BOARD), -EBUSY);
}

static void the_recorded_trace_and_every_scenario_play(void **state)
{
    static const char *const files[] = {
        "data/h200-five-workers.trace.gz",
        "tests/fakes/nvml/scenarios/churn.trace",
        "tests/fakes/nvml/scenarios/counter-reset.trace",
        "tests/fakes/nvml/scenarios/eight-gpus.trace",
        "tests/fakes/nvml/scenarios/every-error-code.trace",
        "tests/fakes/nvml/scenarios/exits-between-samples.trace",
        "tests/fakes/nvml/scenarios/hang.trace",
        "tests/fakes/nvml/scenarios/lost-gpu.trace",
        "tests/fakes/nvml/scenarios/mps.trace",
        "tests/fakes/nvml/scenarios/no-counter.trace",
        "tests/fakes/nvml/scenarios/pid-reuse.trace",
        "tests/fakes/nvml/scenarios/time-slicing.trace",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
        unsigned count = 0;
        char path[512];

        snprintf(path, sizeof(path), SOURCE_DIR "/%s", files[i]);
        assert_int_equal(CONTROL(fake_nvml_load)(path), 0);
        set_time_ms(1000);
        assert_int_equal(call0("nvmlInit_v2"), 0);
        assert_int_equal(utilization(handle(0), NULL, &count, 0), 7);
        CONTROL(fake_nvml_reset)();
    }
}

static void on_the_real_clock_times_are_near_now(void **state)
{
    int (*get)(void *, int, void *) = symbol("nvmlDeviceGetFieldValues");
    struct timespec now;
    struct room room;
    uint64_t now_us;

    (void)state;
    assert_int_equal(load(BOARD), 0);
    assert_int_equal(call0("nvmlInit_v2"), 0);
    room_init(&room, 40);
    put_u32(&room, 0, 83);
    assert_int_equal(get(handle(0), 1, room.bytes + GUARD), 0);
    clock_gettime(CLOCK_REALTIME, &now);
    now_us = (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
    assert_true(u64_at(&room, 8) <= now_us);
    assert_true(u64_at(&room, 8) + 60000000 > now_us);
}

static void r530_writes_32_byte_entries_in_its_v3_lists(void **state)
{
    (void)state;
#ifdef FAKE_NVML_R530
    void *usual = library;
    unsigned count = 2;
    struct room room;
    void *dev;

    library = dlopen(FAKE_NVML_R530, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(library);
    assert_non_null(dlsym(library, "nvmlDeviceGetConfComputeMemSizeInfo"));
    assert_null(dlsym(library, "nvmlDeviceGetRunningProcessDetailList"));
    dev = play(BOARD);
    assert_int_equal(
        call_list("nvmlDeviceGetComputeRunningProcesses_v3", dev, &count, room_init(&room, 64)), 0);
    assert_guarded(&room);
    assert_int_equal(u32_at(&room, 32), 42);
    assert_int_equal(
        call_list("nvmlDeviceGetComputeRunningProcesses_v2", dev, &count, room_init(&room, 48)), 0);
    assert_guarded(&room);
    assert_int_equal(u32_at(&room, 24), 42);
    dlclose(library);
    library = usual;
#else
    skip();
#endif
}

static void a_symbol_that_was_left_out_is_not_there(void **state)
{
    (void)state;
    assert_non_null(dlsym(library, "nvmlDeviceGetMemoryInfo_v2"));
    assert_non_null(dlsym(library, "nvmlDeviceGetConfComputeMemSizeInfo"));
#ifdef FAKE_NVML_OMIT_MEMORY_V2
    void *older = dlopen(FAKE_NVML_OMIT_MEMORY_V2, RTLD_NOW | RTLD_LOCAL);

    assert_non_null(older);
    assert_null(dlsym(older, "nvmlDeviceGetMemoryInfo_v2"));
    assert_null(dlsym(older, "nvmlDeviceGetRunningProcessDetailList"));
    assert_null(dlsym(older, "nvmlDeviceGetConfComputeMemSizeInfo"));
    assert_non_null(dlsym(older, "nvmlDeviceGetMemoryInfo"));
    dlclose(older);
#endif
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, reset, reset)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(calls_need_init_and_shutdown_is_counted),
        TEST(a_handle_does_not_outlive_its_initialisation),
        TEST(devices_are_found_by_index_and_by_uuid),
        TEST(pci_info_below_v3_fills_only_36_bytes),
        TEST(energy_follows_the_clock_and_stays_after_the_end),
        TEST(what_a_trace_does_not_hold_is_not_supported),
        TEST(memory_v1_counts_reserved_as_used_and_v2_does_not),
        TEST(a_wrong_version_word_is_refused),
        TEST(a_null_out_argument_is_refused),
        TEST(process_lists_have_entries_of_16_or_24_bytes),
        TEST(a_small_list_is_told_the_needed_count),
        TEST(the_three_lists_are_apart),
        TEST(the_detail_list_has_entries_of_32_bytes),
        TEST(utilisation_gives_each_sample_once_and_then_not_found),
        TEST(utilisation_info_has_entries_of_40_bytes),
        TEST(the_ring_holds_72_samples_and_14_seconds),
        TEST(means_are_over_all_samples_and_stamped_with_the_last),
        TEST(fields_have_their_own_code_and_type),
        TEST(sensors_answer_from_the_records_and_directives),
        TEST(an_error_holds_for_its_call_its_gpu_and_its_time),
        TEST(a_lost_gpu_fails_every_call_until_it_is_back),
        TEST(an_unloaded_driver_needs_a_new_init_and_restarts_the_counter),
        TEST(a_hung_call_is_released_and_blocks_no_other),
        TEST(a_call_that_hangs_over_shutdown_finds_no_library),
        TEST(mig_takes_utilisation_away),
        TEST(a_mig_device_has_the_ids_the_name_and_the_attributes_of_its_instance),
        TEST(profiles_are_numbered_and_the_largest_is_the_board),
        TEST(lists_have_instances_and_a_mig_device_has_its_own),
        TEST(memory_of_a_mig_device_is_its_instances),
        TEST(the_handle_of_a_destroyed_instance_is_invalid),
        TEST(gpm_of_an_instance_is_its_own),
        TEST(a_vgpu_host_lists_vgpus_with_their_machines),
        TEST(the_use_of_vgpus_is_told_once_in_both_versions),
        TEST(accounting_is_off_until_a_directive_and_keeps_the_last_entry),
        TEST(gpm_needs_two_samples_100_ms_apart),
        TEST(an_xid_is_told_once_to_sets_registered_before_it),
        TEST(a_looping_trace_goes_on_counting),
        TEST(real_pids_stand_in_and_are_read_again),
        TEST(a_bad_scenario_is_refused),
        TEST(the_recorded_trace_and_every_scenario_play),
        TEST(on_the_real_clock_times_are_near_now),
        TEST(r530_writes_32_byte_entries_in_its_v3_lists),
        TEST(a_symbol_that_was_left_out_is_not_there),
    };

    return cmocka_run_group_tests(tests, open_library, close_library);
}
