/*
 * Logging to stderr, logfmt or JSON, one write per line. Only the processes log: libraries return
 * errors. Level and format are the program's only global state, set once at start.
 */
#pragma once

enum log_level { LOG_LEVEL_DEBUG, LOG_LEVEL_INFO, LOG_LEVEL_WARN, LOG_LEVEL_ERROR };
enum log_format { LOG_FORMAT_LOGFMT, LOG_FORMAT_JSON };

void log_configure(enum log_level level, enum log_format format);

/*
 * `message` is constant text; then pairs of const char * (key, value) up to a NULL key. A NULL
 * value is left out. Values may hold anything: they are quoted and escaped. Allocates nothing and
 * takes no lock, so that syscall_filter can log from its signal handler.
 */
void log_event(enum log_level level, const char *message, ...) __attribute__((sentinel));

#define log_debug(...) log_event(LOG_LEVEL_DEBUG, __VA_ARGS__, (const char *)NULL)
#define log_info(...)  log_event(LOG_LEVEL_INFO, __VA_ARGS__, (const char *)NULL)
#define log_warn(...)  log_event(LOG_LEVEL_WARN, __VA_ARGS__, (const char *)NULL)
#define log_error(...) log_event(LOG_LEVEL_ERROR, __VA_ARGS__, (const char *)NULL)
