/* Cleanup attributes and small arithmetic. */
#pragma once

#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#define ARRAY_SIZE(a)   (sizeof(a) / sizeof((a)[0]))
#define PRINTF(f, args) __attribute__((format(printf, f, args)))

/* Each argument is evaluated once. The names are unique, because calls are nested. */
#define MIN(a, b) CHOOSE_(<, a, b, __COUNTER__)
#define MAX(a, b) CHOOSE_(>, a, b, __COUNTER__)

#define CHOOSE_(is, a, b, n) CHOOSE_NAMED_(is, a, b, n)
#define CHOOSE_NAMED_(is, a, b, n)                                                                 \
    ({                                                                                             \
        __auto_type choose_a_##n = (a);                                                            \
        __auto_type choose_b_##n = (b);                                                            \
        choose_a_##n is choose_b_##n ? choose_a_##n : choose_b_##n;                                \
    })

#define USEC_PER_SEC ((uint64_t)1000000)

static inline void cleanup_free(void *p)
{
    free(*(void **)p);
}

static inline void cleanup_close(const int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

#define _cleanup_free_  __attribute__((cleanup(cleanup_free)))
#define _cleanup_close_ __attribute__((cleanup(cleanup_close)))

/* Passes ownership of a pointer or descriptor on. */
#define TAKE_PTR(p)                                                                                \
    ({                                                                                             \
        __typeof__(p) take_ptr_ = (p);                                                             \
        (p) = NULL;                                                                                \
        take_ptr_;                                                                                 \
    })
#define TAKE_FD(fd)                                                                                \
    ({                                                                                             \
        int take_fd_ = (fd);                                                                       \
        (fd) = -1;                                                                                 \
        take_fd_;                                                                                  \
    })

/* printf("%zu meter%s", count, PLURAL_S(count)) */
#define PLURAL_S(count) ((count) == 1 ? "" : "s")
