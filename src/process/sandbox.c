#include "process/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/log.h"
#include "core/macros.h"

/* EPERM: no CAP_SETUID or CAP_SETGID. EINVAL: a user namespace in which the user is not mapped. */
static bool is_tolerable(int error)
{
    return error == EPERM || error == EINVAL;
}

static int become(enum sandbox_user user)
{
    char number[16];

    if (geteuid() != 0)
        return 0;
    if ((setgroups(0, NULL) < 0 && !is_tolerable(errno)) ||
        (setresgid(user, user, user) < 0 && !is_tolerable(errno)) ||
        (setresuid(user, user, user) < 0 && !is_tolerable(errno)))
        return -errno;
    if (geteuid() == 0 || getegid() == 0) {
        const char *why = strerror(errno);

        snprintf(number, sizeof(number), "%d", (int)user);
        log_warn("a process that talks to the network stays root, without capabilities: it cannot "
                 "change its user; give the collector CAP_SETUID, CAP_SETGID and CAP_KILL",
                 "user", number, "error", why);
    }
    return 0;
}

/* Needs CAP_SETPCAP; without it the set matters little, as nothing can be gained from it once
 * PR_SET_NO_NEW_PRIVS is set. */
static void limit_bounding_set(uint64_t capabilities)
{
    for (unsigned cap = 0; cap < 64; cap++)
        if (!(capabilities >> cap & 1) && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
            return;
}

/* Gives up all others, and hands none to programs that it starts but by the bounding set. */
static int keep_capabilities(uint64_t capabilities)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3];

    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 ||
        syscall(SYS_capget, &header, sets) < 0)
        return -errno;
    for (size_t i = 0; i < ARRAY_SIZE(sets); i++) {
        uint32_t kept = (uint32_t)(capabilities >> (32 * i));

        sets[i].effective &= kept;
        sets[i].permitted &= kept;
        sets[i].inheritable = 0;
    }
    return syscall(SYS_capset, &header, sets) < 0 ? -errno : 0;
}

static int fail(struct error *err, int code, const char *what)
{
    return error_set(err, code,
                     "cannot put a process that talks to the network into its sandbox: %s: %s; it "
                     "does not go on without",
                     what, strerror(-code));
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

int sandbox_confine_collector(uint64_t capabilities, struct error *err)
{
    int dropped, privileged, filtered;

    limit_bounding_set(capabilities);
    dropped = keep_capabilities(capabilities);
    privileged = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : 0;
    filtered = syscall_filter_install(SYSCALL_COLLECTOR);
    if (dropped < 0)
        return error_set(err, dropped, "cannot drop capabilities: %s", strerror(-dropped));
    if (privileged < 0)
        return error_set(err, privileged, "cannot set no_new_privs: %s", strerror(-privileged));
    if (filtered < 0)
        return error_set(err, filtered,
                         "cannot filter system calls: %s; the kernel needs CONFIG_SECCOMP_FILTER",
                         strerror(-filtered));
    return 0;
}

int sandbox_drop_privileges(enum sandbox_user user, struct error *err)
{
    int r;

    tzset();               /* gmtime_r, for Date headers, reads /etc/localtime at its first call */
    limit_bounding_set(0); /* before CAP_SETPCAP is gone */
    r = become(user);
    if (r < 0)
        return fail(err, r, "changing the user failed");
    r = keep_capabilities(0);
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

/* All rights of Landlock's first version, so that every kernel with Landlock knows them. */
static const uint64_t EVERY_RIGHT = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1;

/* A kernel without it answers ENOSYS, one that was started without it EOPNOTSUPP. */
static bool has_landlock(void)
{
    bool has_it =
        syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION) > 0;

    if (!has_it && errno == EPERM)
        log_warn("a system-call filter denies Landlock: a process that talks to the network can "
                 "open every file that its user may; allow landlock_create_ruleset, "
                 "landlock_add_rule and landlock_restrict_self");
    return has_it;
}

static int allow_reading(int ruleset_fd, const char *path)
{
    _cleanup_close_ int fd = open(path, O_PATH | O_CLOEXEC);
    struct landlock_path_beneath_attr rule = {.allowed_access = LANDLOCK_ACCESS_FS_READ_FILE,
                                              .parent_fd = fd};
    struct stat found;

    if (fd < 0)
        return 0;
    if (fstat(fd, &found) < 0)
        return -errno;
    if (S_ISDIR(found.st_mode)) /* the rule of a file may not have it */
        rule.allowed_access |= LANDLOCK_ACCESS_FS_READ_DIR;
    return syscall(SYS_landlock_add_rule, ruleset_fd, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0
               ? -errno
               : 0;
}

int sandbox_limit_files(const char *const *paths, struct error *err)
{
    const struct landlock_ruleset_attr attributes = {.handled_access_fs = EVERY_RIGHT};
    _cleanup_close_ int fd = -1;
    int r = 0;

    if (!has_landlock())
        return 0;
    fd = (int)syscall(SYS_landlock_create_ruleset, &attributes, sizeof(attributes), 0);
    if (fd < 0)
        r = -errno;
    for (; *paths && r == 0; paths++)
        r = allow_reading(fd, *paths);
#ifdef SANITIZED
    if (r == 0)
        r = allow_reading(fd, "/proc"); /* the check for leaks at exit */
#endif
    if (r == 0 && syscall(SYS_landlock_restrict_self, fd, 0) < 0)
        r = -errno;
    return r < 0 ? error_set(err, r,
                             "cannot limit the files of a process that talks to the network: %s; "
                             "it does not go on without",
                             strerror(-r))
                 : 0;
}

int sandbox_filter_calls(enum syscall_role role, struct error *err)
{
    int r = syscall_filter_install(role);

    return r < 0 ? fail(err, r, "installing the system-call filter failed") : 0;
}
