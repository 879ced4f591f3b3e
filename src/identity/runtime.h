/*
 * Runtime: something on the node that knows containers by name. One file each, one line in
 * runtime_table.c.
 *
 * A runtime is only ever read, and what it says is only a name: it never decides who pays.
 */
#pragma once

#include <stddef.h>

#include "client/http_client.h"
#include "core/arena.h"
#include "core/error.h"

/* What a runtime says of one container. Texts are in the list's arena, "" where it says nothing,
 * cut at RUNTIME_TEXT_MAX bytes (at a whole character). */
struct container {
    const char *id; /* 64 lower-case hex digits */
    const char *name;
    const char *namespace; /* of Kubernetes */
    const char *pod;       /* of Kubernetes or Podman */
    const char *pod_uid;
    const char *image;
};

enum {
    RUNTIME_TEXT_MAX = 512,
    RUNTIME_CONTAINERS_MAX = 65536, /* more are left out */
    RUNTIME_REPLY_MAX = 16 << 20,   /* bytes */
};

struct container_list {
    struct container *items;
    size_t count, capacity;
    struct arena arena;
};

void container_list_init(struct container_list *list);
void container_list_done(struct container_list *list);

/* Copies and cuts the texts; entries whose id is none are left out. 0 or -ENOMEM. */
int container_list_add(struct container_list *list, const struct container *container);

struct runtime_ops {
    const char *name;           /* the `source` label */
    const char *const *sockets; /* where to look for it, ended by NULL */

    /* Adds every running container. May block, as long as the client's deadline. 0 or -errno, with
     * a text; what was added before counts. */
    int (*list)(struct http_client *client, const char *socket_path, uint64_t timeout_us,
                struct container_list *list, struct error *err);
};

extern const struct runtime_ops runtime_cri, runtime_docker, runtime_podman;
