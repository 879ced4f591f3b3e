#include "collector/state_file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/fs.h"
#include "core/gzip.h"
#include "core/lock.h"
#include "core/pack.h"

/* Then come the version, the length and the checksum of what follows. */
static const char MAGIC[] = "wattribute state\n";

/* Another number for every change of what is packed: a state of another version starts over, and
 * one that is misread must not. test_pipeline_state has a state of each version. */
static const uint64_t VERSION = 2;

enum { MAGIC_BYTES = sizeof(MAGIC) - 1, HEADER_CAP_BYTES = 64, NAME_BYTES = 256 };

struct state_file {
    char *path;
    int dir_fd, lock_fd; /* of the thread, once it runs */
    char name[NAME_BYTES], new_name[NAME_BYTES], bad_name[NAME_BYTES], lock_name[NAME_BYTES];
    pthread_t thread;
    bool has_thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;

    /* Under the lock. */
    struct buffer next; /* to be written, if has_next */
    bool has_next, next_is_durable;
    bool stopping, has_stopped;
    uint64_t submitted, written; /* numbers of writes */
    struct state_file_result result;
};

/* By its first bytes. A power failure may leave none of them, or NULs in their place. */
static bool is_ours(struct span start)
{
    static const char blank[MAGIC_BYTES];
    size_t len = MIN(start.len, (size_t)MAGIC_BYTES);

    return memcmp(start.data, MAGIC, len) == 0 || memcmp(start.data, blank, len) == 0;
}

static const char *describe_type(mode_t mode)
{
    if (S_ISDIR(mode))
        return "a directory";
    if (S_ISLNK(mode))
        return "a symbolic link";
    if (S_ISFIFO(mode))
        return "a pipe";
    return S_ISSOCK(mode) ? "a socket" : "a device";
}

/* May this name be replaced? 0: it is a regular file of ours, or there is none. -EEXIST: it is
 * something else; *ret_what says what. Else -errno. */
static int check_place(const struct state_file *file, const char *name, const char **ret_what)
{
    _cleanup_close_ int fd = -1;
    struct stat status;
    char start[MAGIC_BYTES];
    ssize_t len;

    if (fstatat(file->dir_fd, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -errno;
    if (!S_ISREG(status.st_mode)) { /* to open a device may be to use it */
        *ret_what = describe_type(status.st_mode);
        return -EEXIST;
    }
    fd = openat(file->dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return errno == ENOENT ? 0 : -errno;
    do
        len = pread(fd, start, sizeof(start), 0);
    while (len < 0 && errno == EINTR);
    if (len < 0)
        return -errno;
    if (!is_ours((struct span){start, (size_t)len})) {
        *ret_what = "a file that wattribute did not write";
        return -EEXIST;
    }
    return 0;
}

static int write_contents(int fd, const struct buffer *contents)
{
    struct buffer header;
    int r;

    buffer_init(&header, HEADER_CAP_BYTES);
    buffer_str(&header, MAGIC);
    pack_u64(&header, VERSION);
    pack_u64(&header, contents->len);
    pack_u64(&header, gzip_checksum(contents->data, contents->len));
    r = buffer_failed(&header) ? -ENOMEM : fs_write_all(fd, header.data, header.len);
    buffer_done(&header);
    return r < 0 ? r : fs_write_all(fd, contents->data, contents->len);
}

static int take_lock(struct state_file *file)
{
    file->lock_fd =
        openat(file->dir_fd, file->lock_name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file->lock_fd < 0)
        return -errno;
    return flock(file->lock_fd, LOCK_EX | LOCK_NB) < 0 ? -errno : 0;
}

static int open_dir(struct state_file *file, const char *path)
{
    _cleanup_free_ char *dir_text = strdup(path), *name_text = strdup(path);
    const char *name;

    if (!dir_text || !name_text)
        return -ENOMEM;
    name = basename(name_text);
    if (strlen(name) + sizeof(".lock") > NAME_BYTES)
        return -ENAMETOOLONG;
    snprintf(file->name, NAME_BYTES, "%s", name);
    snprintf(file->new_name, NAME_BYTES, "%s.new", name);
    snprintf(file->bad_name, NAME_BYTES, "%s.bad", name);
    snprintf(file->lock_name, NAME_BYTES, "%s.lock", name);
    file->dir_fd = open(dirname(dir_text), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return file->dir_fd < 0 ? -errno : 0;
}

/* A new file in the place of one that was not finished. A descriptor or -errno. */
static int create_new(const struct state_file *file)
{
    const char *what;
    int fd, r = check_place(file, file->new_name, &what);

    if (r < 0)
        return r;
    if (unlinkat(file->dir_fd, file->new_name, 0) < 0 && errno != ENOENT)
        return -errno;
    fd = openat(file->dir_fd, file->new_name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    return fd < 0 ? -errno : fd;
}

/* The directory may have been removed and made again. */
static int reopen(struct state_file *file)
{
    struct state_file again = {.dir_fd = -1, .lock_fd = -1};
    int r = open_dir(&again, file->path);

    if (r == 0)
        r = take_lock(&again);
    if (r < 0) {
        cleanup_close(&again.dir_fd);
        cleanup_close(&again.lock_fd);
        return r;
    }
    cleanup_close(&file->dir_fd);
    cleanup_close(&file->lock_fd);
    file->dir_fd = again.dir_fd;
    file->lock_fd = again.lock_fd;
    return 0;
}

/* What cannot be synced replaces the file, too: a restart will find it, unless the power fails. The
 * error of that is in *sync, which otherwise stays unless all went well. */
static int replace_file(struct state_file *file, const struct buffer *contents, bool is_durable,
                        int *sync)
{
    _cleanup_close_ int fd = create_new(file);
    const char *what;
    int r = 0, synced = 0;

    if (fd == -ENOENT)
        r = reopen(file);
    if (fd == -ENOENT && r == 0)
        fd = create_new(file);
    if (r < 0 || fd < 0)
        return r < 0 ? r : fd;
    r = write_contents(fd, contents);
    if (r == 0 && is_durable && fsync(fd) < 0)
        synced = -errno;
    if (r == 0) /* somebody may have put something else there */
        r = check_place(file, file->name, &what);
    if (r == 0 && renameat(file->dir_fd, file->new_name, file->dir_fd, file->name) < 0)
        r = -errno;
    /* -EINVAL: some file systems have none for directories. */
    if (r == 0 && is_durable && fsync(file->dir_fd) < 0 && errno != EINVAL)
        synced = -errno;
    if (r == 0 && is_durable)
        *sync = synced;
    return r;
}

static void *run_writer(void *context)
{
    struct state_file *file = context;

    pthread_mutex_lock(&file->lock);
    while (!file->stopping || file->has_next) {
        struct buffer contents = file->next;
        bool is_durable = file->next_is_durable;
        uint64_t number = file->submitted;
        struct state_file_result result = file->result;

        if (!file->has_next) {
            pthread_cond_wait(&file->changed, &file->lock);
            continue;
        }
        file->has_next = file->next_is_durable = false;
        pthread_mutex_unlock(&file->lock);
        result.write = replace_file(file, &contents, is_durable, &result.sync);
        buffer_wipe(&contents);
        pthread_mutex_lock(&file->lock);
        file->written = number;
        file->result = result;
        pthread_cond_broadcast(&file->changed);
    }
    file->has_stopped = true;
    pthread_cond_broadcast(&file->changed);
    pthread_mutex_unlock(&file->lock);
    return NULL;
}

static void free_file(struct state_file *file)
{
    cleanup_close(&file->dir_fd);
    cleanup_close(&file->lock_fd);
    pthread_mutex_destroy(&file->lock);
    pthread_cond_destroy(&file->changed);
    free(file->path);
    free(file);
}

/* Before a lock is left beside something that is not ours. */
static int check_places(const struct state_file *file, struct error *err)
{
    const char *const names[] = {file->name, file->new_name};

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        const char *what;
        int r = check_place(file, names[i], &what);

        if (r == -EEXIST)
            return error_set(err, r,
                             "cannot use the state file '%s': '%s' is %s, and is left as it is; "
                             "set --state-file to a file of its own, or move that one away",
                             file->path, names[i], what);
        if (r < 0)
            return error_set(err, r, "cannot read the state file '%s': %s", file->path,
                             strerror(-r));
    }
    return 0;
}

static int open_and_lock(struct state_file *file, struct error *err)
{
    const char *slash;
    int r;

    if (!file->path)
        return error_set(err, -ENOMEM, "out of memory");
    slash = strrchr(file->path, '/');
    if (slash && slash[1] == '\0')
        return error_set(err, -EEXIST,
                         "cannot use the state file '%s': that is a directory; add the name of a "
                         "file to --state-file",
                         file->path);
    r = open_dir(file, file->path);
    if (r < 0)
        return error_set(err, r, "cannot open the directory of the state file '%s': %s", file->path,
                         strerror(-r));
    r = check_places(file, err);
    if (r < 0)
        return r;
    r = take_lock(file);
    if (r == -EWOULDBLOCK)
        return error_set(err, -EBUSY, "another process uses the state file '%s'", file->path);
    if (r < 0)
        return error_set(err, r, "cannot open '%s.lock', which locks the state file: %s",
                         file->path, strerror(-r));
    return 0;
}

int state_file_open(const char *path, struct state_file **ret_file, struct error *err)
{
    struct state_file *file = calloc(1, sizeof(*file));
    int r;

    if (!file)
        return error_set(err, -ENOMEM, "out of memory");
    file->dir_fd = file->lock_fd = -1;
    file->path = strdup(path);
    pthread_mutex_init(&file->lock, NULL);
    lock_condition_init(&file->changed);
    r = open_and_lock(file, err);
    if (r < 0) {
        free_file(file);
        return r;
    }
    *ret_file = file;
    return 0;
}

bool state_file_close(struct state_file *file, uint64_t timeout_us)
{
    uint64_t until_us = clock_system.monotonic_us(&clock_system) + timeout_us;
    bool has_stopped;

    if (!file)
        return true;
    pthread_mutex_lock(&file->lock);
    file->stopping = true;
    pthread_cond_broadcast(&file->changed);
    while (file->has_thread && !file->has_stopped &&
           lock_wait_until(&file->changed, &file->lock, until_us))
        continue;
    has_stopped = file->has_stopped || !file->has_thread;
    pthread_mutex_unlock(&file->lock);
    if (!has_stopped)
        return false;
    if (file->has_thread)
        pthread_join(file->thread, NULL);
    free_file(file);
    return true;
}

/* Whoever may write to it could add joules to anybody's bill. */
static int check_owner(int fd, struct error *err)
{
    struct stat status;

    if (fstat(fd, &status) < 0)
        return error_set(err, -errno, "cannot examine the state file: %s", strerror(errno));
    if ((status.st_uid != geteuid() && status.st_uid != 0) || (status.st_mode & 022))
        return error_set(err, -EBADMSG, "other users may write to it");
    return 0;
}

static int check_contents(struct span file, struct span *ret_contents, struct error *err)
{
    struct unpack header = {.is_broken = false};
    uint64_t version, len, checksum;

    if (!span_strip_prefix(&file, MAGIC))
        return error_set(err, -EBADMSG, "it is empty or truncated");
    header.rest = file;
    version = unpack_u64(&header, UINT64_MAX);
    len = unpack_u64(&header, UINT64_MAX);
    checksum = unpack_u64(&header, UINT64_MAX);
    if (header.is_broken)
        return error_set(err, -EBADMSG, "it is truncated");
    if (version != VERSION)
        return error_set(err, -EBADMSG, "it is of %s version of the format",
                         version > VERSION ? "a newer" : "an older");
    if (len != header.rest.len)
        return error_set(err, -EBADMSG, "it is truncated");
    if (checksum != gzip_checksum(header.rest.data, header.rest.len))
        return error_set(err, -EBADMSG, "it is damaged: its checksum is wrong");
    *ret_contents = header.rest;
    return 0;
}

int state_file_read(struct state_file *file, char **ret_data, size_t *ret_len, struct error *err)
{
    /* state_file_open has looked; should a pipe have taken its place since, it must not block. */
    _cleanup_close_ int fd =
        openat(file->dir_fd, file->name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct span contents = {NULL, 0};
    char *data;
    size_t len;
    int r;

    if (fd < 0 && errno == ENOENT)
        return -ENOENT;
    if (fd < 0)
        return error_set(err, -errno, "cannot read the state file '%s': %s", file->path,
                         strerror(errno));
    r = check_owner(fd, err);
    if (r < 0)
        return r;
    r = fs_read_fd(fd, HEADER_CAP_BYTES + STATE_FILE_CAP_BYTES, &data, &len);
    if (r < 0)
        return error_set(err, r == -ENOMEM ? r : -EBADMSG, "%s", strerror(-r));
    r = is_ours((struct span){data, len})
            ? check_contents((struct span){data, len}, &contents, err)
            : error_set(err, -EEXIST, "cannot use the state file '%s': another took its place",
                        file->path);
    if (r < 0) {
        free(data);
        return r;
    }
    memmove(data, contents.data, contents.len);
    *ret_data = data;
    *ret_len = contents.len;
    return 0;
}

int state_file_set_aside(struct state_file *file)
{
    const char *what;
    int r = check_place(file, file->name, &what);

    if (r == 0)
        r = check_place(file, file->bad_name, &what);
    if (r < 0)
        return r;
    return renameat(file->dir_fd, file->name, file->dir_fd, file->bad_name) < 0 ? -errno : 0;
}

const char *state_file_strerror(int error)
{
    return error == -EEXIST ? "something that wattribute did not write is in its place"
                            : strerror(-error);
}

uint64_t state_file_write(struct state_file *file, struct buffer *contents, bool is_durable)
{
    HOLD_LOCK(&file->lock);

    /* Not before the first write, when the program has set its signals. */
    if (!file->has_thread) {
        int r = -pthread_create(&file->thread, NULL, run_writer, file);

        if (r < 0) {
            buffer_wipe(contents);
            file->result.write = r;
            return file->written = ++file->submitted;
        }
        file->has_thread = true;
    }
    if (file->has_next)
        buffer_wipe(&file->next);
    file->next = *contents;
    file->has_next = true;
    file->next_is_durable |= is_durable;
    file->submitted++;
    *contents = (struct buffer){0};
    pthread_cond_broadcast(&file->changed);
    return file->submitted;
}

bool state_file_wait(struct state_file *file, uint64_t number, uint64_t until_us,
                     struct state_file_result *ret_result)
{
    HOLD_LOCK(&file->lock);

    while (file->written < number)
        if (!lock_wait_until(&file->changed, &file->lock, until_us))
            return false;
    *ret_result = file->result;
    return true;
}
