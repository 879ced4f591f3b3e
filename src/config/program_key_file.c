#include "config/program_key_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/fs.h"
#include "core/macros.h"
#include "core/parse.h"

enum { DIGITS = 2 * sizeof(struct program_secret), FILE_BYTES = DIGITS + 1 };

static const char FLAG[] = "--program-key-file";

static int create_file(const char *path, struct program_secret *ret_secret, struct error *err)
{
    static const char hex[] = "0123456789abcdef";
    unsigned char bytes[sizeof(*ret_secret)];
    char text[FILE_BYTES];
    int r = 0, fd;

    if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
        return error_set(err, -EIO, "%s '%s': the kernel gives no random bytes: %s", FLAG, path,
                         strerror(errno));
    for (size_t i = 0; i < sizeof(bytes); i++) {
        text[2 * i] = hex[bytes[i] >> 4];
        text[2 * i + 1] = hex[bytes[i] & 15];
    }
    text[DIGITS] = '\n';
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return error_set(err, -errno, "%s '%s': cannot be created: %s", FLAG, path,
                         strerror(errno));
    r = fs_write_all(fd, text, sizeof(text));
    if (r == 0 && fsync(fd) < 0)
        r = -errno;
    if (close(fd) < 0 && r == 0)
        r = -errno;
    if (r == 0)
        memcpy(ret_secret, bytes, sizeof(bytes));
    else
        unlink(path); /* half a secret would be refused for ever */
    explicit_bzero(bytes, sizeof(bytes));
    explicit_bzero(text, sizeof(text));
    return r < 0 ? error_set(err, r, "%s '%s': cannot be written: %s", FLAG, path, strerror(-r))
                 : 0;
}

/* Another user who owns the file knows the secret, and can choose it. */
static int check_access(int fd, const char *path, struct error *err)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return error_set(err, -errno, "%s '%s': cannot be read: %s", FLAG, path, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return error_set(err, -ENXIO, "%s '%s': is not a regular file; specify a file", FLAG, path);
    if (st.st_mode & 077)
        return error_set(err, -EACCES,
                         "%s '%s': contains a secret, but its mode %04o gives access to others "
                         "than its owner; chmod 600 it, or remove it to get a new one",
                         FLAG, path, (unsigned)(st.st_mode & 07777));
    if (st.st_uid != 0 && st.st_uid != geteuid())
        return error_set(err, -EPERM,
                         "%s '%s': contains a secret, but belongs to user %u; chown it to the user "
                         "of this process, or remove it to get a new one",
                         FLAG, path, (unsigned)st.st_uid);
    return 0;
}

bool program_key_file_parse(struct span text, struct program_secret *ret_secret)
{
    unsigned char bytes[sizeof(*ret_secret)] = {0};
    unsigned any = 0;

    if (text.len != FILE_BYTES || text.data[DIGITS] != '\n')
        return false;
    for (size_t i = 0; i < DIGITS; i++) {
        char c = text.data[i];

        if (!parse_is_hex(c))
            return false;
        bytes[i / 2] = (unsigned char)(bytes[i / 2] << 4 | (c <= '9' ? c - '0' : c - 'a' + 10));
        any |= bytes[i / 2];
    }
    if (any)
        memcpy(ret_secret, bytes, sizeof(bytes));
    explicit_bzero(bytes, sizeof(bytes));
    return any;
}

int program_key_file_load(const char *path, struct program_secret *ret_secret, struct error *err)
{
    _cleanup_close_ int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct program_secret secret = {0};
    char text[FILE_BYTES + 2]; /* one more than a good file has, and a NUL */
    size_t len;
    bool is_good;
    int r;

    if (fd < 0 && errno == ENOENT)
        return create_file(path, ret_secret, err);
    if (fd < 0)
        return error_set(err, -errno, "%s '%s': cannot be opened: %s", FLAG, path,
                         errno == ELOOP ? "it is a symbolic link; specify the file itself"
                                        : strerror(errno));
    r = check_access(fd, path, err);
    if (r < 0)
        return r;
    r = fs_reread(fd, text, sizeof(text), &len);
    is_good = r == 0 && program_key_file_parse((struct span){text, len}, &secret);
    explicit_bzero(text, sizeof(text));
    if (r < 0 && r != -EFBIG)
        return error_set(err, r, "%s '%s': cannot be read: %s", FLAG, path, strerror(-r));
    if (!is_good)
        return error_set(
            err, -EINVAL,
            "%s '%s': is not 32 digits of 0-9 and a-f (not all 0) and a newline; remove "
            "it to get a new one",
            FLAG, path);
    *ret_secret = secret;
    explicit_bzero(&secret, sizeof(secret));
    return 0;
}
