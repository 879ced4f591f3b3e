/*
 * Load of known size, for cgroups: load NAME NUMBER ..., done one after the other.
 *
 * Then says what it has used, by the kernel's account of processes, and waits to be killed with all
 * that it holds. Linked statically: it runs where nothing else is.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define USEC_PER_SEC 1000000ULL
#define MIB          ((size_t)1 << 20)

/* Environment variables: the file of `write_mib` and `read_mib`, and the cgroup.procs of the cgroup
 * in which all is to be done, if it is not there already. */
#define DISK_FILE "DISK_FILE"
#define CGROUP    "CGROUP"

static _Noreturn void fail(const char *what)
{
    printf("%s: %s\n", what, strerror(errno));
    exit(1);
}

/* Mostly in user mode. */
static void spin(uint64_t cpu_us)
{
    enum { BETWEEN_LOOKS = 10000 };
    struct timespec now;

    do {
        for (volatile int i = 0; i < BETWEEN_LOOKS; i++)
            ;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    } while ((uint64_t)now.tv_sec * USEC_PER_SEC + (uint64_t)now.tv_nsec / 1000 < cpu_us);
}

static uint64_t used_us(int who)
{
    struct rusage usage;

    if (getrusage(who, &usage) < 0)
        fail("getrusage");
    return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * USEC_PER_SEC +
           (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static void use_cpu(uint64_t duration_ms)
{
    spin(used_us(RUSAGE_SELF) + duration_ms * 1000);
}

/* Short-lived: no two of them are there at the same time. */
static void use_children(uint64_t count)
{
    enum { SHORT_US = 50 };

    for (uint64_t i = 0; i < count; i++) {
        pid_t pid = fork();
        int status;

        if (pid == 0) {
            spin(SHORT_US);
            _exit(0);
        }
        if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
            fail("children");
    }
}

static void *map(size_t size_bytes, int flags)
{
    void *memory =
        mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);

    if (memory == MAP_FAILED)
        fail("mmap");
    return memory;
}

static void hold_memory(uint64_t size_mib)
{
    memset(map(size_mib * MIB, 0), 1, size_mib * MIB);
}

static void hold_huge_pages(uint64_t size_mib)
{
    memset(map(size_mib * MIB, MAP_HUGETLB), 1, size_mib * MIB);
}

/* In a child, which the kernel kills for it. */
static void exceed_memory(uint64_t size_mib)
{
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        hold_memory(size_mib);
        _exit(0);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        fail("exceed_mib");
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL) {
        errno = 0;
        fail("exceed_mib: it was not killed");
    }
}

static void *wait_forever(void *unused)
{
    (void)unused;
    while (true)
        pause();
    return NULL;
}

static void hold_threads(uint64_t count)
{
    pthread_t thread;

    for (uint64_t i = 0; i < count; i++)
        if ((errno = pthread_create(&thread, NULL, wait_forever, NULL)) != 0)
            fail("pthread_create");
}

typedef ssize_t transfer(int fd, void *data, size_t size_bytes);

static ssize_t write_some(int fd, void *data, size_t size_bytes)
{
    return write(fd, data, size_bytes);
}

/* Past the page cache, so that it is counted at once, and to the byte. */
static void use_disk(uint64_t size_mib, transfer *move)
{
    const char *path = getenv(DISK_FILE);
    void *data = map(MIB, 0);
    int fd;

    memset(data, 1, MIB);
    fd = path ? open(path, O_RDWR | O_CREAT | O_DIRECT | O_CLOEXEC, 0600) : -1;
    if (fd < 0)
        fail(DISK_FILE);
    for (uint64_t i = 0; i < size_mib; i++)
        if (move(fd, data, MIB) != (ssize_t)MIB)
            fail(path);
    if (fsync(fd) < 0 || close(fd) < 0 || munmap(data, MIB) < 0)
        fail(path);
}

static void write_disk(uint64_t size_mib)
{
    use_disk(size_mib, write_some);
}

static void read_disk(uint64_t size_mib)
{
    use_disk(size_mib, read);
}

static const struct {
    const char *name;
    void (*run)(uint64_t number);
} loads[] = {
    {"cpu_ms", use_cpu},           {"children", use_children}, {"memory_mib", hold_memory},
    {"huge_mib", hold_huge_pages}, {"threads", hold_threads},  {"exceed_mib", exceed_memory},
    {"write_mib", write_disk},     {"read_mib", read_disk},
};

static void run(const char *name, const char *number)
{
    for (size_t i = 0; i < sizeof(loads) / sizeof(loads[0]); i++)
        if (strcmp(loads[i].name, name) == 0) {
            loads[i].run(strtoull(number, NULL, 10));
            return;
        }
    errno = EINVAL;
    fail(name);
}

/* Returns what was used before. */
static uint64_t enter_cgroup(void)
{
    const char *path = getenv(CGROUP);
    int fd;

    if (!path)
        return 0;
    fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, "0", 1) != 1 || close(fd) < 0)
        fail(path);
    return used_us(RUSAGE_SELF);
}

int main(int argc, char **argv)
{
    uint64_t before_us = enter_cgroup();

    for (int i = 1; i + 1 < argc; i += 2)
        run(argv[i], argv[i + 1]);
    printf("used %llu us\n",
           (unsigned long long)(used_us(RUSAGE_SELF) + used_us(RUSAGE_CHILDREN) - before_us));
    fflush(stdout);
    wait_forever(NULL);
}
