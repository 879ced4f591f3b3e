// Loads of known kinds for the bench: work is counted in iterations, so that nothing advances while a
// process is preempted.
//
// usage: loads KIND SECONDS [BUSY-PERCENT]     kinds: spin1 fma fmaq copy gemm idle
//
// Prints one line when it starts and one with the iterations done when it ends.
#include <cublas_v2.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <unistd.h>

#define CHECK(call)                                                                                \
    do {                                                                                           \
        int code_ = (int)(call);                                                                   \
        if (code_ != 0) {                                                                          \
            fprintf(stderr, "%s: error %d\n", #call, code_);                                       \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static double now()
{
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

// Each launch takes some milliseconds.
__global__ void fma_kernel(float *out, int rounds)
{
    float a = threadIdx.x, b = 1.000001f, c = 0.5f, d = 2.0f;
    for (int i = 0; i < rounds; i++) {
        a = fmaf(a, b, c);
        d = fmaf(d, b, a);
    }
    if (a + d == 12345.0f)
        *out = a;
}

__global__ void fill_kernel(__nv_bfloat16 *data, size_t count, unsigned seed)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count;
         i += (size_t)gridDim.x * blockDim.x) {
        unsigned x = (unsigned)i * 2654435761u + seed;
        x ^= x >> 15;
        x *= 2246822519u;
        x ^= x >> 13;
        data[i] = __float2bfloat16((x & 0xffff) / 65536.0f - 0.5f);
    }
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: loads KIND SECONDS [BUSY-PERCENT]\n");
        return 2;
    }
    const char *kind = argv[1];
    double seconds = atof(argv[2]), busy = argc > 3 ? atof(argv[3]) / 100 : 1;
    const int n = 8192;
    const size_t bytes = (size_t)1 << 30;
    float *out;
    char *from = nullptr, *to = nullptr;
    __nv_bfloat16 *a = nullptr, *b = nullptr, *c = nullptr;
    cublasHandle_t blas = nullptr;
    CHECK(cudaMalloc(&out, sizeof(*out)));
    if (!strcmp(kind, "copy")) {
        CHECK(cudaMalloc(&from, bytes));
        CHECK(cudaMalloc(&to, bytes));
    } else if (!strcmp(kind, "gemm")) {
        CHECK(cudaMalloc(&a, (size_t)n * n * 2));
        CHECK(cudaMalloc(&b, (size_t)n * n * 2));
        CHECK(cudaMalloc(&c, (size_t)n * n * 2));
        fill_kernel<<<1024, 256>>>(a, (size_t)n * n, 1);
        fill_kernel<<<1024, 256>>>(b, (size_t)n * n, 2);
        CHECK(cublasCreate(&blas));
    }
    CHECK(cudaDeviceSynchronize());
    printf("start %s pid %d\n", kind, (int)getpid());
    fflush(stdout);
    double start = now(), worked = 0;
    long iterations = 0;
    while (now() - start < seconds) {
        double begin = now();
        const float one = 1, zero = 0;
        if (!strcmp(kind, "spin1"))
            fma_kernel<<<1, 1>>>(out, 2000000);
        else if (!strcmp(kind, "fma"))
            fma_kernel<<<132 * 8, 256>>>(out, 500000);
        else if (!strcmp(kind, "fmaq"))
            fma_kernel<<<33, 256>>>(out, 500000);
        else if (!strcmp(kind, "copy"))
            CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice));
        else if (!strcmp(kind, "gemm"))
            CHECK(cublasGemmEx(blas, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, a, CUDA_R_16BF, n, b,
                               CUDA_R_16BF, n, &zero, c, CUDA_R_16BF, n, CUBLAS_COMPUTE_32F,
                               CUBLAS_GEMM_DEFAULT));
        else
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
        CHECK(cudaDeviceSynchronize());
        worked += now() - begin;
        iterations++;
        double rest = worked / busy - (now() - start);
        if (rest > 0.001)
            std::this_thread::sleep_for(std::chrono::duration<double>(rest));
    }
    printf("end %s iterations %ld\n", kind, iterations);
    return 0;
}
