/* What is logged while a test looks. */
#pragma once

#include "unit.h"

#include <sys/mman.h>
#include <unistd.h>

/* Standard error goes into a memory file between begin and end. */
struct capture {
    int file_fd, stderr_fd;
};

static struct capture capture_begin(void)
{
    struct capture capture = {memfd_create("log", MFD_CLOEXEC), dup(STDERR_FILENO)};

    assert_true(capture.file_fd >= 0 && capture.stderr_fd >= 0);
    dup2(capture.file_fd, STDERR_FILENO);
    return capture;
}

static void capture_end(struct capture capture, char *text, size_t size_bytes)
{
    ssize_t n = pread(capture.file_fd, text, size_bytes - 1, 0);

    dup2(capture.stderr_fd, STDERR_FILENO);
    close(capture.stderr_fd);
    close(capture.file_fd);
    assert_true(n >= 0 && (size_t)n < size_bytes - 1);
    text[n] = '\0';
}
