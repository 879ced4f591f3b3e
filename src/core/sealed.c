#include "core/sealed.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/fs.h"
#include "core/macros.h"

/* Without these the sender could cut the bytes under their reader, whose next read would be a
 * SIGBUS. */
static const int SEALS = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW;

int sealed_create(const char *data, size_t len, int *ret_fd)
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
int sealed_check(int fd, uint64_t bytes)
{
    int seals = fcntl(fd, F_GET_SEALS);

    if (seals < 0 || (seals & SEALS) != SEALS || bytes == 0 || bytes > SEALED_MAX_BYTES)
        return -EPROTO;
    return lseek(fd, 0, SEEK_END) == (off_t)bytes ? 0 : -EPROTO;
}
