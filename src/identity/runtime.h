/*
 * Container runtime: knows the containers of this node by name. Each is one file in runtimes/ and
 * one line in runtimes/table.c.
 *
 * Runtimes are only read. They provide names, and which GPUs a container may use; they never decide
 * which workload is charged.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "client/http_client.h"
#include "core/arena.h"
#include "core/error.h"
#include "core/span.h"
#include "model/workload.h"

enum {
    CONTAINER_TEXT_NAMESPACE = 2,
    CONTAINER_TEXT_POD_UID = 4,
    CONTAINER_TEXT_IMAGE,
    CONTAINER_TEXTS
};

/* Texts are in the list's arena: UTF-8, "" if unknown, truncated to RUNTIME_TEXT_MAX bytes (at a
 * whole character). */
struct container {
    union {
        struct {
            const char *id;        /* 64 lower-case hex digits; "" for a pod (API server only) */
            const char *name;      /* "POD": the pod's own, which only holds its namespaces */
            const char *namespace; /* of Kubernetes */
            const char *pod;       /* of Kubernetes or Podman */
            const char *pod_uid;
            const char *image;
        };
        const char *texts[CONTAINER_TEXTS];
    };
    /* The runtime itself vouches for the pod. Otherwise the pod is a label, which whoever starts a
     * container can choose, and counts only if the cgroup names it, too. */
    bool is_pod_certain;
    bool ended;           /* ended or not yet started, but known to the runtime */
    bool image_is_digest; /* `image` has no name: see `find_image` */
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

/* Copies and truncates the texts (NULL is ""). Without a valid id it is left out. 0 or -ENOMEM. */
int container_list_add(struct container_list *list, const struct container *container);

/* The same with texts from runtime_text in the list's arena; a NULL is -ENOMEM. */
int container_list_append(struct container_list *list, const struct container *container);

/* A pod, whatever its containers are: an entry with the id "". Left out without a uid. 0 or
 * -ENOMEM. */
int container_list_add_pod(struct container_list *list, const char *namespace, const char *pod,
                           const char *pod_uid);

/* A text as in struct container, for names that are compared with it: truncated alike. "" if it
 * contains NUL or is not UTF-8. NULL: out of memory. */
const char *runtime_text(struct arena *arena, struct span text);

/*
 * For containers that outlive their list, with malloc'ed texts, NULL for "". Takes over each text
 * of `news` that is not empty; but a digest does not replace an image's name, nor a label a pod
 * that is certain.
 */
void container_keep(struct container *kept, const struct container *news);
void container_forget(struct container *kept);

struct gpu_access_list;
struct json;
struct runtime_ops;

enum runtime_scope {
    RUNTIME_RUNNING, /* running containers */
    RUNTIME_ALL,     /* and created and ended ones */
};

/* How to reach a runtime. Every call may block for timeout_us. */
struct runtime_call {
    const struct runtime_ops *runtime;
    struct http_client *client;
    const char *socket_path;
    uint64_t timeout_us;
};

struct runtime_ops {
    const char *name;              /* the `source` label */
    enum allocation_source source; /* of the GPUs that it reports */
    const char *flag;              /* for its socket: "NAME-socket" */
    const char *help;              /* of that flag */
    const char *const *sockets;    /* default paths, NULL-terminated */
    bool is_kubernetes_only;       /* disabled by --kubernetes-enabled=false */

    /*
     * Adds every container, with a few requests. 0 or -errno, with a text; what was added before
     * counts. As http_client_do (-EFBIG: the list is too long), and -EOPNOTSUPP: the socket is of
     * something else; -EACCES, -EAGAIN (rate limit), -EREMOTEIO: refused; -EBADMSG: invalid
     * response.
     */
    int (*list)(const struct runtime_call *call, enum runtime_scope scope,
                struct container_list *list, struct error *err);

    /* Adds the GPUs that a container was given, as far as the runtime knows. 0 or -errno, as above,
     * and -ESRCH: the container is gone. */
    int (*inspect)(const struct runtime_call *call, const char *container_id,
                   struct gpu_access_list *gpus, struct error *err);

    /* The name of a container's image: 0, -ENODATA (it has none), or -errno as above. NULL: lists
     * have it. */
    int (*find_image)(const struct runtime_call *call, const char *container_id,
                      char ret_image[RUNTIME_TEXT_MAX + 1], struct error *err);

    /* For runtimes with Docker's HTTP API, whose `list` and `inspect` are runtime_http_*. */
    const char *api_path; /* of the containers, with a version */
    int (*add_container)(const struct json *entry, struct container_list *list);
};
