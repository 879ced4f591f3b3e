#include "config/time_zone.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/parse.h"
#include "core/span.h"

#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

enum { OFFSET_HOURS_MAX = 14 }; /* of Kiribati */

/* "+01:00" */
static bool is_offset(const char *text)
{
    struct span minutes = span_of(text), hours;
    uint64_t hour, minute;

    if (!span_strip_prefix(&minutes, "+") && !span_strip_prefix(&minutes, "-"))
        return false;
    hours = span_cut(&minutes, ':');
    return hours.len == 2 && parse_u64_max(hours, OFFSET_HOURS_MAX, &hour) == 0 &&
           minutes.len == 2 && parse_u64_max(minutes, 59, &minute) == 0;
}

/* Neither absolute nor with dots, so that it stays below its directory. */
static bool is_file_name(const char *text)
{
    return strspn(text, LETTERS) > 0 && strspn(text, LETTERS "0123456789_+-/") == strlen(text);
}

bool time_zone_is_name(const char *text)
{
    return is_offset(text) || is_file_name(text);
}

/* Where glibc looks, too. */
static const char *directory(void)
{
    const char *path = secure_getenv("TZDIR");

    return path && path[0] ? path : "/usr/share/zoneinfo";
}

static bool is_zone_file(const char *name)
{
    static const char magic[] = "TZif";
    char path[PATH_MAX], start[sizeof(magic) - 1];
    int len = snprintf(path, sizeof(path), "%s/%s", directory(), name);
    _cleanup_close_ int fd = -1;

    if (len < 0 || (size_t)len >= sizeof(path))
        return false;
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    return fd >= 0 && read(fd, start, sizeof(start)) == (ssize_t)sizeof(start) &&
           memcmp(start, magic, sizeof(start)) == 0;
}

static int unknown(const char *where, const char *name, struct error *err)
{
    return error_set(err, -ENOENT,
                     "%s: there is no time zone '%.80s' in %.200s; check its name (timedatectl "
                     "list-timezones shows them), install tzdata, or write the offset from UTC as "
                     "timezone: \"+01:00\"",
                     where, name, directory());
}

/* TZ may also hold rules, as "CET-1CEST,M3.5.0,M10.5.0/3", and the path of a file. A '/' before
 * any rule is of a name, and so is all that has no digit: a rule says how far it is from UTC. */
static int check_environment(struct error *err)
{
    const char *tz = secure_getenv("TZ");

    if (!tz)
        return 0;
    tz += tz[0] == ':';
    if (strcmp(tz, "UTC") == 0 || strcmp(tz, "GMT") == 0)
        return 0;
    if (is_file_name(tz) && (strchr(tz, '/') || !strpbrk(tz, "0123456789")) && !is_zone_file(tz))
        return unknown("environment variable TZ", tz, err);
    return 0;
}

int time_zone_use(const char *name, struct error *err)
{
    char tz[NAME_MAX];
    int r = 0;

    if (name[0] == '\0')
        r = check_environment(err);
    else if (is_offset(name)) /* POSIX counts to the west */
        snprintf(tz, sizeof(tz), "LOCAL%c%s", name[0] == '+' ? '-' : '+', name + 1);
    else if (strcmp(name, "UTC") == 0)
        snprintf(tz, sizeof(tz), "UTC0");
    else if (is_file_name(name) && is_zone_file(name))
        snprintf(tz, sizeof(tz), "%s", name);
    else
        r = unknown("timezone", name, err);
    if (r == 0 && name[0] && setenv("TZ", tz, 1) < 0)
        r = error_set(err, -errno, "timezone: cannot be set: %s", strerror(errno));
    if (r == 0)
        tzset();
    return r;
}
