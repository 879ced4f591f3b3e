/* identity: which containers have which GPUs, by runtimes and a kubelet that are polled over a
 * client that is scripted here. No process of any container can be seen. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "client/grpc.h"
#include "client/http_client.h"
#include "core/macros.h"
#include "identity/identity.h"
#include "identity/runtime_table.h"
#include "wire.h"

#define A    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B    "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define MIG  "MIG-11111111-2222-3333-4444-555555555555"
#define UUID "GPU-8dea0b1f-4c4e-7a1b-9d3c-0123456789ab"

/* What Docker does: set by the test, read by the runtime asker's thread. */
static atomic_bool docker_runs_it, docker_hangs;
static atomic_int asked;

void http_reply_init(struct http_reply *reply)
{
    *reply = (struct http_reply){0};
    buffer_init(&reply->body, 1 << 20);
}

void http_reply_done(struct http_reply *reply)
{
    buffer_done(&reply->body);
}

int http_client_new(struct http_client **ret_client)
{
    *ret_client = NULL;
    return 0;
}

void http_client_free(struct http_client *client)
{
    (void)client;
}

void http_client_cancel(struct http_client *client)
{
    (void)client;
}

int http_client_do(struct http_client *client, const struct http_request *request,
                   struct http_reply *ret_reply, struct error *err)
{
    const char *body = "[]";

    (void)client;
    atomic_fetch_add(&asked, 1);
    if (atomic_load(&docker_hangs))
        return error_set(err, -ETIMEDOUT, "scripted");
    if (strstr(request->url, A))
        body = "{\"HostConfig\":{\"DeviceRequests\":[{\"Driver\":\"\",\"Count\":0,"
               "\"DeviceIDs\":[\"3\"],\"Capabilities\":[[\"gpu\"]]}]}}";
    else if (atomic_load(&docker_runs_it))
        body = "[{\"Id\":\"" A "\",\"Names\":[\"/train\"]}]";
    ret_reply->status = 200;
    buffer_bytes(&ret_reply->body, body, strlen(body));
    return 0;
}

/* A pod's container, as containerd lists it. */
static void put_containers(struct buffer *out)
{
    struct buffer container = wire_new();

    wire_text(&container, 1, B);
    wire_entry(&container, 8, "io.kubernetes.container.name", "worker");
    wire_entry(&container, 8, "io.kubernetes.pod.name", "train-0");
    wire_entry(&container, 8, "io.kubernetes.pod.namespace", "ml");
    wire_message(out, 1, &container);
}

static void put_allocation(struct buffer *out, const char *pod, const char *resource,
                           const char *id)
{
    struct buffer resources = wire_new(), container = wire_new(), devices = wire_new();

    wire_text(&devices, 1, resource);
    wire_text(&devices, 2, id);
    wire_text(&container, 1, "worker");
    wire_message(&container, 2, &devices);
    wire_text(&resources, 1, pod);
    wire_text(&resources, 2, "ml");
    wire_message(&resources, 3, &container);
    wire_message(out, 1, &resources);
}

int grpc_call(struct http_client *client, const struct grpc_call *call, struct http_reply *reply,
              struct span *ret_message, int *ret_status, struct error *err)
{
    (void)client;
    atomic_fetch_add(&asked, 1);
    if (strstr(call->method, "PodResources")) {
        put_allocation(&reply->body, "train-0", "nvidia.com/mig-1g.10gb", MIG);
        put_allocation(&reply->body, "train-0", "nvidia.com/gpu", UUID "::2");
        put_allocation(&reply->body, "ended", "nvidia.com/gpu", UUID);
    } else if (strstr(call->method, "ListContainers")) {
        put_containers(&reply->body);
    } else if (strstr(call->method, "ContainerStatus")) {
        *ret_status = 5; /* not found */
        return error_set(err, -EREMOTEIO, "scripted");
    }
    *ret_message = (struct span){reply->body.data, reply->body.len};
    return 0;
}

struct rig {
    char path[64], socket_path[96];
    int listener_fd;
    struct host host;
    struct identity *identity;
};

/* All of them are behind one socket: it must exist, and is never connected to. */
static struct rig new_rig(bool attachments, bool kubernetes)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct rig rig = {.path = "/tmp/wattribute-XXXXXX"};
    /* Of CRI, Docker and Podman. */
    const char *const sockets[RUNTIME_TABLE_MAX] = {rig.socket_path,
                                                    kubernetes ? "" : rig.socket_path, ""};
    struct error err;
    int fd;

    atomic_store(&docker_runs_it, true);
    atomic_store(&docker_hangs, false);
    atomic_store(&asked, 0);
    assert_non_null(mkdtemp(rig.path));
    snprintf(rig.socket_path, sizeof(rig.socket_path), "%s/socket", rig.path);
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", rig.socket_path);
    rig.listener_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(rig.listener_fd, (struct sockaddr *)&address, sizeof(address)), 0);
    fd = open(rig.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    rig.host = (struct host){.procfs_fd = fd, .sysfs_fd = -1, .rootfs_fd = fd};
    assert_int_equal(
        identity_open(&(struct identity_options){.host = &rig.host,
                                                 .rootfs_path = rig.path,
                                                 .clock = &clock_system,
                                                 .scan_interval_us = USEC_PER_SEC / 50,
                                                 .kubernetes = kubernetes,
                                                 .attachments = attachments,
                                                 .runtime_sockets = sockets,
                                                 .pod_resources_socket = rig.socket_path},
                      &rig.identity, &err),
        0);
    return rig;
}

static void end_rig(struct rig *rig)
{
    identity_close(rig->identity);
    close(rig->listener_fd);
    unlink(rig->socket_path);
    close(rig->host.rootfs_fd);
    assert_int_equal(rmdir(rig->path), 0);
}

static void show(void *context, const struct attachment *attachment)
{
    char *text = context;

    assert_true(strlen(text) < 2048);
    sprintf(text + strlen(text), "%c %s kind=%d id=%s index=%u gib=%llu\n", attachment->owner_id[0],
            attachment->container_name, (int)attachment->kind, attachment->id, attachment->index,
            (unsigned long long)(attachment->memory_bytes >> 30));
}

static void wait_until_attached(struct rig *rig, const char *expected)
{
    uint64_t until_us = clock_system.monotonic_us(&clock_system) + 20 * USEC_PER_SEC;
    char text[4096];

    for (;; poll(NULL, 0, 5)) {
        text[0] = '\0';
        identity_each_attachment(rig->identity, show, text);
        if (strcmp(text, expected) == 0)
            return;
        if (clock_system.monotonic_us(&clock_system) > until_us)
            fail_msg("attached: %s", text);
    }
}

static const char train[] = "a train kind=8 id= index=3 gib=0\n";

static void a_container_has_its_gpus_while_docker_lists_it(void **state)
{
    struct rig rig = new_rig(true, false);

    (void)state;
    assert_int_equal(ALLOCATION_INDEX, 8);
    wait_until_attached(&rig, train);
    atomic_store(&docker_runs_it, false);
    wait_until_attached(&rig, "");
    atomic_store(&docker_runs_it, true);
    wait_until_attached(&rig, train);
    end_rig(&rig);
}

static void what_docker_said_is_forgotten_when_it_hangs(void **state)
{
    struct rig rig = new_rig(true, false);

    (void)state;
    wait_until_attached(&rig, train);
    atomic_store(&docker_hangs, true);
    wait_until_attached(&rig, "");
    end_rig(&rig);
}

static void an_allocation_is_that_of_the_container_that_cri_lists(void **state)
{
    struct rig rig = new_rig(true, true);

    (void)state;
    assert_int_equal(ALLOCATION_MIG_UUID, 1);
    wait_until_attached(&rig, "b worker kind=1 id=" MIG " index=0 gib=10\n"
                              "b worker kind=0 id=" UUID " index=0 gib=0\n");
    end_rig(&rig);
}

static void nothing_is_inspected_unless_it_is_enabled(void **state)
{
    struct rig rig = new_rig(false, false);
    struct identity_status status;
    char text[64] = "";

    (void)state;
    /* Until it has scanned, and looked for runtimes. */
    while (!identity_get_status(rig.identity, 0, &status) || status.answered_us == 0)
        poll(NULL, 0, 1);
    identity_each_attachment(rig.identity, show, text);
    assert_string_equal(text, "");
    assert_int_equal(atomic_load(&asked), 0);
    end_rig(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_container_has_its_gpus_while_docker_lists_it),
        cmocka_unit_test(what_docker_said_is_forgotten_when_it_hangs),
        cmocka_unit_test(an_allocation_is_that_of_the_container_that_cri_lists),
        cmocka_unit_test(nothing_is_inspected_unless_it_is_enabled),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
