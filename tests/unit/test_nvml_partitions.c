/* sources/nvml: MIG instances and vGPUs, from the fake library to samples. */
#include "nvml_fixture.h"

enum { SEEN_MAX = 4096 };

/* Samples of one kind, with what they point to. */
struct seen {
    enum sample_kind kind;
    uint32_t gpu;
    struct sample samples[SEEN_MAX];
    size_t count;
    struct arena arena;
};

static const char *copy_text(struct seen *seen, const char *text)
{
    return arena_copy(&seen->arena, text, strlen(text));
}

static void keep(void *watcher, const struct sample *sample)
{
    struct seen *seen = watcher;
    struct sample *copy = &seen->samples[seen->count];

    if (sample->kind != seen->kind || sample->gpu != seen->gpu)
        return;
    assert_true(seen->count < SEEN_MAX);
    seen->count++;
    *copy = *sample;
    if (sample->kind == SAMPLE_LAYOUT) {
        struct sample_instance *items =
            arena_array(&seen->arena, sample->layout.count, sizeof(*items));

        for (size_t i = 0; i < sample->layout.count; i++) {
            items[i] = sample->layout.items[i];
            items[i].uuid = copy_text(seen, items[i].uuid);
            items[i].profile = copy_text(seen, items[i].profile);
        }
        copy->layout.items = items;
    } else if (sample->kind == SAMPLE_LIST) {
        struct sample_listed *entries =
            arena_array(&seen->arena, sample->list.count, sizeof(*entries));

        for (size_t i = 0; i < sample->list.count; i++)
            entries[i] = sample->list.entries[i];
        copy->list.entries = entries;
    } else if (sample->kind == SAMPLE_VGPUS) {
        struct sample_vgpu *items = arena_array(&seen->arena, sample->vgpus.count, sizeof(*items));

        for (size_t i = 0; i < sample->vgpus.count; i++) {
            items[i] = sample->vgpus.items[i];
            items[i].vm = copy_text(seen, items[i].vm);
            items[i].uuid = copy_text(seen, items[i].uuid);
        }
        copy->vgpus.items = items;
    }
}

/* Opens the rig and keeps samples of one kind of a GPU. */
static struct seen *watch(struct rig *rig, const char *library, const char *scenario,
                          enum sample_kind kind, uint32_t gpu)
{
    struct seen *seen = calloc(1, sizeof(*seen));

    assert_non_null(seen);
    seen->kind = kind;
    seen->gpu = gpu;
    arena_init(&seen->arena, 64 << 20);
    open_rig(rig, library, scenario);
    rig->see = keep;
    rig->watcher = seen;
    return seen;
}

static void close_watched(struct rig *rig, struct seen *seen)
{
    close_rig(rig);
    arena_done(&seen->arena);
    free(seen);
}

static void assert_instance(const struct sample_instance *instance,
                            const struct sample_instance *expected)
{
    assert_int_equal(instance->gpu_instance, expected->gpu_instance);
    assert_int_equal(instance->compute_instance, expected->compute_instance);
    assert_int_equal(instance->index, expected->index);
    assert_string_equal(instance->uuid, expected->uuid);
    assert_string_equal(instance->profile, expected->profile);
    assert_int_equal(instance->slices, expected->slices);
    assert_int_equal(instance->compute_slices, expected->compute_slices);
    assert_int_equal(instance->sm_count, expected->sm_count);
    assert_int_equal(instance->memory_bytes, expected->memory_bytes);
}

static void a_layout_has_every_mig_device_and_the_size_of_the_board(void **state)
{
    static const struct sample_instance expected[] = {
        {2,
         0,
         0,
         "MIG-00000000-0002-0000-8000-000000000003",
         "1c.3g.20gb",
         3,
         1,
         14,
         20937965568,
         {0}},
        {2,
         1,
         1,
         "MIG-00000000-0002-0001-8000-000000000003",
         "2c.3g.20gb",
         3,
         2,
         28,
         20937965568,
         {0}},
        {3,
         0,
         2,
         "MIG-00000000-0003-0000-8000-000000000002",
         "2g.10gb",
         2,
         2,
         28,
         10334765056,
         {0}},
        {9, 0, 3, "MIG-00000000-0009-0000-8000-000000000001", "1g.5gb", 1, 1, 14, 5100273664, {0}},
        {10, 0, 4, "MIG-00000000-000a-0000-8000-000000000001", "1g.5gb", 1, 1, 14, 5100273664, {0}},
    };
    struct rig rig;
    struct seen *seen = watch(&rig, FAKE_NVML, SCENARIOS "a100-mig.trace", SAMPLE_LAYOUT, 0);

    (void)state;
    play(&rig, SECOND);
    assert_int_equal(seen->count, 1);
    assert_int_equal(seen->samples[0].layout.kind, LAYOUT_MIG);
    assert_int_equal(seen->samples[0].layout.slices, 7);
    assert_int_equal(seen->samples[0].layout.sm_count, 98);
    assert_int_equal(seen->samples[0].layout.count, ARRAY_SIZE(expected));
    for (size_t i = 0; i < ARRAY_SIZE(expected); i++)
        assert_instance(&seen->samples[0].layout.items[i], &expected[i]);
    play(&rig, 11 * SECOND);
    assert_int_equal(seen->count, 1); /* it has not changed */
    play(&rig, 50 * SECOND);
    assert_int_equal(seen->count, 2); /* but whoever missed it hears it again */
    assert_int_equal(rig.errors, 0);
    close_watched(&rig, seen);
}

static void the_largest_instance_is_the_board_and_a_name_has_its_extension(void **state)
{
    static const struct {
        uint32_t gpu;
        size_t count;
        const char *profile; /* of the last */
    } boards[] = {{0, 7, "1g.10gb"}, {1, 1, "7g.80gb"}, {2, 3, "1g.10gb+me"}};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(boards); i++) {
        struct rig rig;
        struct seen *seen =
            watch(&rig, FAKE_NVML, SCENARIOS "h100-mig.trace", SAMPLE_LAYOUT, boards[i].gpu);
        const struct sample_layout *layout = &seen->samples[0].layout;

        play(&rig, SECOND);
        assert_int_equal(layout->slices, 7);
        assert_int_equal(layout->sm_count, 132);
        assert_int_equal(layout->count, boards[i].count);
        assert_string_equal(layout->items[layout->count - 1].profile, boards[i].profile);
        close_watched(&rig, seen);
    }
}

/* Else the traffic of an instance would count by its SMs: memory has slices of its own. */
static void the_memory_of_the_board_is_known_if_the_driver_tells_it(void **state)
{
    static const char *const libraries[] = {FAKE_NVML, FAKE_NVML_OMIT_MEMORY_V2};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(libraries); i++) {
        struct rig rig;
        struct seen *seen = watch(&rig, libraries[i], SCENARIOS "h100-mig.trace", SAMPLE_DEVICE, 0);

        play(&rig, SECOND);
        assert_int_equal(seen->samples[0].device.memory_bytes, 85520809984);
        assert_int_equal(rig.pipeline->gpus[0]->memory_bytes, 85520809984);
        close_watched(&rig, seen);
    }
}

static void processes_are_listed_with_their_instances(void **state)
{
    static const struct sample_listed expected[] = {
        {101, 512 << 20, 2, 0}, {102, 512 << 20, 2, 1}, {104, 512 << 20, 9, 0}};
    struct rig rig;
    struct seen *seen = watch(&rig, FAKE_NVML, SCENARIOS "a100-mig.trace", SAMPLE_LIST, 0);

    (void)state;
    play(&rig, SECOND);
    assert_int_equal(seen->samples[0].list.kind, SAMPLE_LIST_COMPUTE);
    assert_int_equal(seen->samples[0].list.count, ARRAY_SIZE(expected));
    for (size_t i = 0; i < ARRAY_SIZE(expected); i++)
        assert_memory_equal(&seen->samples[0].list.entries[i], &expected[i], sizeof(expected[i]));
    close_watched(&rig, seen);
}

/* The scenario, and more lines behind its head. */
static const char *amend(const char *scenario, const char *lines, char path[FILE_PATH_BYTES])
{
    static char text[1 << 20];
    FILE *file = fopen(scenario, "re");
    size_t len, head_len, lines_len = strlen(lines);
    char *head;

    assert_non_null(file);
    len = fread(text, 1, sizeof(text) - lines_len - 1, file);
    fclose(file);
    text[len] = '\0';
    head = strstr(text, "\n18");
    assert_non_null(head);
    head_len = (size_t)(head + 1 - text);
    memmove(text + head_len + lines_len, text + head_len, len - head_len + 1);
    memcpy(text + head_len, lines, lines_len);
    file_make(path, text, 0600);
    return path;
}

static void without_the_right_to_the_boards_list_those_of_its_devices_are_read(void **state)
{
    static const char *const libraries[] = {FAKE_NVML, FAKE_NVML_LISTS_V1};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(libraries); i++) {
        char path[FILE_PATH_BYTES];
        struct rig rig;
        /* The first version of the lists has no instances, whoever may read it. */
        const char *scenario =
            amend(SCENARIOS "a100-mig.trace", i == 0 ? "0 X 0 monitor off\n" : "", path);
        struct seen *seen = watch(&rig, libraries[i], scenario, SAMPLE_LIST, 0);
        const struct sample_list *list = &seen->samples[0].list;

        play(&rig, SECOND);
        assert_int_equal(rig.errors, 0);
        assert_int_equal(list->count, 3);
        assert_int_equal(list->entries[0].pid, 101);
        assert_int_equal(list->entries[0].gpu_instance, 2);
        assert_int_equal(list->entries[0].compute_instance, 0);
        assert_int_equal(list->entries[1].pid, 102);
        assert_int_equal(list->entries[1].compute_instance, 1);
        assert_int_equal(list->entries[2].pid, 104);
        assert_int_equal(list->entries[2].gpu_instance, 9);
        close_watched(&rig, seen);
        unlink(path);
    }
}

static void what_mig_takes_away_is_not_asked_for(void **state)
{
    struct rig rig;

    (void)state;
    open_rig(&rig, FAKE_NVML, SCENARIOS "h100-mig.trace");
    play(&rig, 10 * SECOND);
    assert_int_equal(rig.errors, 0);
    assert_int_equal(rig.call_count("nvmlDeviceGetProcessUtilization"), 0);
    assert_int_equal(rig.call_count("nvmlDeviceGetUtilizationRates"), 0);
    assert_int_equal(rig.call_count("nvmlDeviceGetAccountingMode"), 0);
    assert_int_equal(rig.call_count("nvmlGpmSampleGet"), 0); /* of the whole board */
    close_rig(&rig);
}

/* Of the seven single processes of GPU 0, with one window each second. */
static void the_layout_costs_a_call_for_each_slot_and_four_for_each_device_in_a_window(void **state)
{
    static const char *const calls[] = {"nvmlDeviceGetMigMode", "nvmlDeviceGetMaxMigDeviceCount",
                                        "nvmlDeviceGetMigDeviceHandleByIndex",
                                        "nvmlDeviceGetGpuInstanceId",
                                        "nvmlDeviceGetComputeInstanceId"};
    static const uint64_t expected[] = {30, 30, 210, 110, 110}; /* 3 boards, 11 devices */
    struct rig rig;

    (void)state;
    open_rig(&rig, FAKE_NVML, SCENARIOS "h100-mig.trace");
    play(&rig, 10 * SECOND);
    for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
        assert_int_equal(rig.call_count(calls[i]), expected[i]);
    assert_int_equal(rig.call_count("nvmlDeviceGetAttributes_v2"), 110);
    close_rig(&rig);
}

static void count_gpm(const struct seen *seen, uint32_t instance, size_t *ret_count,
                      uint32_t *ret_sm_millipercent)
{
    *ret_count = 0;
    for (size_t i = 0; i < seen->count; i++)
        if (seen->samples[i].gpm.instance == instance) {
            ++*ret_count;
            *ret_sm_millipercent = seen->samples[i].gpm.millipercent[1];
        }
}

static void gpm_is_read_for_each_instance_as_often_as_it_matters(void **state)
{
    struct rig rig;
    struct seen *seen = watch(&rig, FAKE_NVML, SCENARIOS "h100-mig.trace", SAMPLE_GPM, 2);
    size_t count;
    uint32_t sm;

    (void)state;
    play(&rig, 3 * SECOND);
    count_gpm(seen, 5, &count, &sm); /* one process: once per window */
    assert_int_equal(count, 2);
    assert_int_equal(sm, 80000);
    count_gpm(seen, 1, &count, &sm);
    assert_int_equal(count, 2);
    assert_int_equal(sm, 40000);
    count_gpm(seen, 13, &count, &sm); /* no process: never */
    assert_int_equal(count, 0);
    count_gpm(seen, SAMPLE_NO_INSTANCE, &count, &sm);
    assert_int_equal(count, 0);
    play(&rig, 2 * SECOND); /* two processes in the 4g.40gb: at every poll */
    count_gpm(seen, 1, &count, &sm);
    assert_in_range(count, 11, 12);
    assert_int_equal(sm, 70000);
    count_gpm(seen, 5, &count, &sm);
    assert_int_equal(count, 4);
    close_watched(&rig, seen);
}

static void gpm_begins_with_the_first_process_and_ends_with_the_last(void **state)
{
    struct rig rig;
    struct seen *seen = watch(&rig, FAKE_NVML, SCENARIOS "h100-mig.trace", SAMPLE_GPM, 1);

    (void)state;
    play(&rig, 12 * SECOND); /* 211 is there from 1 s to 9 s */
    assert_int_equal(seen->count, 8);
    assert_int_equal(seen->samples[0].t_us, START_US + 2 * SECOND);
    assert_int_equal(seen->samples[7].t_us, START_US + 9 * SECOND);
    for (size_t i = 0; i < 7; i++)
        assert_int_equal(seen->samples[i].gpm.millipercent[1], 90000);
    close_watched(&rig, seen);
}

static void gpm_is_read_where_memory_is_in_use_and_no_process_is_listed(void **state)
{
    struct rig rig;
    struct seen *seen = watch(&rig, FAKE_NVML, SCENARIOS "mig-pods.trace", SAMPLE_GPM, 0);
    size_t count;
    uint32_t sm = 0;

    (void)state;
    play(&rig, 8 * SECOND); /* 403 is there from 3 s on, and on no list */
    count_gpm(seen, 8, &count, &sm);
    assert_in_range(count, 4, 5); /* once per window */
    assert_int_equal(sm, 80000);
    count_gpm(seen, 9, &count, &sm); /* it is given to somebody, and empty */
    assert_int_equal(count, 0);
    assert_int_equal(rig.errors, 0);
    close_watched(&rig, seen);
}

static void placements_are_read_if_the_driver_tells_them(void **state)
{
    static const struct mig_placement expected[] = {
        {true, 19, 0, 1}, {true, 19, 2, 1}, {true, 20, 6, 1}};
    struct rig rig;
    struct seen *seen = watch(&rig, FAKE_NVML, SCENARIOS "mig-pods.trace", SAMPLE_LAYOUT, 1);

    (void)state;
    play(&rig, 3 * SECOND);
    assert_int_equal(seen->count, 1);
    assert_int_equal(seen->samples[0].layout.count, ARRAY_SIZE(expected));
    for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
        const struct mig_placement *placement = &seen->samples[0].layout.items[i].placement;

        assert_true(placement->is_known);
        assert_int_equal(placement->profile, expected[i].profile);
        assert_int_equal(placement->start, expected[i].start);
        assert_int_equal(placement->size, expected[i].size);
    }
    /* Once for each device of both boards. On the first, the reader has no permission. */
    assert_int_equal(rig.call_count("nvmlDeviceGetGpuInstanceById"), 5 + 3);
    assert_int_equal(rig.call_count("nvmlGpuInstanceGetInfo"), 3);
    assert_int_equal(rig.errors, 0);
    close_watched(&rig, seen);
}

static void a_board_without_gpm_has_none_in_its_instances(void **state)
{
    struct rig rig;
    struct seen *seen = watch(&rig, FAKE_NVML, SCENARIOS "a100-mig.trace", SAMPLE_GPM, 0);

    (void)state;
    play(&rig, 5 * SECOND);
    assert_int_equal(seen->count, 0);
    assert_int_equal(rig.call_count("nvmlGpmMigSampleGet"), 0);
    assert_int_equal(rig.errors, 0);
    close_watched(&rig, seen);
}

static void memory_is_read_once_for_each_gpu_instance(void **state)
{
    struct rig rig;
    struct seen *seen = watch(&rig, FAKE_NVML, SCENARIOS "a100-mig.trace", SAMPLE_GAUGE, 0);
    size_t count = 0;

    (void)state;
    play(&rig, SECOND);
    for (size_t i = 0; i < seen->count; i++) {
        const struct sample_gauge *gauge = &seen->samples[i].gauge;

        count += gauge->instance != SAMPLE_NO_INSTANCE;
        if (gauge->instance != 2)
            continue;
        /* The split instance: two processes in its two compute instances. */
        if (gauge->gauge == GPU_GAUGE_MEMORY_TOTAL_BYTES)
            assert_int_equal(gauge->value, 20937965568);
        else if (gauge->gauge == GPU_GAUGE_MEMORY_USED_BYTES)
            assert_int_equal(gauge->value, 1 << 30);
        else if (gauge->gauge == GPU_GAUGE_MEMORY_FREE_BYTES)
            assert_int_equal(gauge->value, 20937965568 - (1 << 30));
        else
            assert_int_equal(gauge->gauge, GPU_GAUGE_MEMORY_RESERVED_BYTES);
    }
    assert_int_equal(count, 4 * 4);
    close_watched(&rig, seen);
}

static void a_change_of_the_layout_is_followed_within_a_window(void **state)
{
    static const struct {
        uint64_t second;
        bool is_mig;
        size_t count;
    } expected[] = {{0, true, 2}, {5, true, 1}, {7, true, 3}, {11, false, 0}};
    struct rig rig;
    struct seen *seen = watch(&rig, FAKE_NVML, SCENARIOS "mig-change.trace", SAMPLE_LAYOUT, 0);

    (void)state;
    play(&rig, 13 * SECOND);
    assert_int_equal(seen->count, ARRAY_SIZE(expected));
    for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
        assert_int_equal(seen->samples[i].t_us, START_US + expected[i].second * SECOND);
        assert_int_equal(seen->samples[i].layout.kind == LAYOUT_MIG, expected[i].is_mig);
        assert_int_equal(seen->samples[i].layout.count, expected[i].count);
    }
    assert_int_equal(seen->samples[3].layout.slices, 0);
    assert_int_equal(rig.errors, 0);
    /* Without MIG mode its samples are read again. */
    assert_true(rig.call_count("nvmlDeviceGetProcessUtilization") > 0);
    assert_true(rig.call_count("nvmlGpmSampleGet") > 0);
    close_watched(&rig, seen);
}

/* The driver may give ids and UUIDs again. */
static void an_instance_that_is_made_anew_under_its_uuid_is_found_by_its_size(void **state)
{
    static const char scenario[] =
        "wattribute-trace 3\n"
        "gpu 0 uuid=GPU-0 name=H100 driver=580.159.04 memory_bytes=85520809984\n"
        "1800000000000000 B 0 1 7 132 2 1:0:0:3:3:60:42412802048:3g.40gb:MIG-1 "
        "2:0:1:1:1:16:10737418240:1g.10gb:MIG-2\n"
        "1800000000000000 E 0 1000000\n"
        "1800000003400000 B 0 1 7 132 2 1:0:0:4:4:64:42412802048:4g.40gb:MIG-1 "
        "2:0:1:1:1:16:10737418240:1g.10gb:MIG-2\n"
        "1800000008000000 E 0 2000000\n";
    char path[] = "/tmp/remadeXXXXXX";
    int fd = mkstemp(path);
    struct rig rig;
    struct seen *seen;

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(fs_write_all(fd, scenario, strlen(scenario)), 0);
    close(fd);
    seen = watch(&rig, FAKE_NVML, path, SAMPLE_LAYOUT, 0);
    play(&rig, 6 * SECOND);
    assert_int_equal(seen->count, 2);
    assert_int_equal(seen->samples[1].t_us, START_US + 4 * SECOND);
    assert_string_equal(seen->samples[0].layout.items[0].profile, "3g.40gb");
    assert_string_equal(seen->samples[1].layout.items[0].profile, "4g.40gb");
    assert_int_equal(seen->samples[1].layout.items[0].slices, 4);
    assert_string_equal(seen->samples[1].layout.items[1].profile, "1g.10gb");
    close_watched(&rig, seen);
    unlink(path);
}

/* Between the end of an instance and the next look at the layout its handle is used. */
static void whatever_a_destroyed_instance_answers_its_board_is_read(void **state)
{
    static const int codes[] = {2, 3, 4, 6, 10, 15, 16, 17, 28, 999};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(codes); i++) {
        char path[FILE_PATH_BYTES], lines[128];
        struct rig rig;

        snprintf(lines, sizeof(lines), "0 X 0 monitor off\n0 X 0 destroyed %d\n", codes[i]);
        open_rig(&rig, FAKE_NVML, amend(SCENARIOS "mig-change.trace", lines, path));
        play(&rig, 13 * SECOND);
        assert_int_equal(rig.errors, 0);
        assert_int_equal(rig.unit_count, 1);
        close_rig(&rig);
        unlink(path);
    }
}

static void an_instance_that_is_made_anew_under_its_old_id_begins_a_new_pair_of_samples(
    void **state)
{
    static const char text[] = "wattribute-trace 3\n"
                               "gpu 0 uuid=GPU-0 name=NVIDIA_H100 driver=1 power_limit_mw=700000\n"
                               "1800000000000000 E 0 1000000\n"
                               "1800000000000000 B 0 1 7 132 1 1:0:0:3:3:60:1024:3g.40gb:MIG-1\n"
                               "1800000000000000 R 0 c 1 5:1000:1:0\n"
                               "1800000000000000 G 0 i=1 1=50 2=50\n"
                               "1800000002400000 B 0 1 7 132 1 1:0:0:4:4:64:1024:4g.40gb:MIG-2\n"
                               "1800000010000000 E 0 2000000\n";
    char path[FILE_PATH_BYTES];
    struct rig rig;
    struct seen *seen;

    (void)state;
    file_make(path, text, 0600);
    seen = watch(&rig, FAKE_NVML, path, SAMPLE_GPM, 0);
    play(&rig, 6 * SECOND);
    /* At 1 and 2 s; at 3 s it begins anew; 4 and 5 s. */
    assert_int_equal(seen->count, 4);
    assert_int_equal(seen->samples[1].t_us, START_US + 2 * SECOND);
    assert_int_equal(seen->samples[2].t_us, START_US + 4 * SECOND);
    close_watched(&rig, seen);
    unlink(path);
}

static void a_board_without_mig_is_asked_once_and_has_no_layout(void **state)
{
    char path[FILE_PATH_BYTES];
    struct rig rig;
    struct seen *seen =
        watch(&rig, FAKE_NVML,
              amend(SCENARIOS "time-slicing.trace", "0 X 0 error nvmlDeviceGetMigMode 3\n", path),
              SAMPLE_LAYOUT, 0);

    (void)state;
    play(&rig, 5 * SECOND);
    assert_int_equal(seen->count, 0);
    assert_int_equal(rig.call_count("nvmlDeviceGetMigMode"), 1);
    close_watched(&rig, seen);
    unlink(path);
}

static void a_vgpu_host_lists_its_machines_and_what_each_used(void **state)
{
    static const char *const libraries[] = {FAKE_NVML, FAKE_NVML_LISTS_V2};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(libraries); i++) {
        struct rig rig;
        struct seen *seen =
            watch(&rig, libraries[i], SCENARIOS "vgpu-host.trace", SAMPLE_VGPU_USE, 0);
        size_t count[3] = {0};

        play(&rig, 5 * SECOND);
        for (size_t k = 0; k < seen->count; k++) {
            const struct sample_vgpu_use *use = &seen->samples[k].vgpu_use;

            assert_in_range(use->vgpu, 3251634178, 3251634179);
            count[use->vgpu - 3251634178]++;
            assert_int_equal(use->sm_percent, use->vgpu == 3251634178 ? 60 : 20);
            assert_int_equal(use->memory_percent, 5);
            assert_int_equal(use->encoder_percent, 0);
            assert_int_equal((use->at_us - START_US) % 200000, 0);
        }
        assert_int_equal(count[0], 25); /* each once */
        assert_int_equal(count[1], 25);
        assert_int_equal(rig.errors, 0);
        close_watched(&rig, seen);
    }
}

static void a_machine_that_ends_or_starts_is_seen_within_a_window(void **state)
{
    struct rig rig;
    struct seen *seen = watch(&rig, FAKE_NVML, SCENARIOS "vgpu-host.trace", SAMPLE_VGPUS, 0);
    const struct sample_vgpu *items;

    (void)state;
    play(&rig, 8 * SECOND);
    assert_int_equal(seen->count, 8);
    items = seen->samples[0].vgpus.items;
    assert_int_equal(seen->samples[0].vgpus.count, 2);
    assert_int_equal(items[0].vgpu, 3251634178);
    assert_string_equal(items[0].vm, "0f4f1cbb-7d3d-4a46-8a8f-4e3ba0c0a5a1");
    assert_true(items[0].vm_is_uuid);
    assert_string_equal(items[0].uuid, "9d0a4a52-3f0b-11ef-9f2c-0242ac120002");
    assert_int_equal(items[0].memory_bytes, (uint64_t)4096 << 20);
    assert_int_equal(seen->samples[5].vgpus.count, 1);
    items = seen->samples[7].vgpus.items;
    assert_int_equal(seen->samples[7].vgpus.count, 2);
    assert_string_equal(items[1].vm, "7");
    assert_false(items[1].vm_is_uuid);
    close_watched(&rig, seen);
}

static void a_board_that_is_no_vgpu_host_is_not_asked_for_vgpus(void **state)
{
    struct rig rig;

    (void)state;
    open_rig(&rig, FAKE_NVML, SCENARIOS "time-slicing.trace");
    play(&rig, 5 * SECOND);
    assert_int_equal(rig.call_count("nvmlDeviceGetVirtualizationMode"), 1);
    assert_int_equal(rig.call_count("nvmlDeviceGetActiveVgpus"), 0);
    close_rig(&rig);
}

static void whichever_function_is_missing_a_partitioned_board_is_read(void **state)
{
    static const char *const scenarios[] = {
        SCENARIOS "a100-mig.trace", SCENARIOS "mig-change.trace", SCENARIOS "vgpu-host.trace"};
    char libraries[] = FAKE_NVML_OMITTED;

    (void)state;
    for (char *rest = libraries, *library; (library = strsep(&rest, ":"));)
        for (size_t i = 0; i < ARRAY_SIZE(scenarios); i++) {
            struct rig rig;

            open_rig(&rig, library, scenarios[i]);
            play(&rig, 12 * SECOND);
            assert_int_equal(rig.unit_count, 1);
            assert_int_equal(rig.errors, 0);
            close_rig(&rig);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_layout_has_every_mig_device_and_the_size_of_the_board),
        cmocka_unit_test(the_largest_instance_is_the_board_and_a_name_has_its_extension),
        cmocka_unit_test(the_memory_of_the_board_is_known_if_the_driver_tells_it),
        cmocka_unit_test(processes_are_listed_with_their_instances),
        cmocka_unit_test(without_the_right_to_the_boards_list_those_of_its_devices_are_read),
        cmocka_unit_test(what_mig_takes_away_is_not_asked_for),
        cmocka_unit_test(
            the_layout_costs_a_call_for_each_slot_and_four_for_each_device_in_a_window),
        cmocka_unit_test(gpm_is_read_for_each_instance_as_often_as_it_matters),
        cmocka_unit_test(gpm_begins_with_the_first_process_and_ends_with_the_last),
        cmocka_unit_test(gpm_is_read_where_memory_is_in_use_and_no_process_is_listed),
        cmocka_unit_test(placements_are_read_if_the_driver_tells_them),
        cmocka_unit_test(a_board_without_gpm_has_none_in_its_instances),
        cmocka_unit_test(memory_is_read_once_for_each_gpu_instance),
        cmocka_unit_test(a_change_of_the_layout_is_followed_within_a_window),
        cmocka_unit_test(an_instance_that_is_made_anew_under_its_uuid_is_found_by_its_size),
        cmocka_unit_test(whatever_a_destroyed_instance_answers_its_board_is_read),
        cmocka_unit_test(
            an_instance_that_is_made_anew_under_its_old_id_begins_a_new_pair_of_samples),
        cmocka_unit_test(a_board_without_mig_is_asked_once_and_has_no_layout),
        cmocka_unit_test(a_vgpu_host_lists_its_machines_and_what_each_used),
        cmocka_unit_test(a_machine_that_ends_or_starts_is_seen_within_a_window),
        cmocka_unit_test(a_board_that_is_no_vgpu_host_is_not_asked_for_vgpus),
        cmocka_unit_test(whichever_function_is_missing_a_partitioned_board_is_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
