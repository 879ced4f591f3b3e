/*
 * Runtime: something on the node that knows containers by name. One file each, and one line in
 * table.c.
 *
 * A runtime is only ever read. What it says is a name, and which GPUs a container may use: it never
 * decides who pays for what was measured.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "client/http_client.h"
#include "core/arena.h"
#include "core/error.h"
#include "core/span.h"

/* What a runtime says of one container. Texts are in the list's arena: UTF-8, "" where it says
 * nothing, cut at RUNTIME_TEXT_MAX bytes (at a whole character). */
struct container {
    const char *id;        /* 64 lower-case hex digits; "": of a pod, by the API server alone */
    const char *name;      /* "POD": the pod's own, which holds its namespaces and does no work */
    const char *namespace; /* of Kubernetes */
    const char *pod;       /* of Kubernetes or Podman */
    const char *pod_uid;
    const char *image;
    /* Whoever starts a container can label it as they like. This runtime says itself that it is
     * the pod's; otherwise the pod counts only where the cgroup names it, too. */
    bool is_pod_certain;
    bool ended;           /* it runs no more, or not yet, but the runtime knows it */
    bool image_is_digest; /* `image` says what, not how it is called: see `find_image` */
};

enum {
    RUNTIME_ID_BYTES = 65,
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

/* Copies and cuts the texts (NULL is ""); entries whose id is none are left out. 0 or -ENOMEM. */
int container_list_add(struct container_list *list, const struct container *container);

/* The same, with texts as they stand in a reply. */
struct container_spans {
    struct span id, name, namespace, pod, pod_uid, image;
    bool is_pod_certain, ended, image_is_digest;
};
int container_list_add_spans(struct container_list *list, const struct container_spans *container);

/* A pod itself, whatever its containers are: an entry with the id "". One without a uid is left
 * out. 0 or -ENOMEM. */
int container_list_add_pod(struct container_list *list, const char *namespace, const char *pod,
                           const char *pod_uid);

/* A text as in struct container, for others that know the same names: what is cut must stay equal.
 * One with NUL or bytes that are not UTF-8 in it says nothing. NULL: out of memory. */
const char *runtime_text(struct arena *arena, struct span text);

/* By the "State" of Docker and Podman. NULL, as of old ones that list only what runs: yes. */
bool runtime_state_is_running(const char *state);

struct gpu_access_list;

/* Which containers a list is to have. */
enum runtime_scope {
    RUNTIME_RUNNING, /* those that run */
    RUNTIME_ALL,     /* and those that were made or have ended */
};

struct runtime_ops {
    const char *name;           /* the `source` label */
    const char *flag;           /* that names its socket: "NAME-socket" */
    const char *help;           /* of that flag */
    const char *const *sockets; /* where to look for it, ended by NULL */
    bool is_of_kubernetes;      /* not asked with --kubernetes-enabled=false */

    /*
     * Adds every container. May block: a few requests, each for timeout_us at most. 0 or -errno,
     * with a text; what was added before counts. As http_client_do (-EFBIG: so many that their list
     * is too long), and -EOPNOTSUPP: what listens there is no such runtime. -EACCES, -EAGAIN (asked
     * too often), -EREMOTEIO: it refuses. -EBADMSG: its answer makes no sense.
     */
    int (*list)(struct http_client *client, const char *socket_path, uint64_t timeout_us,
                enum runtime_scope scope, struct container_list *list, struct error *err);

    /* Adds the GPUs that a container was given, as far as the runtime tells. May block as above. 0
     * or -errno, as above, and -ESRCH: there is no such container any more. */
    int (*inspect)(struct http_client *client, const char *socket_path, uint64_t timeout_us,
                   const char *container_id, struct gpu_access_list *gpus, struct error *err);

    /* What the image of a container is called: 0 and a text of RUNTIME_TEXT_MAX bytes at most,
     * -ENODATA (it has no name), or -errno as above. NULL: every list says it. */
    int (*find_image)(struct http_client *client, const char *socket_path, uint64_t timeout_us,
                      const char *container_id, char ret_image[RUNTIME_TEXT_MAX + 1],
                      struct error *err);
};
