#include "process/sandbox.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "process/sanitized.h"

/* Needs CAP_SETPCAP, so it comes before anything is given up; without it the set matters little, as
 * nothing can be gained from it once PR_SET_NO_NEW_PRIVS is set. */
static void drop_bounding_set(void)
{
    for (unsigned long cap = 0; cap < 64; cap++)
        if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
            return;
}

/* EPERM: no CAP_SETUID or CAP_SETGID. EINVAL: a user namespace in which nobody is not mapped. */
static bool is_tolerable(int error)
{
    return error == EPERM || error == EINVAL;
}

static int become_nobody(void)
{
    if (geteuid() != 0)
        return 0;
    if (setgroups(0, NULL) < 0 && !is_tolerable(errno))
        return -errno;
    if (setresgid(SANDBOX_NOBODY, SANDBOX_NOBODY, SANDBOX_NOBODY) < 0 && !is_tolerable(errno))
        return -errno;
    if (setresuid(SANDBOX_NOBODY, SANDBOX_NOBODY, SANDBOX_NOBODY) < 0 && !is_tolerable(errno))
        return -errno;
    return 0;
}

static int drop_capabilities(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {0};

    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
        return -errno;
    return syscall(SYS_capset, &header, none) < 0 ? -errno : 0;
}

static int fail(struct error *err, int code, const char *what)
{
    return error_set(err, code,
                     "cannot put a process that talks to the network into its sandbox: %s: %s; it "
                     "does not go on without",
                     what, strerror(-code));
}

/* gmtime_r, for libmicrohttpd's Date headers, reads /etc/localtime at its first call. */
static void read_time_zone(void)
{
    tzset();
}

#ifdef SANITIZED
/* The check for leaks at exit traces the process. */
static void allow_dumps(void)
{
    (void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
}
#endif

void sandbox_forbid_dumps(void)
{
#ifdef SANITIZED
    (void)atexit(allow_dumps);
#endif
    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

int sandbox_drop_privileges(struct error *err)
{
    int r;

    read_time_zone();
    drop_bounding_set();
    r = become_nobody();
    if (r < 0)
        return fail(err, r, "changing the user failed");
    r = drop_capabilities();
    if (r < 0)
        return fail(err, r, "dropping capabilities failed");
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return fail(err, -errno, "setting no_new_privs failed");
    sandbox_forbid_dumps();
    /* After the change of user, which clears it. A parent that died before this has closed the
     * channel, so the child ends all the same. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
        return fail(err, -errno, "asking to die with the collector failed");
    return 0;
}

int sandbox_filter_calls(enum syscall_role role, struct error *err)
{
    int r = syscall_filter_install(role);

    return r < 0 ? fail(err, r, "installing the system-call filter failed") : 0;
}
