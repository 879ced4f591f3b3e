/* sources/drm/clients: who has a card open, and for how long each of them kept it busy. */
#include "tree_fixture.h"

#include <inttypes.h>
#include <stdlib.h>

#include "core/clock.h"
#include "sources/drm/clients.h"

#include <signal.h>

#define CARD   "0000:03:00.0"
#define RENDER "/dev/dri/renderD128"

static const uint64_t SECOND = USEC_PER_SEC, STEP = USEC_PER_SEC / 10;

struct node {
    char path[40];
    struct host host;
    struct drm_files files;
    struct drm_clients clients;
    uint64_t mono_us;
};

static int set_up(void **state)
{
    struct node *node = calloc(1, sizeof(*node));

    if (!node)
        return -1;
    strcpy(node->path, "/dev/shm/test_clients.XXXXXX");
    if (!mkdtemp(node->path))
        return -1;
    chmod(node->path, 0755);
    node->host = (struct host){.procfs_fd = open(node->path, O_PATH | O_DIRECTORY | O_CLOEXEC),
                               .sysfs_fd = -1,
                               .rootfs_fd = -1};
    node->mono_us = SECOND;
    drm_files_init(&node->files, &node->host);
    drm_clients_init(&node->clients, &node->files);
    drm_clients_add_card(&node->clients, CARD);
    *state = node;
    return 0;
}

static int tear_down(void **state)
{
    struct node *node = *state;

    drm_clients_done(&node->clients);
    drm_files_done(&node->files);
    close(node->host.procfs_fd);
    tree_remove(node->path, "");
    free(node);
    return 0;
}

/* A descriptor that leads to `target`. The directory of a tmpfs grows with each, as that of procfs
 * does. */
static void open_file(const struct node *node, unsigned pid, unsigned fd, const char *target)
{
    char path[96];

    snprintf(path, sizeof(path), "%u/fd/made", pid);
    tree_write(node->path, path, "");
    snprintf(path, sizeof(path), "%s/%u/fd/%u", node->path, pid, fd);
    (void)unlink(path);
    assert_int_equal(symlink(target, path), 0);
}

static void close_file(const struct node *node, unsigned pid, unsigned fd)
{
    char path[64];

    snprintf(path, sizeof(path), "%u/fd/%u", pid, fd);
    tree_remove(node->path, path);
    snprintf(path, sizeof(path), "%u/fdinfo/%u", pid, fd);
    tree_remove(node->path, path);
}

/* What the driver shows of a client: `engines` is the rest of it. */
static void show(const struct node *node, unsigned pid, unsigned fd, unsigned id,
                 const char *engines)
{
    char path[64], text[1024];

    snprintf(path, sizeof(path), "%u/fdinfo/%u", pid, fd);
    snprintf(text, sizeof(text),
             "pos:\t0\ndrm-driver:\txe\ndrm-client-id:\t%u\ndrm-pdev:\t" CARD
             "\ndrm-resident-vram0:\t%u KiB\n%s",
             id, id, engines);
    tree_write(node->path, path, text);
}

static void show_render_ms(const struct node *node, unsigned pid, unsigned fd, unsigned id,
                           uint64_t ms)
{
    char engine[64];

    snprintf(engine, sizeof(engine), "drm-engine-rcs:\t%" PRIu64 " ns\n", ms * 1000000);
    show(node, pid, fd, id, engine);
}

static void look(struct node *node, uint64_t elapsed_us)
{
    node->mono_us += elapsed_us;
    drm_clients_look(&node->clients, STEP, node->mono_us);
}

struct uses {
    struct drm_use all[8];
    size_t count;
};

static void add_use(void *context, const struct drm_use *use)
{
    struct uses *uses = context;

    assert_true(uses->count < ARRAY_SIZE(uses->all));
    uses->all[uses->count++] = *use;
}

static struct uses visit(struct node *node)
{
    struct uses uses = {.count = 0};

    drm_clients_visit(&node->clients, CARD, add_use, &uses);
    return uses;
}

static void add_busy_use(void *context, const struct drm_use *use)
{
    if (use->busy_us > 0)
        add_use(context, use);
}

/* Those that have worked since they were last visited. */
static struct uses visit_busy(struct node *node)
{
    struct uses uses = {.count = 0};

    drm_clients_visit(&node->clients, CARD, add_busy_use, &uses);
    return uses;
}

static void expect_one(struct node *node, uint32_t pid, uint64_t busy_us)
{
    struct uses uses = visit(node);

    assert_int_equal(uses.count, 1);
    assert_int_equal(uses.all[0].pid, pid);
    assert_int_equal(uses.all[0].busy_us, busy_us);
}

static void what_was_done_before_the_first_look_is_not_counted(void **state)
{
    struct node *node = *state;

    open_file(node, 7, 3, RENDER);
    show_render_ms(node, 7, 3, 1, 5000);
    look(node, 0);
    expect_one(node, 7, 0);
    show_render_ms(node, 7, 3, 1, 5400);
    look(node, SECOND);
    expect_one(node, 7, 400000);
    look(node, SECOND);
    expect_one(node, 7, 0); /* each microsecond is told once */
}

static void a_client_is_as_busy_as_its_busiest_engine(void **state)
{
    struct node *node = *state;

    open_file(node, 7, 3, RENDER);
    show(node, 7, 3, 1, "drm-engine-rcs:\t0 ns\ndrm-engine-bcs:\t0 ns\n");
    look(node, 0);
    show(node, 7, 3, 1, "drm-engine-rcs:\t300000000 ns\ndrm-engine-bcs:\t700000000 ns\n");
    look(node, SECOND);
    expect_one(node, 7, 700000);
    /* Four engines of a kind, of which it kept two busy. */
    show(node, 7, 3, 1,
         "drm-engine-rcs:\t300000000 ns\ndrm-engine-bcs:\t700000000 ns\n"
         "drm-engine-ccs:\t2000000000 ns\ndrm-engine-capacity-ccs:\t4\n");
    look(node, SECOND);
    expect_one(node, 7, 500000);
}

static void cycles_count_as_their_part_of_all_cycles(void **state)
{
    struct node *node = *state;

    open_file(node, 7, 3, RENDER);
    show(node, 7, 3, 1, "drm-cycles-rcs:\t100\ndrm-total-cycles-rcs:\t5000\n");
    look(node, 0);
    show(node, 7, 3, 1, "drm-cycles-rcs:\t350\ndrm-total-cycles-rcs:\t6000\n");
    look(node, 2 * SECOND);
    expect_one(node, 7, 500000);
    show(node, 7, 3, 1, "drm-cycles-rcs:\t900\ndrm-total-cycles-rcs:\t6000\n");
    look(node, SECOND);
    expect_one(node, 7, 0); /* of none that passed */
    show(node, 7, 3, 1, "drm-cycles-rcs:\t900\ndrm-total-cycles-rcs:\t100\n");
    look(node, SECOND); /* the GPU slept, and its clock began anew */
    expect_one(node, 7, 0);
    show(node, 7, 3, 1, "drm-cycles-rcs:\t1400\ndrm-total-cycles-rcs:\t1100\n");
    look(node, SECOND);
    expect_one(node, 7, 500000);
}

static void nobody_worked_longer_than_it_took(void **state)
{
    struct node *node = *state;

    open_file(node, 7, 3, RENDER);
    show_render_ms(node, 7, 3, 1, 0);
    look(node, 0);
    show_render_ms(node, 7, 3, 1, 3600 * 1000);
    look(node, SECOND);
    expect_one(node, 7, SECOND);
}

static void counts_that_go_back_are_no_work_until_they_are_past_where_they_were(void **state)
{
    struct node *node = *state;

    open_file(node, 7, 3, RENDER);
    show_render_ms(node, 7, 3, 1, 1000);
    look(node, 0);
    show_render_ms(node, 7, 3, 1, 400);
    look(node, SECOND);
    expect_one(node, 7, 0);
    show_render_ms(node, 7, 3, 1, 900);
    look(node, SECOND);
    expect_one(node, 7, 0);
    show_render_ms(node, 7, 3, 1, 1100);
    look(node, SECOND);
    expect_one(node, 7, 100000);
}

static void a_descriptor_that_was_passed_on_is_one_client_and_counts_once(void **state)
{
    struct node *node = *state;

    for (unsigned pid = 7; pid <= 8; pid++) {
        open_file(node, pid, 3, RENDER);
        show_render_ms(node, pid, 3, 1, 1000);
    }
    look(node, 0);
    expect_one(node, 8, 0); /* the younger one: the other may have opened it for it */
    for (unsigned pid = 7; pid <= 8; pid++)
        show_render_ms(node, pid, 3, 1, 1300);
    look(node, SECOND);
    expect_one(node, 8, 300000);
    /* The other one is left with it, and nothing is lost or told twice. */
    close_file(node, 8, 3);
    show_render_ms(node, 7, 3, 1, 1500);
    look(node, SECOND);
    expect_one(node, 7, 200000);
}

/* /proc/PID/fd is empty then. */
static void a_process_whose_first_thread_has_exited_is_found_by_another(void **state)
{
    struct node *node = *state;
    char path[96];

    open_file(node, 7, 3, RENDER);
    show_render_ms(node, 7, 3, 1, 0);
    look(node, 0);
    expect_one(node, 7, 0);
    for (unsigned i = 0; i < 2; i++) {
        snprintf(path, sizeof(path), "%s/7/%s", node->path, i == 0 ? "task" : "task/9");
        assert_int_equal(mkdir(path, 0755), 0);
    }
    for (unsigned i = 0; i < 2; i++) {
        static const char *const names[] = {"fd", "fdinfo"};
        char to[96];

        snprintf(path, sizeof(path), "%s/7/%s", node->path, names[i]);
        snprintf(to, sizeof(to), "%s/7/task/9/%s", node->path, names[i]);
        assert_int_equal(rename(path, to), 0);
        assert_int_equal(mkdir(path, 0755), 0);
    }
    tree_write(node->path, "7/task/9/fdinfo/3",
               "drm-driver:\txe\ndrm-client-id:\t1\ndrm-pdev:\t" CARD
               "\ndrm-engine-rcs:\t600000000 ns\n");
    look(node, SECOND);
    expect_one(node, 7, 600000);
    look(node, SECOND);
    expect_one(node, 7, 0); /* found again, where it was */
    assert_false(drm_clients_are_partial(&node->clients, node->mono_us));
}

static void nobody_hides_behind_clients_that_do_nothing(void **state)
{
    enum { IDLE_CLIENTS = 300 };
    struct node *node = *state;
    struct uses uses;

    for (unsigned i = 0; i < IDLE_CLIENTS; i++) {
        open_file(node, 7, 3 + i, RENDER);
        show_render_ms(node, 7, 3 + i, 1 + i, 0);
    }
    open_file(node, 7, 3 + IDLE_CLIENTS, RENDER);
    show_render_ms(node, 7, 3 + IDLE_CLIENTS, 1 + IDLE_CLIENTS, 1000);
    look(node, 0);
    assert_true(node->clients.clients.count < IDLE_CLIENTS);
    assert_true(drm_clients_are_partial(&node->clients, node->mono_us));
    show_render_ms(node, 7, 3 + IDLE_CLIENTS, 1 + IDLE_CLIENTS, 1400);
    look(node, SECOND);
    uses = visit_busy(node);
    assert_int_equal(uses.count, 1);
    assert_int_equal(uses.all[0].busy_us, 400000);
}

static void clients_that_do_nothing_make_room_for_one_that_works(void **state)
{
    enum { PROCESSES = 65, EACH = 255 }; /* more than are kept */
    struct node *node = *state;
    struct uses uses;

    /* The oldest is searched last. */
    open_file(node, 7, 3, RENDER);
    show_render_ms(node, 7, 3, 1, 1000);
    for (unsigned i = 0; i < PROCESSES * EACH; i++) {
        open_file(node, 100 + i / EACH, 3 + i % EACH, RENDER);
        show_render_ms(node, 100 + i / EACH, 3 + i % EACH, 2 + i, 0);
    }
    look(node, 0);
    assert_true(drm_clients_are_partial(&node->clients, node->mono_us));
    show_render_ms(node, 7, 3, 1, 1400);
    look(node, SECOND);
    uses = visit_busy(node);
    assert_int_equal(uses.count, 1);
    assert_int_equal(uses.all[0].pid, 7);
    assert_int_equal(uses.all[0].busy_us, 400000);
}

/* As after the driver was loaded again. */
static void an_id_that_is_used_again_is_another_client(void **state)
{
    struct node *node = *state;

    open_file(node, 7, 3, RENDER);
    show_render_ms(node, 7, 3, 1, 3600 * 1000);
    look(node, 0);
    expect_one(node, 7, 0);
    close_file(node, 7, 3);
    look(node, SECOND);
    open_file(node, 7, 3, RENDER);
    show_render_ms(node, 7, 3, 1, 100);
    look(node, SECOND);
    expect_one(node, 7, 0);
    show_render_ms(node, 7, 3, 1, 500);
    look(node, SECOND);
    expect_one(node, 7, 400000);
    /* At once, in another process. */
    close_file(node, 7, 3);
    open_file(node, 8, 3, RENDER);
    show_render_ms(node, 8, 3, 1, 50);
    look(node, SECOND);
    expect_one(node, 8, 0);
    show_render_ms(node, 8, 3, 1, 350);
    look(node, SECOND);
    expect_one(node, 8, 300000);
}

/* A program that opens the card for each of its files: mostly with the same number. */
static void another_client_with_the_same_descriptor_counts_from_its_start(void **state)
{
    struct node *node = *state;
    struct uses uses;

    open_file(node, 7, 3, RENDER);
    show_render_ms(node, 7, 3, 1, 1000);
    look(node, 0);
    show_render_ms(node, 7, 3, 2, 150);
    look(node, 2 * STEP); /* no search is due */
    uses = visit(node);
    assert_int_equal(uses.count, 1);
    assert_int_equal(uses.all[0].busy_us, 150000);
    assert_int_equal(uses.all[0].memory_bytes, 2048);
    show_render_ms(node, 7, 3, 3, 9000); /* more than it can have done since all were searched */
    look(node, 8 * STEP);
    expect_one(node, 7, SECOND);
}

/* As many descriptors as before. */
static void a_process_that_closed_a_card_is_searched_soon(void **state)
{
    struct node *node = *state;

    open_file(node, 7, 3, RENDER);
    open_file(node, 7, 4, "/etc/passwd");
    show_render_ms(node, 7, 3, 1, 1000);
    look(node, 0);
    close_file(node, 7, 3);
    open_file(node, 7, 5, RENDER);
    show_render_ms(node, 7, 5, 2, 150);
    look(node, 2 * STEP);
    assert_int_equal(visit_busy(node).count, 0);
    show_render_ms(node, 7, 5, 2, 350);
    look(node, 7 * STEP);
    expect_one(node, 7, 350000);
}

static void a_new_process_counts_from_its_start(void **state)
{
    struct node *node = *state;

    look(node, 0);
    open_file(node, 7, 3, RENDER);
    show_render_ms(node, 7, 3, 1, 400);
    look(node, SECOND);
    expect_one(node, 7, 400000);
    show_render_ms(node, 7, 3, 1, 500);
    look(node, SECOND);
    expect_one(node, 7, 100000);
    close_file(node, 7, 3);
    look(node, 20 * SECOND);
    /* How fast its cycles pass is known at the next look. */
    open_file(node, 8, 3, RENDER);
    show(node, 8, 3, 2, "drm-cycles-rcs:\t300\ndrm-total-cycles-rcs:\t5000\n");
    look(node, SECOND);
    expect_one(node, 8, 0);
    show(node, 8, 3, 2, "drm-cycles-rcs:\t500\ndrm-total-cycles-rcs:\t5100\n");
    look(node, STEP);
    expect_one(node, 8, 500000);
}

/* Another one may have worked for long, where it could not be seen. */
static void what_is_new_to_the_blind_is_not_counted(void **state)
{
    struct node *node = *state;
    char path[96];
    bool is_root = geteuid() == 0;

    open_file(node, 7, 3, RENDER);
    show_render_ms(node, 7, 3, 1, 5000);
    snprintf(path, sizeof(path), "%s/7/fd", node->path);
    assert_int_equal(chmod(path, 0), 0);
    if (is_root)
        assert_int_equal(seteuid(65534), 0); /* to whom permissions apply */
    look(node, 0);
    if (is_root)
        assert_int_equal(seteuid(0), 0);
    assert_int_equal(chmod(path, 0755), 0);
    look(node, 10 * SECOND);
    expect_one(node, 7, 0);
    show_render_ms(node, 7, 3, 1, 5300);
    look(node, SECOND);
    expect_one(node, 7, 300000);
}

/* xe cannot wake the GPU for a while. */
static void counts_that_are_left_out_are_not_zero(void **state)
{
    struct node *node = *state;

    open_file(node, 7, 3, RENDER);
    show(node, 7, 3, 1, "drm-cycles-rcs:\t0\ndrm-total-cycles-rcs:\t1000\n");
    look(node, 0);
    show(node, 7, 3, 1, "drm-cycles-rcs:\t400\ndrm-total-cycles-rcs:\t2000\n");
    look(node, SECOND);
    expect_one(node, 7, 400000);
    show(node, 7, 3, 1, ""); /* it is taken to work on */
    look(node, SECOND);
    expect_one(node, 7, 400000);
    show(node, 7, 3, 1, "drm-cycles-rcs:\t1400\ndrm-total-cycles-rcs:\t4000\n");
    look(node, SECOND); /* it has worked harder: a second of two, of which 0.4 s are told */
    expect_one(node, 7, 600000);
    show(node, 7, 3, 1, "");
    for (size_t i = 0; i < 5; i++)
        look(node, SECOND);
    expect_one(node, 7, 1500000); /* half of the time, as between the last counts, for 3 s */
    show(node, 7, 3, 1, "drm-cycles-rcs:\t1500\ndrm-total-cycles-rcs:\t10000\n");
    look(node, SECOND); /* it had done less */
    expect_one(node, 7, 0);
}

static void a_client_that_is_gone_tells_its_last_work_and_no_more(void **state)
{
    struct node *node = *state;
    struct uses uses;

    open_file(node, 7, 3, RENDER);
    show_render_ms(node, 7, 3, 1, 0);
    look(node, 0);
    show_render_ms(node, 7, 3, 1, 100);
    look(node, SECOND);
    close_file(node, 7, 3);
    look(node, SECOND);
    uses = visit(node);
    assert_int_equal(uses.count, 1);
    assert_false(uses.all[0].is_present);
    assert_int_equal(uses.all[0].busy_us, 100000);
    assert_int_equal(visit(node).count, 0);
    look(node, 20 * SECOND);
    assert_int_equal(node->clients.clients.count, 0);
}

static void nobody_hides_behind_another_name_of_the_node(void **state)
{
    static const char *const names[] = {"/tmp/x", "/dev/null2", "/dev/dri/renderD1x",
                                        "/srv/a-long-path/to/some/place/renderD128",
                                        "/dev/dri/by-path/pci-0000:03:00.0-render"};
    struct node *node = *state;

    for (unsigned i = 0; i < ARRAY_SIZE(names); i++) {
        open_file(node, 7, 3 + i, names[i]);
        show_render_ms(node, 7, 3 + i, 1 + i, 0);
    }
    look(node, 0);
    assert_int_equal(visit(node).count, ARRAY_SIZE(names));
}

static void what_cannot_be_a_card_is_not_read(void **state)
{
    static const char *const names[] = {
        "socket:[4711]", "pipe:[1]", "anon_inode:[eventfd]", "/dev/null", "/dev/urandom",
        "/etc/passwd",   "/"};
    struct node *node = *state;

    for (unsigned i = 0; i < ARRAY_SIZE(names); i++) {
        open_file(node, 7, 3 + i, names[i]);
        show_render_ms(node, 7, 3 + i, 1 + i, 0);
    }
    look(node, 0);
    assert_int_equal(visit(node).count, 0);
}

static void a_process_that_opens_a_card_late_is_found(void **state)
{
    struct node *node = *state;

    open_file(node, 7, 3, "/etc/passwd");
    look(node, 0);
    assert_int_equal(visit(node).count, 0);
    open_file(node, 7, 4, RENDER); /* one more: at the next search */
    show_render_ms(node, 7, 4, 1, 0);
    look(node, SECOND);
    assert_int_equal(visit(node).count, 1);
    open_file(node, 8, 3, RENDER); /* a new process, sooner */
    show_render_ms(node, 8, 3, 2, 0);
    look(node, SECOND);
    assert_int_equal(visit(node).count, 2);
    open_file(node, 7, 3, RENDER); /* as many: when all are searched */
    show_render_ms(node, 7, 3, 3, 0);
    look(node, 10 * SECOND);
    assert_int_equal(visit(node).count, 3);
}

static void processes_that_cannot_be_searched_are_reported(void **state)
{
    struct node *node = *state;
    char path[96];
    bool is_root = geteuid() == 0;

    open_file(node, 7, 3, RENDER);
    snprintf(path, sizeof(path), "%s/7/fd", node->path);
    assert_int_equal(chmod(path, 0), 0);
    if (is_root)
        assert_int_equal(seteuid(65534), 0); /* to whom permissions apply */
    look(node, 0);
    if (is_root)
        assert_int_equal(seteuid(0), 0);
    assert_true(drm_clients_are_partial(&node->clients, node->mono_us));
    assert_int_equal(chmod(path, 0755), 0);
    look(node, 10 * SECOND);
    assert_false(drm_clients_are_partial(&node->clients, node->mono_us));
}

/* As a thread would that hangs in it. */
static void a_search_that_hangs_holds_up_nobody_and_what_it_found_grows_old(void **state)
{
    struct node *node = *state;

    open_file(node, 7, 3, RENDER);
    show_render_ms(node, 7, 3, 1, 0);
    assert_true(drm_clients_are_partial(&node->clients, node->mono_us)); /* nothing was seen yet */
    look(node, 0);
    assert_false(drm_clients_are_partial(&node->clients, node->mono_us));
    pthread_mutex_lock(&node->files.searching);
    show_render_ms(node, 7, 3, 1, 500);
    look(node, SECOND);
    expect_one(node, 7, 500000);
    assert_false(drm_clients_are_partial(&node->clients, node->mono_us));
    look(node, 3 * SECOND);
    assert_true(drm_clients_are_partial(&node->clients, node->mono_us));
    pthread_mutex_unlock(&node->files.searching);
    look(node, SECOND);
    expect_one(node, 7, 0);
    assert_false(drm_clients_are_partial(&node->clients, node->mono_us));
}

#define OTHER_CARD "0000:04:00.0"

/* What /sys shows of a card's render node. */
static void add_node(const struct node *node, unsigned minor, const char *device)
{
    char path[96], target[64];

    snprintf(path, sizeof(path), "sys/dev/char/226:%u/made", minor);
    tree_write(node->path, path, "");
    snprintf(path, sizeof(path), "%s/sys/dev/char/226:%u/device", node->path, minor);
    snprintf(target, sizeof(target), "../../../%s", device);
    assert_int_equal(symlink(target, path), 0);
}

static void open_sysfs(struct node *node)
{
    char path[64];

    snprintf(path, sizeof(path), "%s/sys", node->path);
    node->host.sysfs_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    assert_true(node->host.sysfs_fd >= 0);
}

/* The driver does not answer what is read of its clients: the thread that reads it waits. The other
 * card's finds its own clients, and reads nothing of the first. */
static void a_card_that_hangs_holds_up_only_its_own_thread(void **state)
{
    struct node *node = *state;
    char path[64];

    add_node(node, 128, CARD);
    add_node(node, 129, OTHER_CARD);
    open_sysfs(node);
    open_file(node, 9, 3, "/dev/dri/renderD129");
    tree_write(node->path, "9/fdinfo/made", "");
    snprintf(path, sizeof(path), "%s/9/fdinfo/3", node->path);
    assert_int_equal(mkfifo(path, 0644), 0); /* who opens it waits for a writer */
    open_file(node, 7, 3, RENDER);
    show_render_ms(node, 7, 3, 1, 0);
    alarm(30);
    look(node, 0);
    show_render_ms(node, 7, 3, 1, 300);
    look(node, SECOND);
    expect_one(node, 7, 300000);
    look(node, 10 * SECOND); /* all are searched again */
    assert_false(drm_clients_are_partial(&node->clients, node->mono_us));
    alarm(0);
    close(node->host.sysfs_fd);
}

static void a_file_of_a_card_that_was_removed_is_not_read_for_another(void **state)
{
    struct node *node = *state;
    struct drm_files_taken taken = {0}, other = {0};
    char path[96];

    add_node(node, 128, CARD);
    open_sysfs(node);
    open_file(node, 9, 3, RENDER);
    drm_files_search(&node->files, node->mono_us);
    snprintf(path, sizeof(path), "sys/dev/char/226:128/device");
    tree_remove(node->path, path);
    drm_files_search(&node->files, node->mono_us + 60 * SECOND);
    drm_files_take(&node->files, &(const char *){CARD}, 1, &taken);
    drm_files_take(&node->files, &(const char *){OTHER_CARD}, 1, &other);
    assert_int_equal(taken.count, 1);
    assert_int_equal(other.count, 0);
    free(taken.places);
    free(other.places);
    close(node->host.sysfs_fd);
}

/* A platform device: KFD tells of which board. */
static void a_file_of_a_partition_is_of_its_board(void **state)
{
    struct node *node = *state;
    struct drm_files_taken taken = {0}, other = {0};

    add_node(node, 129, "amdgpu_xcp_0");
    open_sysfs(node);
    tree_write(node->path, "sys/class/kfd/kfd/topology/generation_id", "2\n");
    tree_write(node->path, "sys/class/kfd/kfd/topology/nodes/1/gpu_id", "77\n");
    tree_write(node->path, "sys/class/kfd/kfd/topology/nodes/1/properties",
               "simd_count 16\nsimd_per_cu 4\nlocation_id 768\ndomain 0\ndrm_render_minor 129\n");
    open_file(node, 7, 3, "/dev/dri/renderD129");
    drm_files_search(&node->files, node->mono_us);
    drm_files_take(&node->files, &(const char *){CARD}, 1, &taken);
    drm_files_take(&node->files, &(const char *){OTHER_CARD}, 1, &other);
    assert_int_equal(taken.count, 1);
    assert_int_equal(taken.places[0].pid, 7);
    assert_int_equal(other.count, 0);
    free(taken.places);
    free(other.places);
    close(node->host.sysfs_fd);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_was_done_before_the_first_look_is_not_counted),
        TEST(a_client_is_as_busy_as_its_busiest_engine),
        TEST(cycles_count_as_their_part_of_all_cycles),
        TEST(nobody_worked_longer_than_it_took),
        TEST(counts_that_go_back_are_no_work_until_they_are_past_where_they_were),
        TEST(a_descriptor_that_was_passed_on_is_one_client_and_counts_once),
        TEST(a_process_whose_first_thread_has_exited_is_found_by_another),
        TEST(nobody_hides_behind_clients_that_do_nothing),
        TEST(clients_that_do_nothing_make_room_for_one_that_works),
        TEST(an_id_that_is_used_again_is_another_client),
        TEST(another_client_with_the_same_descriptor_counts_from_its_start),
        TEST(a_process_that_closed_a_card_is_searched_soon),
        TEST(a_new_process_counts_from_its_start),
        TEST(what_is_new_to_the_blind_is_not_counted),
        TEST(counts_that_are_left_out_are_not_zero),
        TEST(a_client_that_is_gone_tells_its_last_work_and_no_more),
        TEST(nobody_hides_behind_another_name_of_the_node),
        TEST(what_cannot_be_a_card_is_not_read),
        TEST(a_process_that_opens_a_card_late_is_found),
        TEST(processes_that_cannot_be_searched_are_reported),
        TEST(a_search_that_hangs_holds_up_nobody_and_what_it_found_grows_old),
        TEST(a_card_that_hangs_holds_up_only_its_own_thread),
        TEST(a_file_of_a_card_that_was_removed_is_not_read_for_another),
        TEST(a_file_of_a_partition_is_of_its_board),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
