#include "config/emission_ca.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/macros.h"

/* Whether everybody may enter all directories that the path names. */
static int check_way(const char *path, struct error *err)
{
    struct stat st;

    for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        char directory[PATH_MAX];

        snprintf(directory, sizeof(directory), "%.*s", (int)(slash - path) + 1, path);
        if (stat(directory, &st) == 0 && !(st.st_mode & S_IXOTH))
            return error_set(err, -EACCES,
                             "--emissions.ca-file: everybody must be able to enter %.300s, since "
                             "who asks has no privileges; chmod a+x it, or put the file elsewhere",
                             directory);
    }
    return 0;
}

int emission_ca_check(const char *path, struct error *err)
{
    _cleanup_free_ char *real = NULL;
    struct stat st;
    int r;

    if (path[0] == '\0')
        return 0;
    if (stat(path, &st) < 0)
        return error_set(err, -errno, "--emissions.ca-file %.300s: %s", path, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return error_set(err, -ENXIO, "--emissions.ca-file %.300s: Not a regular file", path);
    if (!(st.st_mode & S_IROTH))
        return error_set(err, -EACCES,
                         "--emissions.ca-file %.300s: everybody must be able to read it, since who "
                         "asks has no privileges; chmod a+r it",
                         path);
    if (geteuid() != 0)
        return 0;
    r = check_way(path, err);
    if (r < 0)
        return r;
    real = realpath(path, NULL);
    return real ? check_way(real, err) : 0;
}
