// Loads of known kinds for the bench: work is counted in units, so that nothing advances while a
// process is preempted. One unit takes some milliseconds.
//
// usage: loads KIND SECONDS [BUSY-PERCENT]
//        loads KIND --seconds S | --units N [--start-at EPOCH|-] [--busy PERCENT]
//              [--pause SEED:MEAN-BUSY-S:MEAN-PAUSE-S] [--burst ON-S:OFF-S] [--linger S]
//
// The first form prints one line when it starts and one with the units done when it ends. The
// second sets everything up, prints `ready KIND pid N`, sleeps until EPOCH (`-`: reads it from
// stdin), works, prints `end KIND iterations N start_us A end_us B` (CLOCK_REALTIME), and keeps its
// context until stdin closes or the linger time is over.
#include <cublas_v2.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <poll.h>
#include <random>
#include <time.h>
#include <unistd.h>

static const char *explain(cudaError_t code)
{
    return cudaGetErrorString(code);
}

static const char *explain(cublasStatus_t code)
{
    return cublasGetStatusString(code);
}

#define CHECK(call)                                                                                \
    do {                                                                                           \
        auto code_ = (call);                                                                       \
        if ((int)code_ != 0) {                                                                     \
            fprintf(stderr, "loads: %s: %s (%d)\n", #call, explain(code_), (int)code_);            \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static double seconds_of(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double now()
{
    return seconds_of(CLOCK_MONOTONIC);
}

static long long wall_us()
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (long long)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static void rest_for(double seconds)
{
    struct timespec left;

    if (seconds <= 0)
        return;
    left.tv_sec = (time_t)seconds;
    left.tv_nsec = (long)((seconds - (double)left.tv_sec) * 1e9);
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        ;
}

// The kernels. Each ends in a comparison that is never true, so that the compiler keeps the
// arithmetic.

template <typename T> __global__ void fma_kernel(T *out, int rounds)
{
    T a = threadIdx.x, b = (T)1.000001, c = (T)0.5, d = (T)2.0;

    for (int i = 0; i < rounds; i++) {
        a = fma(a, b, c);
        d = fma(d, b, a);
    }
    if (a + d == (T)12345)
        *out = a;
}

__global__ void imad_kernel(unsigned *out, int rounds)
{
    unsigned a = threadIdx.x + 1, b = blockIdx.x | 1, c = threadIdx.x * 7 + 3;

    for (int i = 0; i < rounds; i++) {
        a = a * b + c;
        c = c * b + a;
    }
    if (a + c == 0x12345678u)
        *out = a;
}

// One dependent chain a thread: the SM is resident and mostly waits.
__global__ void spin_kernel(unsigned *out, int rounds)
{
    unsigned x = blockIdx.x * blockDim.x + threadIdx.x + 1;

    for (int i = 0; i < rounds; i++) {
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
    }
    if (x == 0x12345678u) // only one start in 2^32 gets there
        *out = x;
}

__global__ void gather_kernel(const unsigned *data, unsigned mask, unsigned salt, int rounds,
                              unsigned *out)
{
    unsigned x = (blockIdx.x * blockDim.x + threadIdx.x + salt) * 2654435761u, sum = 0;

    for (int i = 0; i < rounds; i++) {
        x = x * 1664525u + 1013904223u;
        sum += data[(x ^ x >> 15) & mask];
    }
    if (sum == 0x12345678u)
        *out = sum;
}

// One row a warp. The sine keeps the next layer's input bounded, whatever the weights.
__global__ void gemv_kernel(const __nv_bfloat16 *weights, const float *in, float *out, int columns)
{
    int row = (int)((blockIdx.x * blockDim.x + threadIdx.x) / 32), lane = (int)threadIdx.x % 32;
    const uint4 *line = (const uint4 *)(weights + (size_t)row * columns);
    float sum = 0;

    for (int i = lane; i < columns / 8; i += 32) {
        uint4 packed = line[i];
        const __nv_bfloat16 *eight = (const __nv_bfloat16 *)&packed;

        for (int k = 0; k < 8; k++)
            sum += __bfloat162float(eight[k]) * in[i * 8 + k];
    }
    for (int step = 16; step > 0; step /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, step);
    if (lane == 0)
        out[row] = sinf(sum);
}

// Reads and writes all of it, and leaves it as random as it was.
__global__ void mirror_kernel(float *data, size_t count)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count;
         i += (size_t)gridDim.x * blockDim.x)
        data[i] = 1.0f - data[i];
}

__device__ static void store(__nv_bfloat16 *to, unsigned bits)
{
    *to = __float2bfloat16((float)(bits & 0xffff) / 65536.0f - 0.5f);
}

__device__ static void store(float *to, unsigned bits)
{
    *to = (float)(bits & 0xffffff) / 16777216.0f - 0.5f;
}

__device__ static void store(unsigned *to, unsigned bits)
{
    *to = bits;
}

template <typename T> __global__ void fill_kernel(T *data, size_t count, unsigned seed)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count;
         i += (size_t)gridDim.x * blockDim.x) {
        unsigned x = (unsigned)i * 2654435761u + seed;

        x ^= x >> 15;
        x *= 2246822519u;
        x ^= x >> 13;
        store(&data[i], x);
    }
}

// What a kind works on. Only what the kind needs is allocated.
struct bench {
    int sms;
    void *out;
    char *from, *to;       // copy
    unsigned *table;       // gather
    unsigned salt;         // gather
    void *a, *b, *c;       // the products
    int n;                 // their size
    __nv_bfloat16 *layers; // decode
    float *activations[2]; // decode
    float *state;          // train
    cublasHandle_t blas;
};

enum {
    PRODUCT_LARGE = 8192,
    PRODUCT_MIDDLE = 4096,
    PRODUCT_SMALL = 1024,
    DECODE_ROWS = 8192,
    DECODE_COLUMNS = 6144, // 96 MiB a layer: more than the L2 cache holds
    DECODE_LAYERS = 8,
};
static const size_t COPY_BYTES = (size_t)1 << 30;
static const size_t TABLE_ENTRIES = (size_t)1 << 30; // 4 GiB
static const size_t STATE_FLOATS = (size_t)1 << 27;  // 512 MiB

template <typename T> static T *allocate(size_t count)
{
    T *data = nullptr;

    CHECK(cudaMalloc((void **)&data, count * sizeof(T)));
    return data;
}

template <typename T> static T *random_values(size_t count, unsigned seed)
{
    T *data = allocate<T>(count);

    fill_kernel<T><<<1024, 256>>>(data, count, seed);
    CHECK(cudaGetLastError());
    return data;
}

template <typename T> static void prepare_product(struct bench *bench, int n)
{
    bench->n = n;
    bench->a = random_values<T>((size_t)n * n, 1);
    bench->b = random_values<T>((size_t)n * n, 2);
    bench->c = allocate<T>((size_t)n * n);
    CHECK(cublasCreate(&bench->blas));
}

static void multiply(struct bench *bench, cudaDataType_t type, cublasComputeType_t compute,
                     int times)
{
    const float one = 1, zero = 0;
    int n = bench->n;

    for (int i = 0; i < times; i++)
        CHECK(cublasGemmEx(bench->blas, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, bench->a, type, n,
                           bench->b, type, n, &zero, bench->c, type, n, compute,
                           CUBLAS_GEMM_DEFAULT));
}

static void multiply_bf16(struct bench *bench, int times)
{
    multiply(bench, CUDA_R_16BF, CUBLAS_COMPUTE_32F, times);
}

static void prepare_nothing(struct bench *)
{
}

static void prepare_copy(struct bench *bench)
{
    bench->from = (char *)random_values<unsigned>(COPY_BYTES / sizeof(unsigned), 1);
    bench->to = allocate<char>(COPY_BYTES);
}

static void prepare_gather(struct bench *bench)
{
    bench->table = random_values<unsigned>(TABLE_ENTRIES, 1);
}

static void prepare_gemm(struct bench *bench)
{
    prepare_product<__nv_bfloat16>(bench, PRODUCT_LARGE);
}

static void prepare_gemm0(struct bench *bench)
{
    prepare_gemm(bench);
    CHECK(cudaMemset(bench->a, 0, (size_t)bench->n * bench->n * sizeof(__nv_bfloat16)));
    CHECK(cudaMemset(bench->b, 0, (size_t)bench->n * bench->n * sizeof(__nv_bfloat16)));
}

static void prepare_gemms(struct bench *bench)
{
    prepare_product<__nv_bfloat16>(bench, PRODUCT_SMALL);
}

static void prepare_float_product(struct bench *bench)
{
    prepare_product<float>(bench, PRODUCT_MIDDLE);
}

static void prepare_decode(struct bench *bench)
{
    bench->layers =
        random_values<__nv_bfloat16>((size_t)DECODE_LAYERS * DECODE_ROWS * DECODE_COLUMNS, 1);
    for (int i = 0; i < 2; i++)
        bench->activations[i] = random_values<float>(DECODE_ROWS, 2);
}

static void prepare_train(struct bench *bench)
{
    prepare_product<__nv_bfloat16>(bench, PRODUCT_MIDDLE);
    bench->state = random_values<float>(STATE_FLOATS, 3);
}

static void unit_spin1(struct bench *bench)
{
    fma_kernel<float><<<1, 1>>>((float *)bench->out, 1000000);
}

static void unit_spinall(struct bench *bench)
{
    spin_kernel<<<bench->sms, 256>>>((unsigned *)bench->out, 300000);
}

static void unit_fma(struct bench *bench)
{
    fma_kernel<float><<<bench->sms * 8, 256>>>((float *)bench->out, 300000);
}

// As many large blocks as there are SMs in a quarter of the board: each gets one of its own.
static void unit_fmaq(struct bench *bench)
{
    fma_kernel<float><<<std::max(1, bench->sms / 4), 1024>>>((float *)bench->out, 500000);
}

static void unit_fp64(struct bench *bench)
{
    fma_kernel<double><<<bench->sms * 8, 256>>>((double *)bench->out, 150000);
}

static void unit_imad(struct bench *bench)
{
    imad_kernel<<<bench->sms * 8, 256>>>((unsigned *)bench->out, 150000);
}

static void unit_copy(struct bench *bench)
{
    for (int i = 0; i < 8; i++)
        CHECK(cudaMemcpyAsync(bench->to, bench->from, COPY_BYTES, cudaMemcpyDeviceToDevice));
}

static void unit_gather(struct bench *bench)
{
    gather_kernel<<<bench->sms * 16, 256>>>(bench->table, (unsigned)(TABLE_ENTRIES - 1),
                                            bench->salt++ * 1000003u, 256, (unsigned *)bench->out);
}

static void unit_gemm(struct bench *bench)
{
    multiply_bf16(bench, 3);
}

static void unit_gemms(struct bench *bench)
{
    multiply_bf16(bench, 384);
}

static void unit_sgemm(struct bench *bench)
{
    multiply(bench, CUDA_R_32F, CUBLAS_COMPUTE_32F, 2);
}

static void unit_tgemm(struct bench *bench)
{
    multiply(bench, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32, 10);
}

// Tokens one after another: few kernels, then the host looks at the result and thinks.
static void unit_decode(struct bench *bench)
{
    const size_t layer_size = (size_t)DECODE_ROWS * DECODE_COLUMNS;

    for (int token = 0; token < 5; token++) {
        for (int layer = 0; layer < DECODE_LAYERS; layer++)
            gemv_kernel<<<DECODE_ROWS / 8, 256>>>(
                bench->layers + layer * layer_size, bench->activations[layer % 2],
                bench->activations[(layer + 1) % 2], DECODE_COLUMNS);
        CHECK(cudaDeviceSynchronize());
        rest_for(250e-6);
    }
}

// A step of training: products, a pass over all state, and many small kernels.
static void unit_train(struct bench *bench)
{
    for (int step = 0; step < 2; step++) {
        multiply_bf16(bench, 8);
        for (int pass = 0; pass < 2; pass++)
            mirror_kernel<<<bench->sms * 8, 256>>>(bench->state, STATE_FLOATS);
        for (int i = 0; i < 60; i++)
            mirror_kernel<<<8, 256>>>(bench->state, 4096);
    }
}

static void unit_idle(struct bench *)
{
    rest_for(0.05);
}

struct kind {
    const char *name;
    void (*prepare)(struct bench *);
    void (*unit)(struct bench *);
};

static const struct kind kinds[] = {
    {"spin1", prepare_nothing, unit_spin1},       // one thread
    {"spinall", prepare_nothing, unit_spinall},   // a dependent chain on every SM
    {"fma", prepare_nothing, unit_fma},           // fp32 on every SM
    {"fmaq", prepare_nothing, unit_fmaq},         // fp32 on a quarter of them
    {"fp64", prepare_nothing, unit_fp64},         // double precision on every SM
    {"imad", prepare_nothing, unit_imad},         // integer multiply-add on every SM
    {"copy", prepare_copy, unit_copy},            // device memory copy
    {"gather", prepare_gather, unit_gather},      // random reads over 4 GiB
    {"gemm", prepare_gemm, unit_gemm},            // bf16 product of random data: at the power cap
    {"gemm0", prepare_gemm0, unit_gemm},          // the same of zeros
    {"gemms", prepare_gemms, unit_gemms},         // many small bf16 products
    {"sgemm", prepare_float_product, unit_sgemm}, // fp32 product
    {"tgemm", prepare_float_product, unit_tgemm}, // TF32 product
    {"decode", prepare_decode, unit_decode},      // memory bound, the host waits between
    {"train", prepare_train, unit_train},         // products, memory passes, small kernels in turn
    {"idle", prepare_nothing, unit_idle},         // a context and nothing else
};

struct plan {
    double seconds; // 0: bounded by units
    long units;     // 0: bounded by seconds
    double busy;    // part of the time, 0 to 1
    const char *start_at;
    bool pauses;
    unsigned pause_seed;
    double mean_busy, mean_pause;
    double burst_on, burst_off;
    double linger; // negative: until stdin closes
};

// Exponential, but never so short that no counter sees it nor so long that nothing else happens.
static double random_length(std::mt19937 &random, double mean)
{
    double length = std::exponential_distribution<double>(1 / mean)(random);

    return std::min(std::max(length, 0.25 * mean), 3 * mean);
}

static long work(const struct kind *kind, struct bench *bench, const struct plan *plan)
{
    std::mt19937 random(plan->pause_seed);
    double start = now(), phase_start = start, worked = 0;
    double deadline = plan->seconds > 0 ? start + plan->seconds : 1e300;
    double phase = plan->pauses         ? random_length(random, plan->mean_busy)
                   : plan->burst_on > 0 ? plan->burst_on
                                        : 1e300;
    long done = 0;

    while (now() < deadline && (plan->units <= 0 || done < plan->units)) {
        double begin = now();

        if (begin - phase_start >= phase) {
            double pause = plan->pauses ? random_length(random, plan->mean_pause) : plan->burst_off;

            if (begin + pause >= deadline)
                break;
            rest_for(pause);
            phase_start = now();
            phase = plan->pauses ? random_length(random, plan->mean_busy) : plan->burst_on;
            start += phase_start - begin; // a pause is no credit for `busy`
            continue;
        }
        kind->unit(bench);
        CHECK(cudaGetLastError());
        CHECK(cudaDeviceSynchronize());
        worked += now() - begin;
        done++;
        if (plan->busy < 1)
            rest_for(std::min(worked / plan->busy - (now() - start), deadline - now()));
    }
    return done;
}

static void wait_for_start(const char *start_at)
{
    char line[64];

    if (!start_at)
        return;
    if (!strcmp(start_at, "-")) {
        if (!fgets(line, sizeof(line), stdin)) {
            fprintf(stderr, "loads: stdin closed before it said when to start\n");
            exit(1);
        }
        start_at = line;
    }
    rest_for(strtod(start_at, nullptr) - seconds_of(CLOCK_REALTIME));
}

// Read by read(2): what stdio had buffered was the line with the start.
static void keep_context(double linger)
{
    double until = now() + linger;
    char rest[64];

    for (;;) {
        struct pollfd in = {STDIN_FILENO, POLLIN, 0};
        int left_ms = linger < 0 ? -1 : (int)(std::max(0.0, until - now()) * 1000);
        int ready = poll(&in, 1, left_ms);

        if (ready == 0 || (ready > 0 && read(STDIN_FILENO, rest, sizeof(rest)) <= 0))
            return;
    }
}

[[noreturn]] static void usage()
{
    fprintf(stderr,
            "usage: loads KIND SECONDS [BUSY-PERCENT]\n"
            "       loads KIND --seconds S | --units N [--start-at EPOCH|-] [--busy PERCENT]\n"
            "             [--pause SEED:MEAN-BUSY-S:MEAN-PAUSE-S] [--burst ON-S:OFF-S] "
            "[--linger S]\n"
            "kinds:");
    for (const struct kind &kind : kinds)
        fprintf(stderr, " %s", kind.name);
    fprintf(stderr, "\n");
    exit(2);
}

static struct plan parse(int argc, char **argv)
{
    struct plan plan = {};

    plan.busy = 1;
    plan.linger = -1;
    for (int i = 2; i < argc; i += 2) {
        const char *name = argv[i], *value = i + 1 < argc ? argv[i + 1] : nullptr;

        if (!value)
            usage();
        else if (!strcmp(name, "--seconds"))
            plan.seconds = atof(value);
        else if (!strcmp(name, "--units"))
            plan.units = atol(value);
        else if (!strcmp(name, "--busy"))
            plan.busy = atof(value) / 100;
        else if (!strcmp(name, "--start-at"))
            plan.start_at = value;
        else if (!strcmp(name, "--linger"))
            plan.linger = atof(value);
        else if (!strcmp(name, "--pause")) {
            if (sscanf(value, "%u:%lf:%lf", &plan.pause_seed, &plan.mean_busy, &plan.mean_pause) !=
                3)
                usage();
            plan.pauses = true;
        } else if (!strcmp(name, "--burst")) {
            if (sscanf(value, "%lf:%lf", &plan.burst_on, &plan.burst_off) != 2)
                usage();
        } else
            usage();
    }
    if ((plan.seconds <= 0 && plan.units <= 0) || plan.busy <= 0)
        usage();
    return plan;
}

int main(int argc, char **argv)
{
    const struct kind *kind = nullptr;
    struct bench bench = {};
    struct plan plan = {};

    for (const struct kind &k : kinds)
        if (argc > 2 && !strcmp(k.name, argv[1]))
            kind = &k;
    if (!kind)
        usage();
    bool is_short_form = argv[2][0] != '-';
    if (is_short_form) {
        plan.seconds = atof(argv[2]);
        plan.busy = argc > 3 ? atof(argv[3]) / 100 : 1;
    } else {
        plan = parse(argc, argv);
    }

    CHECK(cudaDeviceGetAttribute(&bench.sms, cudaDevAttrMultiProcessorCount, 0));
    bench.out = allocate<double>(1);
    kind->prepare(&bench);
    kind->unit(&bench); // loads the kernels, so that the first counted unit is like the others
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    printf("%s %s pid %d\n", is_short_form ? "start" : "ready", kind->name, (int)getpid());
    fflush(stdout);

    wait_for_start(plan.start_at);
    long long start_us = wall_us();
    long done = work(kind, &bench, &plan);
    long long end_us = wall_us();
    if (is_short_form) {
        printf("end %s iterations %ld\n", kind->name, done);
        return 0;
    }
    printf("end %s iterations %ld start_us %lld end_us %lld\n", kind->name, done, start_us, end_us);
    fflush(stdout);
    keep_context(plan.linger);
    return 0;
}
