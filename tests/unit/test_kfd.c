/* sources/amd/kfd, on trees as /sys/class/kfd shows them. */
#include "tree_fixture.h"

#include <pthread.h>
#include <stdlib.h>

#include "sources/amd/kfd.h"

#define NODES "class/kfd/kfd/topology/nodes/"
#define PROC  "class/kfd/kfd/proc/"
#define MIB   ((uint64_t)1 << 20)

enum { GPU = 51140, OTHER_GPU = 28851 };
enum { SEEN_MAX = 8 };

/* Abridged from Linux 6.8. */
static const char mi210[] = "cpu_cores_count 0\n"
                            "simd_count 416\n"
                            "mem_banks_count 1\n"
                            "max_waves_per_simd 8\n"
                            "array_count 8\n"
                            "cu_per_simd_array 16\n"
                            "simd_per_cu 4\n"
                            "gfx_target_version 90010\n"
                            "vendor_id 4098\n"
                            "device_id 29711\n"
                            "location_id 6400\n"
                            "domain 0\n"
                            "drm_render_minor 128\n"
                            "hive_id 0\n"
                            "num_sdma_engines 2\n"
                            "unique_id 12249793158921834217\n"
                            "num_xcc 1\n"
                            "max_engine_clk_ccompute 3500\n";

static const char cpu[] = "cpu_cores_count 64\n"
                          "simd_count 0\n"
                          "simd_per_cu 0\n"
                          "location_id 0\n"
                          "domain 0\n"
                          "drm_render_minor 0\n"
                          "max_engine_clk_ccompute 3500\n";

struct tree {
    char path[40];
    int fd;
};

static int set_up(void **state)
{
    struct tree *tree = calloc(1, sizeof(*tree));

    if (!tree)
        return -1;
    strcpy(tree->path, "/tmp/test_kfd.XXXXXX");
    if (!mkdtemp(tree->path))
        return -1;
    tree->fd = open(tree->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    *state = tree;
    return 0;
}

static int tear_down(void **state)
{
    struct tree *tree = *state;

    close(tree->fd);
    tree_remove(tree->path, "");
    free(tree);
    return 0;
}

static void PRINTF(3, 4)
    write_file(const struct tree *tree, const char *text, const char *format, ...)
{
    char path[256];
    va_list args;

    va_start(args, format);
    vsnprintf(path, sizeof(path), format, args);
    va_end(args);
    tree_write(tree->path, path, text);
}

static void write_generation(const struct tree *tree, const char *generation)
{
    write_file(tree, generation, "class/kfd/kfd/topology/generation_id");
}

static void write_node(const struct tree *tree, unsigned number, unsigned gpu_id,
                       const char *properties)
{
    char text[32];

    snprintf(text, sizeof(text), "%u\n", gpu_id);
    write_file(tree, text, NODES "%u/gpu_id", number);
    write_file(tree, properties, NODES "%u/properties", number);
}

static void write_queue(const struct tree *tree, const char *process, unsigned number,
                        unsigned gpu_id, const char *type)
{
    char text[32];

    snprintf(text, sizeof(text), "%u", gpu_id);
    write_file(tree, text, PROC "%s/queues/%u/gpuid", process, number);
    write_file(tree, type, PROC "%s/queues/%u/type", process, number);
    write_file(tree, "16384", PROC "%s/queues/%u/size", process, number);
}

/* `process` is a pid, or one with a context. */
static void write_process(const struct tree *tree, const char *process, unsigned gpu_id,
                          const char *vram, const char *sdma, const char *evicted,
                          const char *occupancy)
{
    write_file(tree, vram, PROC "%s/vram_%u", process, gpu_id);
    write_file(tree, sdma, PROC "%s/sdma_%u", process, gpu_id);
    write_file(tree, evicted, PROC "%s/stats_%u/evicted_ms", process, gpu_id);
    if (occupancy)
        write_file(tree, occupancy, PROC "%s/stats_%u/cu_occupancy", process, gpu_id);
    write_file(tree, "0\n", PROC "%s/pasid", process);
}

/* The visits, in order of the pid. */
struct seen {
    struct kfd_usage usages[SEEN_MAX];
    size_t count;
    size_t max; /* it ends the visits */
};

static int see(void *context, const struct kfd_usage *usage)
{
    struct seen *seen = context;
    size_t i = seen->count++;

    assert_true(i < SEEN_MAX);
    for (; i > 0 && seen->usages[i - 1].pid > usage->pid; i--)
        seen->usages[i] = seen->usages[i - 1];
    seen->usages[i] = *usage;
    return seen->count == seen->max ? -ECANCELED : 1;
}

static struct seen visit(const struct tree *tree, uint32_t gpu_id, bool with_occupancy)
{
    struct seen seen = {.count = 0};

    assert_int_equal(kfd_each_process(tree->fd, gpu_id, with_occupancy, see, &seen), 0);
    return seen;
}

static void properties_give_the_address_the_render_node_and_the_size(void **state)
{
    static const struct {
        const char *text;
        struct kfd_node node;
    } cases[] = {
        {mi210, {0, "0000:19:00.0", true, 128, 104, 12249793158921834217ULL}},
        {cpu, {0, "0000:00:00.0", false, 0, 0, 0}},
        /* A partition's number in the place of the function, or above the bus. */
        {"location_id 1285\n", {0, "0000:05:00.0", false, 0, 0, 0}},
        {"location_id 1879049472\n", {0, "0000:05:00.0", false, 0, 0, 0}},
        {"location_id 65528\ndomain 65536\n", {0, "10000:ff:1f.0", false, 0, 0, 0}},
        {"location_id 4294967295\ndomain 4294967295", {0, "ffffffff:ff:1f.0", false, 0, 0, 0}},
        {"location_id 1280\ndrm_render_minor 127\n", {0, "0000:05:00.0", false, 0, 0, 0}},
        {"location_id 1280\ndrm_render_minor 4294967295\n", {0, "0000:05:00.0", false, 0, 0, 0}},
        {"location_id 1280\ndrm_render_minor 300\n", {0, "0000:05:00.0", true, 300, 0, 0}},
        /* What is malformed is unknown. */
        {"location_id 1280\nsimd_count 304\nsimd_per_cu 0\nunique_id 0xff\n",
         {0, "0000:05:00.0", false, 0, 0, 0}},
        {"location_id 1280\nsimd_count -1\nsimd_per_cu 4\nunique_id 18446744073709551616\n",
         {0, "0000:05:00.0", false, 0, 0, 0}},
        {"location_id 1280\nlocation_id \nlocation_id 1 2\n", {0, "0000:05:00.0", false, 0, 0, 0}},
        {"\n \nlocation_id_x 4\nlocation_id 1280\nlocation_id 2560\n",
         {0, "0000:0a:00.0", false, 0, 0, 0}},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct kfd_node node;

        assert_int_equal(kfd_parse_properties(span_of(cases[i].text), &node), 0);
        assert_int_equal(node.gpu_id, 0);
        assert_string_equal(node.pci, cases[i].node.pci);
        assert_int_equal(node.has_render, cases[i].node.has_render);
        assert_int_equal(node.render_minor, cases[i].node.render_minor);
        assert_int_equal(node.compute_units, cases[i].node.compute_units);
        assert_int_equal(node.unique_id, cases[i].node.unique_id);
    }
}

static void properties_without_an_address_are_refused(void **state)
{
    static const char *const cases[] = {
        "",
        "simd_count 416\ndomain 0\n",
        "location_id\n",
        "location_id \n",
        "location_id  1280\n",
        "location_id 4294967296\n",
        "location_id 12x\n",
        "location_id\t1280\n",
        " location_id 1280\n",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct kfd_node node = {.gpu_id = 77};

        assert_int_equal(kfd_parse_properties(span_of(cases[i]), &node), -EINVAL);
        assert_int_equal(node.gpu_id, 77);
    }
}

static void a_machine_without_kfd_has_none(void **state)
{
    const struct tree *tree = *state;
    struct kfd_topology topology = {.count = 77};
    struct seen seen = {.count = 0};
    uint64_t generation = 77;

    assert_int_equal(kfd_read_topology(tree->fd, &topology), -ENODEV);
    assert_int_equal(kfd_read_generation(tree->fd, &generation), -ENODEV);
    assert_int_equal(kfd_each_process(tree->fd, GPU, true, see, &seen), -ENODEV);
    assert_int_equal(topology.count, 77);
    assert_int_equal(generation, 77);
    /* The module is being unloaded. */
    write_generation(tree, "3\n");
    assert_int_equal(kfd_read_topology(tree->fd, &topology), -ENODEV);
    write_generation(tree, "three\n");
    assert_int_equal(kfd_read_generation(tree->fd, &generation), -EINVAL);
}

static void cpus_are_left_out_of_the_topology(void **state)
{
    const struct tree *tree = *state;
    struct kfd_topology topology;
    uint64_t generation;

    write_generation(tree, "3\n");
    write_node(tree, 0, 0, cpu);
    write_node(tree, 1, 0, cpu);
    write_node(tree, 2, GPU, mi210);
    assert_int_equal(kfd_read_topology(tree->fd, &topology), 0);
    assert_int_equal(topology.generation, 3);
    assert_int_equal(topology.count, 1);
    assert_int_equal(topology.nodes[0].gpu_id, GPU);
    assert_string_equal(topology.nodes[0].pci, "0000:19:00.0");
    assert_int_equal(kfd_read_generation(tree->fd, &generation), 0);
    assert_int_equal(generation, 3);
}

/* An MI300X: 304 compute units at 0000:05:00.0, whole or in eight parts. */
static void write_mi300x(const struct tree *tree, unsigned partitions, unsigned location_shift)
{
    for (unsigned i = 0; i < partitions; i++) {
        char text[256];

        snprintf(text, sizeof(text),
                 "simd_count %u\nsimd_per_cu 4\nlocation_id %u\ndomain 0\ndrm_render_minor %u\n"
                 "unique_id %u\n",
                 1216 / partitions, 5U << 8 | i << location_shift, 128 + i, 1000 + i);
        write_node(tree, 2 + i, 40000 + i, text);
    }
}

static void a_whole_mi300x_is_one_node(void **state)
{
    const struct tree *tree = *state;
    struct kfd_topology topology;

    write_generation(tree, "3\n");
    write_node(tree, 0, 0, cpu);
    write_mi300x(tree, 1, 28);
    assert_int_equal(kfd_read_topology(tree->fd, &topology), 0);
    assert_int_equal(topology.count, 1);
    assert_int_equal(topology.nodes[0].compute_units, 304);
    assert_string_equal(topology.nodes[0].pci, "0000:05:00.0");
}

static void partitions_of_a_board_share_its_address(void **state)
{
    static const unsigned location_shifts[] = {0, 28};
    const struct tree *tree = *state;

    write_generation(tree, "3\n");
    write_node(tree, 0, 0, cpu);
    for (size_t i = 0; i < ARRAY_SIZE(location_shifts); i++) {
        struct kfd_topology topology;

        write_mi300x(tree, 8, location_shifts[i]);
        assert_int_equal(kfd_read_topology(tree->fd, &topology), 0);
        assert_int_equal(topology.count, 8);
        for (unsigned k = 0; k < 8; k++) {
            assert_string_equal(topology.nodes[k].pci, "0000:05:00.0");
            assert_int_equal(topology.nodes[k].gpu_id, 40000 + k);
            assert_true(topology.nodes[k].has_render);
            assert_int_equal(topology.nodes[k].render_minor, 128 + k);
            assert_int_equal(topology.nodes[k].compute_units, 38);
            assert_int_equal(topology.nodes[k].unique_id, 1000 + k);
        }
    }
}

static void nodes_that_cannot_be_read_are_left_out(void **state)
{
    const struct tree *tree = *state;
    struct kfd_topology topology;

    write_generation(tree, "3\n");
    write_node(tree, 10, GPU, mi210);
    write_node(tree, 2, OTHER_GPU, mi210);
    write_file(tree, "1\n", NODES "3/gpu_id");          /* without properties */
    write_file(tree, mi210, NODES "4/properties");      /* without an id */
    write_node(tree, 5, 7, "simd_count 416\n");         /* without an address */
    write_file(tree, "", NODES "6/gpu_id");             /* empty */
    write_file(tree, "4294967296\n", NODES "7/gpu_id"); /* too large */
    write_file(tree, "12\n13\n", NODES "8/gpu_id");     /* two */
    write_file(tree, mi210, NODES "8/properties");
    write_file(tree, "1\n", NODES "x9/gpu_id"); /* no numbers: */
    write_file(tree, mi210, NODES "x9/properties");
    write_file(tree, "1\n", NODES "09/gpu_id");
    write_file(tree, mi210, NODES "09/properties");
    write_file(tree, "1\n", NODES "99999999999/gpu_id");
    write_file(tree, mi210, NODES "99999999999/properties");
    assert_int_equal(kfd_read_topology(tree->fd, &topology), 0);
    assert_int_equal(topology.count, 2);
    assert_int_equal(topology.nodes[0].gpu_id, OTHER_GPU);
    assert_int_equal(topology.nodes[1].gpu_id, GPU);
}

static void nodes_that_do_not_fit_are_left_out(void **state)
{
    const struct tree *tree = *state;
    struct kfd_topology topology;

    write_generation(tree, "3\n");
    for (unsigned i = 0; i < KFD_NODES_MAX + 4; i++)
        write_node(tree, i, i, mi210);
    assert_int_equal(kfd_read_topology(tree->fd, &topology), 0);
    assert_int_equal(topology.count, KFD_NODES_MAX);
    assert_int_equal(topology.nodes[KFD_NODES_MAX - 1].gpu_id, KFD_NODES_MAX);
}

/* Changes the topology while it is read: properties are a pipe, which blocks its reader until the
 * next generation is there. A pipe is used once, so that no writer meets an old reader. */
struct changes {
    const struct tree *tree;
    unsigned count; /* of generations, from 2 on */
};

#define CHANGING NODES "2/properties"

static void make_pipe(const struct tree *tree)
{
    unlinkat(tree->fd, CHANGING, 0);
    assert_int_equal(mkfifoat(tree->fd, CHANGING, 0600), 0);
}

static void *change(void *argument)
{
    const struct changes *changes = argument;
    const struct tree *tree = changes->tree;

    for (unsigned i = 0; i < changes->count; i++) {
        _cleanup_close_ int fd = openat(tree->fd, CHANGING, O_WRONLY | O_CLOEXEC);
        char text[32];

        snprintf(text, sizeof(text), "%u\n", i + 2);
        write_generation(tree, text);
        make_pipe(tree);
        if (i + 1 == changes->count) {
            unlinkat(tree->fd, CHANGING, 0);
            write_node(tree, 2, OTHER_GPU, mi210);
        }
        assert_int_equal(write(fd, mi210, strlen(mi210)), strlen(mi210));
    }
    return NULL;
}

static int read_changing(const struct tree *tree, unsigned count, struct kfd_topology *ret_topology)
{
    struct changes changes = {.tree = tree, .count = count};
    pthread_t thread;
    int r;

    write_generation(tree, "1\n");
    write_node(tree, 2, GPU, mi210);
    make_pipe(tree);
    assert_int_equal(pthread_create(&thread, NULL, change, &changes), 0);
    r = kfd_read_topology(tree->fd, ret_topology);
    assert_int_equal(pthread_join(thread, NULL), 0);
    return r;
}

static void a_topology_that_changes_is_read_again(void **state)
{
    const struct tree *tree = *state;
    struct kfd_topology topology;

    for (unsigned changes = 1; changes < 4; changes++) {
        assert_int_equal(read_changing(tree, changes, &topology), 0);
        assert_int_equal(topology.generation, changes + 1);
        assert_int_equal(topology.count, 1);
        assert_int_equal(topology.nodes[0].gpu_id, OTHER_GPU);
    }
}

static void a_topology_that_keeps_changing_is_given_up(void **state)
{
    const struct tree *tree = *state;
    struct kfd_topology topology = {.count = 77};

    assert_int_equal(read_changing(tree, 4, &topology), -EAGAIN);
    assert_int_equal(topology.count, 77);
    assert_int_equal(kfd_read_topology(tree->fd, &topology), 0);
    assert_int_equal(topology.generation, 5);
}

static void processes_have_memory_copies_evictions_and_queues(void **state)
{
    const struct tree *tree = *state;
    struct seen seen;

    write_process(tree, "4242", GPU, "1073741824\n", "1500\n", "20\n", "12\n");
    write_queue(tree, "4242", 0, GPU, "0");
    write_process(tree, "777", GPU, "4096\n", "0\n", "0\n", NULL);
    write_queue(tree, "777", 0, OTHER_GPU, "0");
    write_queue(tree, "777", 1, GPU, "1"); /* copies */
    seen = visit(tree, GPU, true);
    assert_int_equal(seen.count, 2);
    assert_int_equal(seen.usages[0].pid, 777);
    assert_int_equal(seen.usages[0].vram_bytes, 4096);
    assert_true(seen.usages[0].has_sdma && seen.usages[0].has_evicted);
    assert_false(seen.usages[0].has_occupancy);
    assert_false(seen.usages[0].has_queues);
    assert_int_equal(seen.usages[1].pid, 4242);
    assert_true(seen.usages[1].has_memory);
    assert_int_equal(seen.usages[1].vram_bytes, 1024 * MIB);
    assert_true(seen.usages[1].has_sdma);
    assert_int_equal(seen.usages[1].sdma_us, 1500);
    assert_true(seen.usages[1].has_evicted);
    assert_int_equal(seen.usages[1].evicted_ms, 20);
    assert_true(seen.usages[1].has_occupancy);
    assert_int_equal(seen.usages[1].compute_units, 12);
    assert_true(seen.usages[1].has_queues);
}

static void occupancy_is_read_on_demand_only(void **state)
{
    const struct tree *tree = *state;
    struct seen seen;

    write_process(tree, "4242", GPU, "0\n", "0\n", "0\n", "12\n");
    seen = visit(tree, GPU, false);
    assert_int_equal(seen.count, 1);
    assert_false(seen.usages[0].has_occupancy);
    assert_int_equal(seen.usages[0].compute_units, 0);
    assert_false(seen.usages[0].has_queues);
}

static void what_occupies_compute_units_has_a_queue(void **state)
{
    const struct tree *tree = *state;

    write_process(tree, "4242", GPU, "0\n", "0\n", "0\n", "12\n");
    assert_true(visit(tree, GPU, true).usages[0].has_queues);
}

static void queues_count_also_while_nothing_runs(void **state)
{
    const struct tree *tree = *state;

    write_process(tree, "4242", GPU, "0\n", "0\n", "0\n", "0\n");
    write_file(tree, "", PROC "4242/queues/none");
    assert_false(visit(tree, GPU, true).usages[0].has_queues);
    for (unsigned i = 0; i < 20; i++)
        write_queue(tree, "4242", i, i < 18 ? OTHER_GPU : GPU, i == 19 ? "0" : "4");
    assert_true(visit(tree, GPU, true).usages[0].has_queues);
    assert_true(visit(tree, GPU, false).usages[0].has_queues);
    tree_remove(tree->path, PROC "4242/queues/19");
    assert_false(visit(tree, GPU, true).usages[0].has_queues);
}

static void partitions_have_processes_of_their_own(void **state)
{
    const struct tree *tree = *state;
    struct seen seen;

    /* All in one container, or in two that each have one partition. */
    write_process(tree, "10", 40000, "5\n", "0\n", "0\n", "1\n");
    write_process(tree, "10", 40001, "0\n", "0\n", "0\n", "0\n");
    write_process(tree, "11", 40001, "6\n", "0\n", "0\n", "2\n");
    seen = visit(tree, 40000, true);
    assert_int_equal(seen.count, 1);
    assert_int_equal(seen.usages[0].vram_bytes, 5);
    seen = visit(tree, 40001, true);
    assert_int_equal(seen.count, 2);
    assert_int_equal(seen.usages[0].vram_bytes, 0);
    assert_int_equal(seen.usages[1].vram_bytes, 6);
    assert_int_equal(visit(tree, 4000, true).count, 0);
}

static void contexts_are_added_to_their_process(void **state)
{
    const struct tree *tree = *state;
    struct seen seen;

    write_process(tree, "4242", GPU, "100\n", "10\n", "1\n", "4\n");
    write_process(tree, "4242/context_0", GPU, "200\n", "20\n", "2\n", "0\n");
    write_process(tree, "4242/context_17", GPU, "400\n", "40\n", "4\n", "8\n");
    write_process(tree, "4242/context_18", OTHER_GPU, "800\n", "80\n", "8\n", "8\n");
    write_process(tree, "4242/context_", GPU, "1\n", "1\n", "1\n", "1\n");
    write_process(tree, "4242/context_x", GPU, "1\n", "1\n", "1\n", "1\n");
    write_process(tree, "4242/contexts", GPU, "1\n", "1\n", "1\n", "1\n");
    write_file(tree, "", PROC "4242/context_5");
    write_queue(tree, "4242/context_0", 3, GPU, "0");
    seen = visit(tree, GPU, true);
    assert_int_equal(seen.count, 1);
    assert_int_equal(seen.usages[0].vram_bytes, 700);
    assert_int_equal(seen.usages[0].sdma_us, 70);
    assert_int_equal(seen.usages[0].evicted_ms, 7);
    assert_int_equal(seen.usages[0].compute_units, 12);
    assert_true(visit(tree, GPU, false).usages[0].has_queues);
    /* Its first context has nothing on this GPU. */
    seen = visit(tree, OTHER_GPU, true);
    assert_int_equal(seen.count, 1);
    assert_int_equal(seen.usages[0].vram_bytes, 800);
}

static void sums_are_saturated(void **state)
{
    const struct tree *tree = *state;
    static const char huge[] = "18446744073709551615\n";
    struct seen seen;

    write_process(tree, "4242", GPU, huge, huge, huge, "4294967295\n");
    write_process(tree, "4242/context_0", GPU, huge, "1\n", "1\n", "2\n");
    seen = visit(tree, GPU, true);
    assert_int_equal(seen.usages[0].vram_bytes, UINT64_MAX);
    assert_int_equal(seen.usages[0].sdma_us, UINT64_MAX);
    assert_int_equal(seen.usages[0].evicted_ms, UINT64_MAX);
    assert_int_equal(seen.usages[0].compute_units, UINT32_MAX);
}

static void what_vanished_or_is_malformed_is_absent(void **state)
{
    const struct tree *tree = *state;
    struct seen seen;

    write_process(tree, "1", GPU, "100\n", "-1\n", "\n", "4294967296\n");
    write_process(tree, "2", GPU, "many\n", "18446744073709551616\n", "7", "3");
    write_process(tree, "3", GPU, "100\n", "10\n", "1\n", "4\n");
    tree_remove(tree->path, PROC "3/vram_51140");
    assert_int_equal(symlinkat("gone", tree->fd, PROC "3/vram_51140"), 0);
    write_process(tree, "4", GPU, "100\n", "10\n", "1\n", NULL);
    tree_remove(tree->path, PROC "4/sdma_51140");
    tree_remove(tree->path, PROC "4/stats_51140");
    write_file(tree, "0\n", PROC "5/pasid");
    assert_int_equal(symlinkat("4", tree->fd, PROC "6"), 0);
    write_file(tree, "51140", PROC "4/queues/0/gpuid"); /* without a type */
    seen = visit(tree, GPU, true);
    assert_int_equal(seen.count, 3);
    assert_int_equal(seen.usages[0].pid, 1);
    assert_int_equal(seen.usages[0].vram_bytes, 100);
    assert_false(seen.usages[0].has_sdma || seen.usages[0].has_evicted);
    assert_false(seen.usages[0].has_occupancy || seen.usages[0].has_queues);
    assert_int_equal(seen.usages[1].pid, 2);
    assert_false(seen.usages[1].has_memory || seen.usages[1].has_sdma);
    assert_int_equal(seen.usages[1].evicted_ms, 7);
    assert_int_equal(seen.usages[1].compute_units, 3);
    assert_int_equal(seen.usages[2].pid, 4);
    assert_true(seen.usages[2].has_memory);
    assert_false(seen.usages[2].has_sdma || seen.usages[2].has_evicted);
    assert_false(seen.usages[2].has_queues);
}

static void only_pids_are_processes(void **state)
{
    static const char *const names[] = {"self", "0",          "007", "-1",        "+1",
                                        "1x",   "4294967297", " 5",  "2147483648"};
    const struct tree *tree = *state;
    struct seen seen;

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        write_process(tree, names[i], GPU, "1\n", "1\n", "1\n", "1\n");
    write_file(tree, "1\n", PROC "8");
    write_process(tree, "9", GPU, "1\n", "1\n", "1\n", "1\n");
    write_process(tree, "2147483647", GPU, "1\n", "1\n", "1\n", "1\n");
    seen = visit(tree, GPU, true);
    assert_int_equal(seen.count, 2);
    assert_int_equal(seen.usages[0].pid, 9);
    assert_int_equal(seen.usages[1].pid, INT32_MAX);
}

static void a_visitor_can_end_the_visits(void **state)
{
    const struct tree *tree = *state;
    struct seen seen = {.max = 2};

    for (unsigned i = 1; i < 6; i++) {
        char pid[16];

        snprintf(pid, sizeof(pid), "%u", i);
        write_process(tree, pid, GPU, "1\n", "1\n", "1\n", NULL);
    }
    assert_int_equal(kfd_each_process(tree->fd, GPU, false, see, &seen), -ECANCELED);
    assert_int_equal(seen.count, 2);
}

static int count_visit(void *context, const struct kfd_usage *usage)
{
    (void)usage;
    ++*(size_t *)context;
    return 0;
}

static void processes_have_a_limit(void **state)
{
    const struct tree *tree = *state;
    size_t count = 0;

    write_process(tree, "1", GPU, "1\n", "1\n", "1\n", NULL);
    for (unsigned i = 2; i <= KFD_PROCESSES_MAX + 3; i++) {
        char path[64];

        snprintf(path, sizeof(path), PROC "%u", i);
        assert_int_equal(mkdirat(tree->fd, path, 0755), 0);
        snprintf(path, sizeof(path), PROC "%u/vram_%u", i, (unsigned)GPU);
        assert_int_equal(linkat(tree->fd, PROC "1/vram_51140", tree->fd, path, 0), 0);
    }
    assert_int_equal(kfd_each_process(tree->fd, GPU, false, count_visit, &count), 0);
    assert_int_equal(count, KFD_PROCESSES_MAX);
}

#define tree_test(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(properties_give_the_address_the_render_node_and_the_size),
        cmocka_unit_test(properties_without_an_address_are_refused),
        tree_test(a_machine_without_kfd_has_none),
        tree_test(cpus_are_left_out_of_the_topology),
        tree_test(a_whole_mi300x_is_one_node),
        tree_test(partitions_of_a_board_share_its_address),
        tree_test(nodes_that_cannot_be_read_are_left_out),
        tree_test(nodes_that_do_not_fit_are_left_out),
        tree_test(a_topology_that_changes_is_read_again),
        tree_test(a_topology_that_keeps_changing_is_given_up),
        tree_test(processes_have_memory_copies_evictions_and_queues),
        tree_test(occupancy_is_read_on_demand_only),
        tree_test(what_occupies_compute_units_has_a_queue),
        tree_test(queues_count_also_while_nothing_runs),
        tree_test(partitions_have_processes_of_their_own),
        tree_test(contexts_are_added_to_their_process),
        tree_test(sums_are_saturated),
        tree_test(what_vanished_or_is_malformed_is_absent),
        tree_test(only_pids_are_processes),
        tree_test(a_visitor_can_end_the_visits),
        tree_test(processes_have_a_limit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
