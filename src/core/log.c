#include "core/log.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/buffer.h"
#include "core/fs.h"
#include "core/json.h"

enum { LINE_CAP_BYTES = 16 * 1024 };

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

static void put_pair(struct buffer *line, const char *key, const char *value)
{
    if (settings.format == LOG_FORMAT_JSON) {
        buffer_char(line, line->len > 0 ? ',' : '{');
        json_string(line, key);
        buffer_char(line, ':');
        json_string(line, value);
        return;
    }
    if (line->len > 0)
        buffer_char(line, ' ');
    buffer_str(line, key);
    buffer_char(line, '=');
    /* logfmt quotes as JSON does. */
    if (is_plain(value))
        buffer_str(line, value);
    else
        json_string(line, value);
}

void log_event(enum log_level level, const char *message, ...)
{
    struct buffer line;
    struct timespec now;
    struct tm utc;
    char seconds[32], stamp[48];
    const char *key;
    va_list args;

    if (level < settings.level)
        return;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    strftime(seconds, sizeof(seconds), "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(stamp, sizeof(stamp), "%s.%03dZ", seconds, (int)(now.tv_nsec / 1000000 % 1000));

    buffer_init(&line, LINE_CAP_BYTES);
    put_pair(&line, "ts", stamp);
    put_pair(&line, "level", level_names[level]);
    put_pair(&line, "msg", message);
    va_start(args, message);
    while ((key = va_arg(args, const char *))) {
        const char *value = va_arg(args, const char *);

        if (value)
            put_pair(&line, key, value);
    }
    va_end(args);
    buffer_str(&line, settings.format == LOG_FORMAT_JSON ? "}\n" : "\n");
    /* A log that cannot be written must not stop the meter. */
    if (!buffer_failed(&line))
        (void)fs_write_all(STDERR_FILENO, line.data, line.len);
    buffer_done(&line);
}
