#include "host/memory_read.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/lock.h"
#include "core/macros.h"

enum { STACK_BYTES = 256 << 10 };

/* Owned by its user and its thread; the last one frees it. */
struct memory_read {
    pthread_mutex_t lock;
    pthread_cond_t over;
    unsigned owners;
    bool is_over;

    int process_fd;
    uint32_t uid;
    ino_t process; /* of /proc/PID: another process with this pid has another */
    const char *file;
    size_t max_bytes;
    size_t len;
    char text[];
};

/* All that are being read, by whichever threads of this program. */
static struct {
    pthread_mutex_t lock;
    const struct memory_read *reads[MEMORY_READS_MAX];
    size_t count;
} active = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool active_add(const struct memory_read *read)
{
    HOLD_LOCK(&active.lock);
    size_t of_user = 0;

    for (size_t i = 0; i < active.count; i++) {
        const struct memory_read *other = active.reads[i];

        of_user += other->uid == read->uid;
        if (other->process == read->process && strcmp(other->file, read->file) == 0)
            return false;
    }
    if (active.count == MEMORY_READS_MAX || of_user == MEMORY_READS_PER_USER_MAX)
        return false;
    active.reads[active.count++] = read;
    return true;
}

static void active_remove(const struct memory_read *read)
{
    HOLD_LOCK(&active.lock);

    for (size_t i = 0; i < active.count; i++)
        if (active.reads[i] == read) {
            active.reads[i] = active.reads[--active.count];
            return;
        }
}

static void release(struct memory_read *read)
{
    bool is_last;

    pthread_mutex_lock(&read->lock);
    is_last = --read->owners == 0;
    pthread_mutex_unlock(&read->lock);
    if (!is_last)
        return;
    pthread_cond_destroy(&read->over);
    pthread_mutex_destroy(&read->lock);
    cleanup_close(&read->process_fd);
    explicit_bzero(read->text, read->len);
    free(read);
}

/* As much of the file as fits. To open it may hang, too. */
static size_t read_front(struct memory_read *to)
{
    _cleanup_close_ int fd = openat(to->process_fd, to->file, O_RDONLY | O_CLOEXEC);
    size_t len = 0;
    ssize_t n;

    while (fd >= 0 && len < to->max_bytes &&
           (n = read(fd, to->text + len, to->max_bytes - len)) > 0)
        len += (size_t)n;
    return len;
}

static void *run(void *context)
{
    struct memory_read *read = context;
    size_t len = read_front(read);

    active_remove(read);
    pthread_mutex_lock(&read->lock);
    read->len = len;
    read->is_over = true;
    pthread_cond_signal(&read->over);
    pthread_mutex_unlock(&read->lock);
    release(read);
    return NULL;
}

static int start_thread(struct memory_read *read)
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

struct memory_read *memory_read_start(int process_fd, uint32_t uid, const char *file,
                                      size_t max_bytes)
{
    struct memory_read *read = malloc(sizeof(*read) + max_bytes);
    struct stat st = {0};

    if (!read)
        return NULL;
    *read = (struct memory_read){
        .owners = 1,
        .process_fd = fcntl(process_fd, F_DUPFD_CLOEXEC, 0),
        .uid = uid,
        .file = file,
        .max_bytes = max_bytes,
    };
    pthread_mutex_init(&read->lock, NULL);
    lock_condition_init(&read->over);
    if (read->process_fd >= 0 && fstat(read->process_fd, &st) == 0) {
        read->process = st.st_ino;
        if (active_add(read)) {
            read->owners = 2;
            if (start_thread(read) == 0)
                return read;
            read->owners = 1;
            active_remove(read);
        }
    }
    release(read);
    return NULL;
}

bool memory_read_wait(struct memory_read *read, uint32_t timeout_ms, struct span *ret_text)
{
    uint64_t until_us = clock_system.monotonic_us(&clock_system) + timeout_ms * (uint64_t)1000;
    HOLD_LOCK(&read->lock);

    while (!read->is_over && lock_wait_until(&read->over, &read->lock, until_us))
        ;
    if (read->is_over)
        *ret_text = (struct span){read->text, read->len};
    return read->is_over;
}

void memory_read_free(struct memory_read *read)
{
    if (read)
        release(read);
}
