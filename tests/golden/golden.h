/*
 * Golden files: whole pages that a test compares with what it rendered. Where a change of them is
 * meant, UPDATE_GOLDEN=1 in the environment writes them anew; read the diff before you commit it.
 */
#pragma once

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/buffer.h"
#include "core/fs.h"
#include "core/span.h"

static void golden_update(const char *path, const struct buffer *page)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    if (fd < 0 || fs_write_all(fd, page->data, page->len) < 0)
        fail_msg("cannot write %s", path);
    close(fd);
}

/* Says where the two part, and how the file is renewed. */
static void golden_fail(const char *path, struct span expected, struct span got)
{
    for (unsigned line = 1;; line++) {
        struct span old = span_cut(&expected, '\n'), new = span_cut(&got, '\n');

        if (old.len == new.len && memcmp(old.data, new.data, old.len) == 0 &&
            (expected.len > 0 || got.len > 0))
            continue;
        fail_msg("%s differs at line %u:\n- %.*s\n+ %.*s\n"
                 "If that is meant: UPDATE_GOLDEN=1 meson test -C build, then read git diff.",
                 path, line, (int)old.len, old.data, (int)new.len, new.data);
    }
}

static void golden_check(const char *name, const struct buffer *page)
{
    char path[4096], *data = NULL;
    size_t len = 0;
    int fd;

    assert_false(buffer_failed(page));
    snprintf(path, sizeof(path), "%s/tests/golden/%s", SOURCE_DIR, name);
    if (getenv("UPDATE_GOLDEN"))
        golden_update(path, page);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fs_read_fd(fd, 64 << 20, &data, &len) < 0)
        fail_msg("cannot read %s; write it with UPDATE_GOLDEN=1", path);
    close(fd);
    if (len != page->len || memcmp(data, page->data, len) != 0)
        golden_fail(path, (struct span){data, len}, (struct span){page->data, page->len});
    free(data);
}
