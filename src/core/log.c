#include "core/log.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/buffer.h"
#include "core/clock.h"
#include "core/fs.h"
#include "core/json.h"
#include "core/macros.h"
#include "core/timestamp.h"

enum { LINE_CAP_BYTES = 16 * 1024, STAMP_BYTES = 64 };

static struct {
    enum log_level level;
    enum log_format format;
} settings = {LOG_LEVEL_INFO, LOG_FORMAT_LOGFMT};

static const char *const level_names[] = {"debug", "info", "warn", "error"};

void log_configure(enum log_level level, enum log_format format)
{
    settings.level = level;
    settings.format = format;
}

static bool is_plain(const char *value)
{
    for (const char *p = value; *p; p++)
        if (*p <= ' ' || *p == '"' || *p == '=' || *p == '\\' || *p > '~')
            return false;
    return *value != '\0';
}

static void write_pair(struct buffer *line, const char *key, const char *value)
{
    if (settings.format == LOG_FORMAT_JSON) {
        buffer_str(line, line->len > 0 ? "" : "{");
        json_member(line, key, value);
        return;
    }
    buffer_str(line, line->len > 0 ? " " : "");
    buffer_str(line, key);
    buffer_char(line, '=');
    /* logfmt quotes as JSON does. */
    if (is_plain(value))
        buffer_str(line, value);
    else
        json_string(line, value);
}

/* A log that nobody reads must not stop the meter: what a pipe or socket has no room for is lost. A
 * pipe that is ready has room for PIPE_BUF bytes. */
static void write_without_blocking(const char *data, size_t len)
{
    struct pollfd log = {.fd = STDERR_FILENO, .events = POLLOUT};

    for (size_t done = 0; done < len; done += PIPE_BUF) {
        while (poll(&log, 1, 0) < 0 && errno == EINTR)
            ;
        if (!(log.revents & POLLOUT))
            return;
        (void)fs_write_all(STDERR_FILENO, data + done, MIN(len - done, (size_t)PIPE_BUF));
    }
}

void log_event(enum log_level level, const char *message, ...)
{
    char storage[LINE_CAP_BYTES]; /* the buffer never grows, so nothing is allocated */
    struct buffer line = {
        .data = storage, .capacity = sizeof(storage), .cap_bytes = sizeof(storage)};
    uint64_t now_us = clock_system.realtime_us(&clock_system);
    struct civil_minute civil = timestamp_minute(now_us);
    unsigned ms = (unsigned)(now_us / 1000 % 60000);
    char stamp[STAMP_BYTES];
    const char *key;
    va_list args;

    if (level < settings.level)
        return;
    snprintf(stamp, sizeof(stamp), "%04u-%02u-%02uT%02u:%02u:%02u.%03uZ", civil.year, civil.month,
             civil.day, civil.hour, civil.minute, ms / 1000, ms % 1000);
    write_pair(&line, "ts", stamp);
    write_pair(&line, "level", level_names[level]);
    write_pair(&line, "msg", message);
    va_start(args, message);
    while ((key = va_arg(args, const char *))) {
        const char *value = va_arg(args, const char *);

        if (value)
            write_pair(&line, key, value);
    }
    va_end(args);
    buffer_str(&line, settings.format == LOG_FORMAT_JSON ? "}\n" : "\n");
    if (!buffer_failed(&line))
        write_without_blocking(line.data, line.len);
}
