#include "identity/process/list.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>

#include "core/array.h"
#include "core/macros.h"
#include "core/parse.h"

void process_list_done(struct process_list *list)
{
    free(list->items);
    *list = (struct process_list){0};
}

static int add(struct process_list *list, const struct dirent64 *entry, size_t cap)
{
    uint64_t pid;

    /* A check of one byte is all that most of the other names cost. */
    if (entry->d_name[0] < '1' || entry->d_name[0] > '9' ||
        parse_u64_max(span_of(entry->d_name), INT32_MAX, &pid) < 0)
        return 0;
    if (list->count == cap) {
        list->left_out++;
        return 0;
    }
    if (!array_make_room(&list->items, &list->capacity, list->count, sizeof(*list->items)))
        return -ENOMEM;
    list->items[list->count++] = (struct process_list_item){entry->d_ino, (uint32_t)pid};
    return 0;
}

static int by_pid(const void *a, const void *b)
{
    const struct process_list_item *x = a, *y = b;

    return (x->pid > y->pid) - (x->pid < y->pid);
}

/* The kernel lists pids in order; a tree on another filesystem may not. */
static void sort(struct process_list *list)
{
    size_t kept = 0;

    for (size_t i = 1; i < list->count; i++)
        if (list->items[i - 1].pid >= list->items[i].pid) {
            qsort(list->items, list->count, sizeof(*list->items), by_pid);
            break;
        }
    for (size_t i = 0; i < list->count; i++)
        if (kept == 0 || list->items[kept - 1].pid != list->items[i].pid)
            list->items[kept++] = list->items[i];
    list->count = kept;
}

int process_list_read(struct process_list *list, int procfs_fd, size_t cap, void *buffer,
                      size_t buffer_bytes)
{
    _cleanup_close_ int fd = openat(procfs_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ssize_t len;

    if (fd < 0)
        return -errno;
    list->count = 0;
    list->left_out = 0;
    /* Not readdir: its buffer of 32 KiB would have to be allocated for each scan. */
    while ((len = getdents64(fd, buffer, buffer_bytes)) > 0)
        for (char *at = buffer; at < (char *)buffer + len;) {
            const struct dirent64 *entry = (const void *)at;
            int r = add(list, entry, cap);

            if (r < 0)
                return r;
            at += entry->d_reclen;
        }
    if (len < 0)
        return -errno;
    sort(list);
    return 0;
}
