#include "config/file_stamp.h"

#include <errno.h>
#include <sys/stat.h>

static struct file_stamp mark_of(const char *path)
{
    struct stat st;

    if (!path)
        return (struct file_stamp){0};
    if (stat(path, &st) < 0)
        return (struct file_stamp){.error = errno};
    /* ctime: it also moves where a tool sets mtime back, and with permissions. */
    return (struct file_stamp){
        .inode = st.st_ino, .size_bytes = (uint64_t)st.st_size, .changed = st.st_ctim};
}

static bool are_equal(const struct file_stamp *a, const struct file_stamp *b)
{
    return a->inode == b->inode && a->size_bytes == b->size_bytes && a->error == b->error &&
           a->changed.tv_sec == b->changed.tv_sec && a->changed.tv_nsec == b->changed.tv_nsec;
}

bool file_stamp_renew(struct file_stamp *mark, const char *path)
{
    const struct file_stamp news = mark_of(path);
    bool has_moved = !are_equal(mark, &news);

    *mark = news;
    return has_moved;
}
