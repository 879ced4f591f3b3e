#include "host/program_read.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/fs.h"
#include "core/macros.h"

enum {
    READS_MAX = 8, /* at a time: each that hangs keeps its thread */
    STACK_BYTES = 256 << 10,
    ARGUMENTS_BYTES = 32 << 10, /* a longer command line has no key */
};

static atomic_int reading;

/* Owned by its user and its thread; the last one frees it. */
struct program_read {
    pthread_mutex_t lock;
    pthread_cond_t over;
    unsigned owners;
    bool is_over;
    struct program_key key;

    int process_fd;
    uint64_t boot_us, start_us;
    struct program_secret secret;
};

static void release(struct program_read *read)
{
    bool is_last;

    pthread_mutex_lock(&read->lock);
    is_last = --read->owners == 0;
    pthread_mutex_unlock(&read->lock);
    if (!is_last)
        return;
    pthread_cond_destroy(&read->over);
    pthread_mutex_destroy(&read->lock);
    close(read->process_fd);
    explicit_bzero(&read->secret, sizeof(read->secret));
    free(read);
}

static struct program_key read_key(const struct program_read *read)
{
    char path[PATH_MAX], arguments[ARGUMENTS_BYTES];
    struct program_key key = {0};
    struct span executable;
    uint64_t start_us;
    size_t len;

    if (fs_read_at(read->process_fd, "cmdline", arguments, sizeof(arguments), &len) == 0 &&
        proc_read_start(read->process_fd, read->boot_us, &start_us) == 0 &&
        start_us == read->start_us) { /* the pid was not reused meanwhile */
        executable = proc_read_executable(read->process_fd, path, sizeof(path));
        key = program_key_of(&read->secret, executable, (struct span){arguments, len});
    }
    explicit_bzero(arguments, sizeof(arguments)); /* they may hold passwords */
    return key;
}

static void *run(void *context)
{
    struct program_read *read = context;
    struct program_key key = read_key(read);

    atomic_fetch_sub(&reading, 1);
    pthread_mutex_lock(&read->lock);
    read->key = key;
    read->is_over = true;
    pthread_cond_signal(&read->over);
    pthread_mutex_unlock(&read->lock);
    release(read);
    return NULL;
}

static int start_thread(struct program_read *read)
{
    pthread_attr_t attributes;
    pthread_t thread;
    int r = -pthread_attr_init(&attributes);

    if (r < 0)
        return r;
    r = -pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    if (r == 0)
        r = -pthread_attr_setstacksize(&attributes, STACK_BYTES);
    if (r == 0)
        r = -pthread_create(&thread, &attributes, run, read);
    pthread_attr_destroy(&attributes);
    return r;
}

struct program_read *program_read_start(const struct proc_reader *reader, uint32_t pid,
                                        uint64_t start_us)
{
    const struct program_secret *secret = &reader->host->program_secret;
    struct program_read *read;
    pthread_condattr_t clock;

    if ((secret->words[0] | secret->words[1]) == 0)
        return NULL;
    read = calloc(1, sizeof(*read));
    if (!read)
        return NULL;
    read->process_fd = proc_open(reader->host, pid);
    if (read->process_fd < 0) {
        free(read);
        return NULL;
    }
    read->owners = 1;
    read->boot_us = reader->boot_us;
    read->start_us = start_us;
    read->secret = *secret;
    pthread_mutex_init(&read->lock, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&read->over, &clock);
    pthread_condattr_destroy(&clock);
    if (atomic_fetch_add(&reading, 1) < READS_MAX) {
        read->owners = 2;
        if (start_thread(read) == 0)
            return read;
        read->owners = 1;
    }
    atomic_fetch_sub(&reading, 1);
    release(read);
    return NULL;
}

bool program_read_wait(struct program_read *read, uint32_t timeout_ms, struct program_key *ret_key)
{
    struct timespec until;
    bool is_over;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long)timeout_ms * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&read->lock);
    while (!read->is_over && pthread_cond_timedwait(&read->over, &read->lock, &until) == 0)
        ;
    is_over = read->is_over;
    if (is_over)
        *ret_key = read->key;
    pthread_mutex_unlock(&read->lock);
    return is_over;
}

void program_read_free(struct program_read *read)
{
    if (read)
        release(read);
}
