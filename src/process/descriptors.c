#include "process/descriptors.h"

#include <errno.h>

#include "core/macros.h"

enum {
    USUAL = 1024, /* the kernel's and systemd's default for the soft limit */
    NEEDED = 128, /* of which the reader of cgroups takes at most half, and children's 70 */
};

rlim_t descriptors_raise(rlim_t wanted)
{
    struct rlimit limit, raised;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0) /* a system call filter may forbid it */
        return RLIM_INFINITY;
    raised = (struct rlimit){MIN(limit.rlim_max, wanted), limit.rlim_max};
    if (raised.rlim_cur > limit.rlim_cur && setrlimit(RLIMIT_NOFILE, &raised) == 0)
        limit = raised;
    return limit.rlim_cur;
}

int descriptors_prepare(struct error *err)
{
    rlim_t limit = descriptors_raise(USUAL);

    if (limit >= NEEDED)
        return 0;
    return error_set(err, -EMFILE,
                     "the limit of open files is %llu, and at least %d are needed; raise it "
                     "(systemd: LimitNOFILE=1024, Docker: --ulimit nofile=1024, shell: ulimit -n "
                     "1024)",
                     (unsigned long long)limit, NEEDED);
}
