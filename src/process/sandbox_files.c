#include "process/sandbox_files.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/log.h"
#include "process/sanitized.h"

/* All rights of the first version, so that every kernel with Landlock knows them. */
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
    struct landlock_path_beneath_attr rule = {.allowed_access = LANDLOCK_ACCESS_FS_READ_FILE};
    struct stat found;
    int r = 0;

    rule.parent_fd = open(path, O_PATH | O_CLOEXEC);
    if (rule.parent_fd < 0)
        return 0;
    if (fstat(rule.parent_fd, &found) < 0)
        r = -errno;
    if (r == 0 && S_ISDIR(found.st_mode)) /* a file's rule may not have it */
        rule.allowed_access |= LANDLOCK_ACCESS_FS_READ_DIR;
    if (r == 0 &&
        syscall(SYS_landlock_add_rule, ruleset_fd, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0)
        r = -errno;
    close(rule.parent_fd);
    return r;
}

static int enforce(int ruleset_fd, const char *const *paths)
{
    int r = 0;

    for (; *paths && r == 0; paths++)
        r = allow_reading(ruleset_fd, *paths);
#ifdef SANITIZED
    if (r == 0)
        r = allow_reading(ruleset_fd, "/proc"); /* the check for leaks at exit */
#endif
    if (r == 0 && syscall(SYS_landlock_restrict_self, ruleset_fd, 0) < 0)
        r = -errno;
    return r;
}

int sandbox_limit_files(const char *const *paths, struct error *err)
{
    const struct landlock_ruleset_attr attributes = {.handled_access_fs = EVERY_RIGHT};
    int fd, r;

    if (!has_landlock())
        return 0;
    fd = (int)syscall(SYS_landlock_create_ruleset, &attributes, sizeof(attributes), 0);
    r = fd < 0 ? -errno : enforce(fd, paths);
    if (fd >= 0)
        close(fd);
    return r < 0 ? error_set(err, r,
                             "cannot limit the files of a process that talks to the network: %s; "
                             "it does not go on without",
                             strerror(-r))
                 : 0;
}
