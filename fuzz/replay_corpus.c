/* A main that runs every file of a corpus through a fuzz target, so that corpora are ordinary
 * tests. */
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/fs.h"
#include "core/macros.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int main(int argc, char **argv)
{
    DIR *dir = argc == 2 ? opendir(argv[1]) : NULL;
    const struct dirent *entry;
    int count = 0;

    if (!dir) {
        fprintf(stderr, "usage: %s CORPUS-DIRECTORY\n", argv[0]);
        return 2;
    }
    while ((entry = readdir(dir))) {
        _cleanup_close_ int fd = -1;
        _cleanup_free_ char *data = NULL;
        size_t len;

        if (entry->d_name[0] == '.')
            continue;
        fd = openat(dirfd(dir), entry->d_name, O_RDONLY | O_CLOEXEC);
        if (fd < 0 || fs_read_fd(fd, 16 << 20, &data, &len) < 0) {
            fprintf(stderr, "cannot read %s\n", entry->d_name);
            return 1;
        }
        LLVMFuzzerTestOneInput((const uint8_t *)data, len);
        count++;
    }
    closedir(dir);
    printf("%d inputs\n", count);
    return count > 0 ? 0 : 1; /* an empty corpus proves nothing */
}
