/* Single files for code under test: of any bytes in a directory, or somewhere of their own. */
#pragma once

#include "unit.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/fs.h"
#include "core/macros.h"

enum { FILE_PATH_BYTES = sizeof("/tmp/wattribute-test-XXXXXX") };

/* What is there is replaced. The directory may be AT_FDCWD. */
static void file_write_at(int directory_fd, const char *name, const char *data, size_t len)
{
    _cleanup_close_ int fd =
        openat(directory_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    assert_true(fd >= 0);
    assert_int_equal(fs_write_all(fd, data, len), 0);
}

/* One that is new, with this mode whatever the umask; to be unlinked by the caller. */
static void file_make(char path[FILE_PATH_BYTES], const char *text, mode_t mode)
{
    _cleanup_close_ int fd = -1;

    memcpy(path, "/tmp/wattribute-test-XXXXXX", FILE_PATH_BYTES);
    fd = mkostemp(path, O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(fs_write_all(fd, text, strlen(text)), 0);
    assert_int_equal(fchmod(fd, mode), 0);
}
