/* Reading files relative to a directory descriptor, so that tests can supply a tree. */
#pragma once

#include <dirent.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Reads a whole pseudo-file into `buffer`, NUL-terminated. May block as long as the file does.
 * Returns 0, -errno, or -EFBIG when the file does not fit: nothing is truncated.
 */
int fs_read_at(int dir_fd, const char *path, char *buffer, size_t size_bytes, size_t *ret_len);

/* The same for a file that stays open: one pread from its start, for which the kernel formats it
 * anew. */
int fs_reread(int fd, char *buffer, size_t size_bytes, size_t *ret_len);

/* The same into malloc'ed memory, of a path or from the current offset of a descriptor. -EFBIG: it
 * is longer than `cap_bytes`. */
int fs_read_all_at(int dir_fd, const char *path, size_t cap_bytes, char **ret_data,
                   size_t *ret_len);
int fs_read_fd(int fd, size_t cap_bytes, char **ret_data, size_t *ret_len);

/*
 * Opens a file that a user named. A descriptor or -errno; -ENXIO when it is neither a regular file
 * nor /dev/null: a pipe without a writer and a terminal block, and a device may never end. Does not
 * block itself.
 */
int fs_open_regular(const char *path);

/* Reads such a file, as fs_read_fd. */
int fs_read_regular(const char *path, size_t cap_bytes, char **ret_data, size_t *ret_len);

/* strerror() for the two above: "Not a regular file" for -ENXIO. */
const char *fs_strerror(int error);

/* Opens a directory, for closedir(); links are not followed. NULL with errno on failure. */
DIR *fs_open_dir(int dir_fd, const char *path);

/* Writes everything or fails. */
int fs_write_all(int fd, const char *data, size_t len);

enum { SEALED_MAX_BYTES = 256 << 20 };

/* Copies `data` for another process into a new memfd that cannot be changed any more. -EFBIG when
 * it is empty or over SEALED_MAX_BYTES, which the other end would reject. */
int fs_create_sealed(const char *data, size_t len, int *ret_fd);

/* 0: it is sealed and exactly this long, so that mapping it is safe. Else -EPROTO. */
int fs_check_sealed(int fd, uint64_t bytes);
