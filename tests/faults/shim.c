#include "shim.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/*
 * The wrappers take and hand on six integer registers, whatever the call takes: all arguments here
 * are integers and pointers, and on x86_64 and aarch64 those that a call does not take do no harm.
 */
typedef long call(long a, long b, long c, long d, long e, long f);

enum style { MINUS_ONE, NULL_POINTER, THE_ERROR, AFTER };

static struct fault_page *page;
static bool is_counting;
_Thread_local bool shim_is_program;

static const struct {
    const char *kind, *errors, *symbol;
} calls[] = {
#define CALL(kind, errors, style, symbol) {kind, errors, #symbol},
#include "calls.h"
#undef CALL
};

enum { CALLS = sizeof(calls) / sizeof(calls[0]) };
static uint8_t row_of[CALLS]; /* of its kind, in the page */

void *shim_next(const char *symbol)
{
    void *found = dlsym(RTLD_NEXT, symbol);

    if (!found)
        __builtin_trap(); /* the table names what this libc does not have */
    return found;
}

/* Eventfds and signalfds are no I/O: a read or write of them does not fail. */
enum { FDS_MAX = 4096 };
static _Atomic bool is_counter[FDS_MAX];

static bool is_exempt(size_t index, long fd)
{
    const char *kind = calls[index].kind;

    return fd >= 0 && fd < FDS_MAX && is_counter[fd] &&
           (strcmp(kind, "read") == 0 || strcmp(kind, "write") == 0);
}

static void note_descriptor(size_t index, long argument, int result)
{
    const char *kind = calls[index].kind;

    if (strcmp(kind, "close") == 0 && argument >= 0 && argument < FDS_MAX)
        is_counter[argument] = false;
    else if ((strcmp(kind, "eventfd") == 0 || strcmp(kind, "signalfd") == 0) && result >= 0 &&
             result < FDS_MAX)
        is_counter[result] = true;
}

/* What the n-th call of this kind is to fail with; 0: it does not. */
static int64_t fault_of(size_t index)
{
    const struct fault_row *row;
    uint64_t number;

    if (!is_counting || !shim_is_program)
        return 0;
    row = &page->rows[row_of[index]];
    number = atomic_fetch_add((_Atomic uint64_t *)&row->calls, 1) + 1;
    if (number < page->from || number - page->from >= page->count ||
        strncmp(page->kind, row->kind, sizeof(row->kind)) != 0)
        return 0;
    atomic_fetch_add((_Atomic uint64_t *)&page->failed, 1);
    return page->error;
}

static long fail(enum style style, int64_t error)
{
    if (style == THE_ERROR)
        return error;
    if (error == FAULT_EOF)
        return 0;
    errno = (int)error;
    return style == NULL_POINTER ? 0 : -1; /* MAP_FAILED is -1, too */
}

static long run_call(size_t index, call *next, enum style style, long a, long b, long c, long d,
                     long e, long f)
{
    int64_t error = is_exempt(index, a) ? 0 : fault_of(index);
    long result;

    if (error == FAULT_SHORT)
        return next(a, b, c > 0 ? 1 : 0, d, e, f);
    if (error != 0 && style != AFTER)
        return fail(style, error);
    result = next(a, b, c, d, e, f);
    note_descriptor(index, a, (int)result);
    return error == 0 ? result : fail(style, error);
}

enum {
#define CALL(kind, errors, style, symbol) INDEX_##symbol,
#include "calls.h"
#undef CALL
};

/* The child of FAULT_ROLE gets the shim, too. */
static int spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                 const posix_spawnattr_t *attributes, char *const *argv, char *const *env)
{
    static int (*next)(pid_t *, const char *, const posix_spawn_file_actions_t *,
                       const posix_spawnattr_t *, char *const *, char *const *);
    static const char *const handed_on[] = {"LD_PRELOAD", "FAULT_PAGE", "ASAN_OPTIONS"};
    const char *role = getenv("FAULT_ROLE");
    char *more[16];
    size_t count = 0;

    if (!next)
        next = shim_next("posix_spawn");
    if (!role || !argv[1] || strcmp(role, argv[1]) != 0)
        return next(pid, path, actions, attributes, argv, env);
    for (size_t i = 0; i < sizeof(handed_on) / sizeof(handed_on[0]); i++) {
        char *value = getenv(handed_on[i]);

        if (value)
            more[count++] = value - strlen(handed_on[i]) - 1; /* where its name begins */
    }
    while (*env && count < sizeof(more) / sizeof(more[0]) - 1)
        more[count++] = *env++;
    more[count] = NULL;
    return next(pid, path, actions, attributes, argv, more);
}

struct start {
    void *(*run)(void *);
    void *argument;
};

static void *run_thread(void *argument)
{
    struct start start = *(struct start *)argument;

    free(argument);
    shim_is_program = true;
    return start.run(start.argument);
}

static int create_thread(pthread_t *ret_id, const pthread_attr_t *attributes, void *(*run)(void *),
                         void *argument)
{
    int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) =
        shim_next("pthread_create");
    struct start *start = malloc(sizeof(*start));
    int r = EAGAIN;

    if (start) {
        *start = (struct start){run, argument};
        r = next(ret_id, attributes, run_thread, start);
    }
    if (r != 0)
        free(start);
    return r;
}

static void *replacement(const char *symbol)
{
    void *of_clock = clock_replacement(symbol);

    if (of_clock)
        return of_clock;
    return strcmp(symbol, "posix_spawn") == 0      ? (void *)spawn
           : strcmp(symbol, "pthread_create") == 0 ? (void *)create_thread
                                                   : NULL;
}

static call *nexts[CALLS];

/* Before main at the first use, which may be before anything of ours has run. */
static call *next_of(size_t index)
{
    if (!nexts[index]) {
        void *found = replacement(calls[index].symbol);

        nexts[index] = (call *)(found ? found : shim_next(calls[index].symbol));
    }
    return nexts[index];
}

#define CALL(kind, errors, style, symbol)                                                          \
    long wrap_##symbol(long a, long b, long c, long d, long e, long f) __asm__(#symbol);           \
    long wrap_##symbol(long a, long b, long c, long d, long e, long f)                             \
    {                                                                                              \
        return run_call(INDEX_##symbol, next_of(INDEX_##symbol), style, a, b, c, d, e, f);         \
    }
#include "calls.h"
#undef CALL

static void die(const char *why)
{
    fprintf(stderr, "faults: %s\n", why);
    abort();
}

static void open_page(const char *path)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);
    uint8_t row = 0;

    page =
        fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED)
        die("FAULT_PAGE cannot be mapped");
    close(fd);
    if (page->version != FAULT_PAGE_VERSION)
        die("FAULT_PAGE is of another version");
    for (size_t i = 0; i < CALLS; i++) {
        row += i > 0 && strcmp(calls[i].kind, calls[i - 1].kind) != 0;
        if (row == FAULT_ROWS_MAX)
            die("the table has more kinds than a page");
        row_of[i] = row;
        snprintf(page->rows[row].kind, sizeof(page->rows[row].kind), "%s", calls[i].kind);
        snprintf(page->rows[row].errors, sizeof(page->rows[row].errors), "%s", calls[i].errors);
    }
}

static int (*program_main)(int, char **, char **);

/* Constructors of libraries, which have run by now, are not ours to judge. */
static int main_of_program(int argc, char **argv, char **env)
{
    const char *path = getenv("FAULT_PAGE");

    /* Not at the first use: dlerror() allocates, and must not meet another dlsym() on the way. */
    for (size_t i = 0; i < CALLS; i++)
        (void)next_of(i);
    clock_start();
    shim_is_program = true;
    if (path) {
        open_page(path);
        is_counting = !getenv("FAULT_ROLE");
    }
    return program_main(argc, argv, env);
}

int __libc_start_main(int (*main)(int, char **, char **), int argc, char **argv, void (*init)(void),
                      void (*fini)(void), void (*rtld_fini)(void), void *stack);

int __libc_start_main(int (*main)(int, char **, char **), int argc, char **argv, void (*init)(void),
                      void (*fini)(void), void (*rtld_fini)(void), void *stack)
{
    int (*next)(int (*)(int, char **, char **), int, char **, void (*)(void), void (*)(void),
                void (*)(void), void *) = shim_next("__libc_start_main");

    program_main = main;
    return next(main_of_program, argc, argv, init, fini, rtld_fini, stack);
}
