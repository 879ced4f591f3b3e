#include "host/host.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"
#include "host/cgroup_root.h"

static int open_root(const char *flag, const char *path, int *ret_fd, struct error *err)
{
    int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return error_set(err, -errno,
                         "cannot open %s '%s': %s; give the directory where it is "
                         "mounted",
                         flag, path, strerror(errno));
    *ret_fd = fd;
    return 0;
}

int host_open(const char *procfs_path, const char *sysfs_path, const char *rootfs_path,
              struct host *ret_host, struct error *err)
{
    _cleanup_close_ int procfs = -1, sysfs = -1, rootfs = -1;
    int r;

    if ((r = open_root("--path.procfs", procfs_path, &procfs, err)) < 0 ||
        (r = open_root("--path.sysfs", sysfs_path, &sysfs, err)) < 0 ||
        (r = open_root("--path.rootfs", rootfs_path, &rootfs, err)) < 0)
        return r;
    *ret_host = (struct host){TAKE_FD(procfs), TAKE_FD(sysfs), TAKE_FD(rootfs), NULL};
    /* Without, processes count as outside: `check` and a metric say so. */
    (void)cgroup_root_find(ret_host, &ret_host->cgroup_root);
    return 0;
}

void host_close(struct host *host)
{
    cleanup_close(&host->procfs_fd);
    cleanup_close(&host->sysfs_fd);
    cleanup_close(&host->rootfs_fd);
    free(host->cgroup_root);
    *host = (struct host){-1, -1, -1, NULL};
}
