#include "process/descriptors.h"

#include <errno.h>
#include <sys/resource.h>

#include "core/macros.h"

enum {
    USUAL = 1024, /* the kernel's and systemd's default for the soft limit */
    NEEDED = 128, /* of which the reader of cgroups takes at most half, and children's 70 */
};

int descriptors_prepare(struct error *err)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0) /* a system call filter may forbid it */
        return 0;
    if (limit.rlim_cur < USUAL && limit.rlim_cur < limit.rlim_max) {
        struct rlimit raised = {MIN(limit.rlim_max, (rlim_t)USUAL), limit.rlim_max};

        if (setrlimit(RLIMIT_NOFILE, &raised) == 0)
            limit = raised;
    }
    if (limit.rlim_cur >= NEEDED)
        return 0;
    return error_set(err, -EMFILE,
                     "the limit of open files is %llu, and at least %d are needed; raise it "
                     "(systemd: LimitNOFILE=1024, Docker: --ulimit nofile=1024, shell: ulimit -n "
                     "1024)",
                     (unsigned long long)limit.rlim_cur, NEEDED);
}
