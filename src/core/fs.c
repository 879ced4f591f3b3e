#include "core/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "core/macros.h"

/* Reads until end of file or until `size_bytes` are full. */
static ssize_t read_up_to(int fd, char *buffer, size_t size_bytes)
{
    size_t len = 0;

    while (len < size_bytes) {
        ssize_t n = read(fd, buffer + len, size_bytes - len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        len += (size_t)n;
    }
    return (ssize_t)len;
}

/* Ends a text that was read into a buffer of `size_bytes`, of which one must be left. */
static int terminate_text(ssize_t n, char *buffer, size_t size_bytes, size_t *ret_len)
{
    if (n < 0)
        return (int)n;
    if ((size_t)n == size_bytes)
        return -EFBIG;
    buffer[n] = '\0';
    *ret_len = (size_t)n;
    return 0;
}

int fs_read_at(int dir_fd, const char *path, char *buffer, size_t size_bytes, size_t *ret_len)
{
    _cleanup_close_ int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

    if (fd < 0)
        return -errno;
    return terminate_text(read_up_to(fd, buffer, size_bytes), buffer, size_bytes, ret_len);
}

int fs_reread(int fd, char *buffer, size_t size_bytes, size_t *ret_len)
{
    ssize_t n;

    do
        n = pread(fd, buffer, size_bytes, 0);
    while (n < 0 && errno == EINTR);
    return terminate_text(n < 0 ? -errno : n, buffer, size_bytes, ret_len);
}

int fs_read_fd(int fd, size_t cap_bytes, char **ret_data, size_t *ret_len)
{
    _cleanup_free_ char *data = NULL;
    size_t len = 0, capacity = MIN((size_t)4096, cap_bytes + 1);

    for (;;) {
        char *grown = realloc(data, capacity + 1);
        ssize_t n;

        if (!grown)
            return -ENOMEM;
        data = grown;
        n = read_up_to(fd, data + len, capacity - len);
        if (n < 0)
            return (int)n;
        len += (size_t)n;
        if (len > cap_bytes)
            return -EFBIG;
        if (len < capacity)
            break;
        capacity = MIN(capacity * 2, cap_bytes + 1);
    }
    data[len] = '\0';
    *ret_data = TAKE_PTR(data);
    *ret_len = len;
    return 0;
}

int fs_read_all_at(int dir_fd, const char *path, size_t cap_bytes, char **ret_data, size_t *ret_len)
{
    _cleanup_close_ int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

    return fd < 0 ? -errno : fs_read_fd(fd, cap_bytes, ret_data, ret_len);
}

int fs_open_regular(const char *path)
{
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return -errno;
    /* /dev/null, which stands for an empty file, is device 1:3 (the kernel's
     * Documentation/admin-guide/devices.txt). */
    if (!S_ISREG(st.st_mode) && !(S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3)))
        return S_ISDIR(st.st_mode) ? -EISDIR : -ENXIO;
    return TAKE_FD(fd);
}

int fs_read_regular(const char *path, size_t cap_bytes, char **ret_data, size_t *ret_len)
{
    _cleanup_close_ int fd = fs_open_regular(path);

    return fd < 0 ? fd : fs_read_fd(fd, cap_bytes, ret_data, ret_len);
}

const char *fs_strerror(int error)
{
    return error == -ENXIO ? "Not a regular file" : strerror(-error);
}

DIR *fs_open_dir(int dir_fd, const char *path)
{
    int fd = openat(dir_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;

    if (!dir)
        cleanup_close(&fd);
    return dir;
}

int fs_write_all(int fd, const char *data, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, data, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        data += n;
        len -= (size_t)n;
    }
    return 0;
}

/* Without these the sender could cut the bytes under their reader, whose next read would be a
 * SIGBUS. */
static const int SEALS = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW;

int fs_create_sealed(const char *data, size_t len, int *ret_fd)
{
    _cleanup_close_ int fd = -1;
    int r;

    if (len == 0 || len > SEALED_MAX_BYTES)
        return -EFBIG;
    fd = memfd_create("wattribute", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return -errno;
    r = fs_write_all(fd, data, len);
    if (r < 0)
        return r;
    if (fcntl(fd, F_ADD_SEALS, SEALS | F_SEAL_SEAL) < 0)
        return -errno;
    *ret_fd = TAKE_FD(fd);
    return 0;
}

/* The size comes from lseek: glibc 2.36 turns fstat into a newfstatat, which a sandbox would have
 * to allow for every path. */
int fs_check_sealed(int fd, uint64_t bytes)
{
    int seals = fcntl(fd, F_GET_SEALS);

    if (seals < 0 || (seals & SEALS) != SEALS || bytes == 0 || bytes > SEALED_MAX_BYTES)
        return -EPROTO;
    return lseek(fd, 0, SEEK_END) == (off_t)bytes ? 0 : -EPROTO;
}
