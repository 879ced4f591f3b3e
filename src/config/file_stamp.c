#include "config/file_stamp.h"

#include <errno.h>
#include <sys/stat.h>

bool file_stamp_update(struct file_stamp *stamp, const char *path)
{
    const struct file_stamp old = *stamp;
    struct stat st;

    *stamp = (struct file_stamp){0};
    if (path && stat(path, &st) < 0)
        stamp->error = errno;
    else if (path) /* ctime: it also moves when a tool sets mtime back, and with permissions */
        *stamp = (struct file_stamp){
            .inode = st.st_ino, .size_bytes = (uint64_t)st.st_size, .changed = st.st_ctim};
    return old.inode != stamp->inode || old.size_bytes != stamp->size_bytes ||
           old.error != stamp->error || old.changed.tv_sec != stamp->changed.tv_sec ||
           old.changed.tv_nsec != stamp->changed.tv_nsec;
}
