/* Reading files relative to a directory descriptor, so that every test can hand in a tree. */
#pragma once

#include <dirent.h>
#include <stddef.h>

/*
 * Reads a whole pseudo-file into `buffer`, NUL-terminated. May block as long as the file does.
 * Returns 0, -errno, or -EFBIG when the file does not fit: nothing is ever silently cut.
 */
int fs_read_at(int dir_fd, const char *path, char *buffer, size_t size_bytes, size_t *ret_len);

/* The same for a file that stays open: one pread from its start, for which the kernel writes it
 * anew. */
int fs_read_kept(int fd, char *buffer, size_t size_bytes, size_t *ret_len);

/* The same for an open descriptor, from where it stands, into malloc'ed memory. -EFBIG when there
 * are more than `cap_bytes`. */
int fs_read_fd(int fd, size_t cap_bytes, char **ret_data, size_t *ret_len);

/*
 * A descriptor of a file that a user named, or -errno. -ENXIO when it is neither a regular file nor
 * /dev/null: a pipe without a writer and a terminal block, and a device may never end. Does not
 * block itself.
 */
int fs_open_regular(const char *path);

/* The whole of such a file, as fs_read_fd gives it. */
int fs_read_regular(const char *path, size_t cap_bytes, char **ret_data, size_t *ret_len);

/* strerror() of what the two above return: "Not a regular file" for -ENXIO. */
const char *fs_strerror(int error);

/* A directory, to be closed with closedir(); links are not followed. NULL: it cannot be opened, and
 * errno says why. */
DIR *fs_open_dir(int dir_fd, const char *path);

/* Writes everything or fails. */
int fs_write_all(int fd, const char *data, size_t len);
