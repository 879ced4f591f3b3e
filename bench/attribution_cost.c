/*
 * What attribution costs: an hour of 32 processes that share a GPU, through the pipeline.
 *
 * usage: attribution_cost
 *
 * The hour is simulated at the rates of the exporter (five times a second the counter, GPM and one
 * utilisation sample, once a second the lists), once for each --attribution, and for intensity
 * again with programs that are remembered, rightly or as another one: time-sliced, as clients of
 * MPS, and in seven GPU instances. Who works changes every ten seconds. CPU time of this thread,
 * for the pipeline alone; compare it within a run, not between machines.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "attribution/pipeline.h"
#include "core/macros.h"
#include "identity/identity.h"

enum {
    PROCESSES = 32,
    HOUR_S = 3600,
    POLLS = 5, /* a second */
    INSTANCES = 7,
    SAMPLES_MAX = (3 + INSTANCES) * POLLS + 4 + PROCESSES,
    TURN_S = 10,
    ALONE_S = 3,
    SERVER_PID = 999,
};

/* What is remembered of the processes' programs. */
enum memory { MEMORY_NONE, MEMORY_RIGHT, MEMORY_WRONG };

static const uint64_t BEGIN_US = 1794725358000000;
static const uint64_t POLL_US = USEC_PER_SEC / POLLS;
static const double IDLE_WATTS = 100, ALLOWED_PERCENT = 0.1;

struct board {
    enum gpu_sharing sharing;
    uint64_t random; /* xorshift64; never 0 */
    double watts[PROCESSES], units[PROCESSES][SAMPLE_GPM_COUNT];
    uint32_t at_work; /* a bit for each */
    uint32_t first_pid;
    uint64_t counter_uj;
    struct sample_listed listed[PROCESSES];
    struct sample samples[SAMPLES_MAX]; /* of one second */
    size_t count;
};

static uint64_t draw(struct board *board)
{
    board->random ^= board->random << 13;
    board->random ^= board->random >> 7;
    board->random ^= board->random << 17;
    return board->random;
}

static double draw_part(struct board *board)
{
    return (double)(draw(board) >> 11) * 0x1p-53;
}

static uint32_t pid_of(const struct board *board, size_t process)
{
    return board->first_pid + (uint32_t)process;
}

static void begin(struct board *board, enum gpu_sharing sharing)
{
    *board = (struct board){.sharing = sharing, .random = 1, .first_pid = 1000};
    for (size_t p = 0; p < PROCESSES; p++) {
        board->watts[p] = 50 + 550 * draw_part(board);
        board->units[p][0] = 1;
        for (size_t u = 1; u < SAMPLE_GPM_COUNT; u++)
            board->units[p][u] = draw_part(board);
    }
}

static struct sample *add(struct board *board, enum sample_kind kind, uint64_t t_us)
{
    struct sample *sample = &board->samples[board->count++];

    *sample = (struct sample){.kind = kind, .t_us = t_us};
    return sample;
}

static uint32_t instance_of(const struct board *board, size_t process)
{
    return board->sharing == GPU_SHARING_MIG ? (uint32_t)(process % INSTANCES) : SAMPLE_NO_INSTANCE;
}

/* What those at work in an instance, or on the whole board, do to the device. */
static void add_gpm(struct board *board, uint64_t t_us, uint32_t instance, int workers)
{
    struct sample *gpm = add(board, SAMPLE_GPM, t_us);
    double units[SAMPLE_GPM_COUNT] = {0};

    for (size_t p = 0; p < PROCESSES; p++)
        if ((board->at_work & (1U << p)) &&
            (instance == SAMPLE_NO_INSTANCE || instance_of(board, p) == instance))
            for (size_t u = 0; u < SAMPLE_GPM_COUNT; u++)
                units[u] += board->units[p][u] / workers;
    gpm->gpm.instance = instance;
    gpm->gpm.valid = (1 << SAMPLE_GPM_COUNT) - 1;
    for (size_t u = 0; u < SAMPLE_GPM_COUNT; u++)
        gpm->gpm.millipercent[u] = (uint32_t)(1e5 * units[u] * (0.99 + 0.02 * draw_part(board)));
}

/* The sample is the server's under MPS, and one of those at work wins it under time-slicing. In MIG
 * mode there is none. */
static void add_label(struct board *board, uint64_t t_us, int workers)
{
    uint64_t winner = draw(board) % (uint64_t)workers;
    uint32_t pid = SERVER_PID;

    if (board->sharing == GPU_SHARING_MIG)
        return;
    for (size_t p = 0; p < PROCESSES && board->sharing != GPU_SHARING_MPS; p++)
        if ((board->at_work & (1U << p)) && winner-- == 0)
            pid = pid_of(board, p);
    add(board, SAMPLE_LABEL, t_us)->label =
        (struct sample_label){.pid = pid, .at_us = t_us - POLL_US / 2, .sm_percent = 99};
}

/* Those at work have equal parts of the device. */
static void poll_board(struct board *board, uint64_t t_us)
{
    int workers = __builtin_popcount(board->at_work);
    double watts = 0;

    for (size_t p = 0; p < PROCESSES; p++)
        watts += board->at_work & (1U << p) ? board->watts[p] / workers : 0;
    if (board->sharing == GPU_SHARING_MIG)
        for (uint32_t instance = 0; instance < INSTANCES; instance++)
            add_gpm(board, t_us, instance, workers);
    else
        add_gpm(board, t_us, SAMPLE_NO_INSTANCE, workers);
    add_label(board, t_us, workers);
    board->counter_uj += (uint64_t)((IDLE_WATTS + watts) * (double)POLL_US);
    add(board, SAMPLE_ENERGY, t_us)->counter_uj = board->counter_uj;
}

static void identify(struct board *board, uint64_t t_us, size_t process, enum memory memory)
{
    size_t program = memory == MEMORY_WRONG ? (process + 1) % PROCESSES : process;

    add(board, SAMPLE_PROCESS, t_us)->process = (struct sample_process){
        .pid = pid_of(board, process),
        .uid = 1000,
        .start_us = t_us,
        .cgroup = "/user.slice",
        .name = "python3",
        .program = {.exact = memory == MEMORY_NONE ? 0 : program + 1},
    };
}

static const struct sample_listed mps_server = {SERVER_PID, 30 << 20, SAMPLE_NO_INSTANCE,
                                                SAMPLE_NO_INSTANCE};

/* Lists those of the processes (bits) and lets those at work run for a second. */
static void run_second(struct board *board, uint64_t t_us, uint32_t present)
{
    size_t count = 0;

    for (size_t p = 0; p < PROCESSES; p++)
        if (present & (1U << p))
            board->listed[count++] =
                (struct sample_listed){pid_of(board, p), 1 << 30, instance_of(board, p),
                                       board->sharing == GPU_SHARING_MIG ? 0 : SAMPLE_NO_INSTANCE};
    add(board, SAMPLE_LIST, t_us)->list = (struct sample_list){
        .kind = board->sharing == GPU_SHARING_MPS ? SAMPLE_LIST_MPS : SAMPLE_LIST_COMPUTE,
        .count = count,
        .entries = board->listed};
    if (board->sharing == GPU_SHARING_MPS)
        add(board, SAMPLE_LIST, t_us)->list =
            (struct sample_list){.kind = SAMPLE_LIST_COMPUTE, .count = 1, .entries = &mps_server};
    add(board, SAMPLE_UTILISATION, t_us)->utilisation =
        (struct sample_utilisation){.gpu_percent = 100, .sm_clock_mhz = 1980};
    for (uint64_t poll = 1; poll <= POLLS; poll++)
        poll_board(board, t_us + poll * POLL_US);
}

static double cpu_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void fail(const char *what, int error)
{
    fprintf(stderr, "attribution_cost: %s: %s\n", what, strerror(-error));
    exit(1);
}

static struct pipeline *new_pipeline(enum attribution_method attribution)
{
    const struct pipeline_options options = {
        .gpu = {.interval_us = USEC_PER_SEC,
                .attribution = attribution,
                .patience_us = 60 * USEC_PER_SEC},
        .max_processes = 4096,
        .max_workloads = 16384,
        .retention_us = 300 * USEC_PER_SEC,
        .find_owner = identity_find_owner,
    };
    const struct sample device = {.kind = SAMPLE_DEVICE,
                                  .device = {.uuid = "GPU-0", .name = "H200", .driver = "580"}};
    struct pipeline *pipeline;
    int r = pipeline_new(&options, &pipeline);

    if (r == 0)
        r = pipeline_ingest(pipeline, &device, 1);
    if (r < 0)
        fail("cannot begin", r);
    return pipeline;
}

static void ingest(struct pipeline *pipeline, struct board *board)
{
    int r = pipeline_ingest(pipeline, board->samples, board->count);

    if (r < 0)
        fail("cannot take samples", r);
    board->count = 0;
}

/* Seven instances of one slice each. */
static void lay_out(struct board *board, uint64_t t_us)
{
    static struct sample_instance instances[INSTANCES];

    for (uint32_t i = 0; i < INSTANCES; i++)
        instances[i] = (struct sample_instance){.gpu_instance = i,
                                                .index = i,
                                                .uuid = "",
                                                .profile = "1g.18gb",
                                                .slices = 1,
                                                .compute_slices = 1,
                                                .sm_count = 16,
                                                .memory_bytes = 18ULL << 30};
    add(board, SAMPLE_LAYOUT, t_us)->layout = (struct sample_layout){.kind = LAYOUT_MIG,
                                                                     .slices = INSTANCES,
                                                                     .sm_count = 132,
                                                                     .count = INSTANCES,
                                                                     .items = instances};
}

/* The MPS server; it is root's. */
static void serve(struct board *board, uint64_t t_us)
{
    add(board, SAMPLE_PROCESS, t_us)->process =
        (struct sample_process){.pid = SERVER_PID,
                                .start_us = t_us,
                                .cgroup = "/system.slice/mps.service",
                                .name = "nvidia-cuda-mps-server"};
}

/* Each program alone on the board. Returns when the last one ended. */
static uint64_t teach(struct pipeline *pipeline, struct board *board)
{
    uint64_t t_us = BEGIN_US;

    for (size_t p = 0; p < PROCESSES; p++) {
        identify(board, t_us, p, MEMORY_RIGHT);
        board->at_work = 1U << p;
        for (size_t i = 0; i < ALONE_S; i++, t_us += USEC_PER_SEC) {
            run_second(board, t_us, board->at_work);
            ingest(pipeline, board);
        }
    }
    board->first_pid += PROCESSES;
    return t_us;
}

/* Returns the CPU seconds of an hour. */
static double measure(enum attribution_method attribution, enum gpu_sharing sharing,
                      enum memory memory)
{
    struct pipeline *pipeline = new_pipeline(attribution);
    uint64_t begin_us = BEGIN_US;
    struct board board;
    double sum_s = 0;

    begin(&board, sharing);
    if (sharing == GPU_SHARING_MIG)
        lay_out(&board, begin_us);
    if (sharing == GPU_SHARING_MPS)
        serve(&board, begin_us);
    if (memory != MEMORY_NONE)
        begin_us = teach(pipeline, &board);
    for (size_t p = 0; p < PROCESSES; p++)
        identify(&board, begin_us, p, memory);
    for (uint64_t second = 0; second < HOUR_S; second++) {
        double before_s;

        if (second % TURN_S == 0)
            board.at_work = (uint32_t)draw(&board) | 1;
        run_second(&board, begin_us + second * USEC_PER_SEC, UINT32_MAX);
        before_s = cpu_s();
        ingest(pipeline, &board);
        sum_s += cpu_s() - before_s;
    }
    pipeline_free(pipeline);
    return sum_s;
}

int main(void)
{
    static const struct {
        const char *name;
        enum attribution_method attribution;
        enum gpu_sharing sharing;
        enum memory memory;
    } rows[] = {
        {"timeshare", ATTRIBUTION_TIMESHARE, GPU_SHARING_TIME_SLICED, MEMORY_NONE},
        {"intensity", ATTRIBUTION_INTENSITY, GPU_SHARING_TIME_SLICED, MEMORY_NONE},
        {"  remembered", ATTRIBUTION_INTENSITY, GPU_SHARING_TIME_SLICED, MEMORY_RIGHT},
        {"  mistaken", ATTRIBUTION_INTENSITY, GPU_SHARING_TIME_SLICED, MEMORY_WRONG},
        {"MPS", ATTRIBUTION_INTENSITY, GPU_SHARING_MPS, MEMORY_NONE},
        {"  remembered", ATTRIBUTION_INTENSITY, GPU_SHARING_MPS, MEMORY_RIGHT},
        {"  mistaken", ATTRIBUTION_INTENSITY, GPU_SHARING_MPS, MEMORY_WRONG},
        {"MIG", ATTRIBUTION_INTENSITY, GPU_SHARING_MIG, MEMORY_NONE},
        {"  remembered", ATTRIBUTION_INTENSITY, GPU_SHARING_MIG, MEMORY_RIGHT},
        {"  mistaken", ATTRIBUTION_INTENSITY, GPU_SHARING_MIG, MEMORY_WRONG},
    };
    double first_s = 0;

    printf("an hour of %d processes on one GPU, through the pipeline\n\n", PROCESSES);
    printf("%-12s %8s %10s %8s %8s\n", "", "CPU s", "% of time", "allowed", "ratio");
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        double spent_s = measure(rows[i].attribution, rows[i].sharing, rows[i].memory);

        first_s = i == 0 ? spent_s : first_s;
        printf("%-12s %8.3f %10.4f %8.2f %8.1f\n", rows[i].name, spent_s, 100 * spent_s / HOUR_S,
               ALLOWED_PERCENT, spent_s / first_s);
    }
    return 0;
}
