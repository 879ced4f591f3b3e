/* process/sandbox: names can be looked up in the asker's, with glibc's resolver and a server of
 * names of our own. */
#include "unit.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <resolv.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#undef MIN /* of sys/param.h, which resolv.h includes */
#undef MAX

#include "client/http_client.h"
#include "core/macros.h"
#include "peer.h"
#include "process/sandbox.h"

/* A server of names, over UDP and TCP: api.test is at 127.0.0.1. The whole answer is too long for
 * UDP, if it `truncates`. */
struct name_server {
    int udp_fd, tcp_fd, stop_fd;
    bool truncates;
    uint16_t port;
    pthread_t thread;
    unsigned tcp_questions; /* only for reading, after stop_server */
};

/* Makes a question (RFC 1035: header, name, type, class) its answer; returns the length. */
static size_t answer(char *message, size_t len, bool truncated)
{
    static const char address[] = "\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4\x7f\0\0\1";
    bool has_one = !truncated && message[len - 3] == 1; /* of type A, not AAAA */

    assert_true(len > 16 && strcmp(message + 12, "\3api\4test") == 0);
    message[2] = (char)(0x81 | (truncated ? 2 : 0));
    message[3] = (char)0x80;
    message[7] = has_one;
    memset(message + 8, 0, 4);
    message[11] = 0;
    if (!has_one)
        return len;
    memcpy(message + len, address, sizeof(address) - 1);
    return len + sizeof(address) - 1;
}

static void answer_udp(const struct name_server *names)
{
    struct sockaddr_in from;
    socklen_t from_len = sizeof(from);
    char message[512];
    ssize_t n = recvfrom(names->udp_fd, message, sizeof(message) - 64, 0, (struct sockaddr *)&from,
                         &from_len);
    size_t len = answer(message, (size_t)n, names->truncates);

    assert_int_equal(sendto(names->udp_fd, message, len, 0, (struct sockaddr *)&from, from_len),
                     len);
}

/* Each message has its length before it. The second question comes on the same connection. */
static void answer_tcp(struct name_server *names)
{
    int fd = accept4(names->tcp_fd, NULL, NULL, SOCK_CLOEXEC);
    char message[512];

    while (recv(fd, message, 2, MSG_WAITALL) == 2) {
        size_t len = (size_t)(unsigned char)message[1];

        assert_int_equal(recv(fd, message + 2, len, MSG_WAITALL), len);
        len = answer(message + 2, len, false);
        names->tcp_questions++;
        message[1] = (char)len;
        assert_int_equal(send(fd, message, len + 2, MSG_NOSIGNAL), len + 2);
    }
    close(fd);
}

static void *serve_names(void *argument)
{
    struct name_server *names = argument;
    struct pollfd fds[] = {{.fd = names->stop_fd, .events = POLLIN},
                           {.fd = names->udp_fd, .events = POLLIN},
                           {.fd = names->tcp_fd, .events = POLLIN}};

    while (poll(fds, ARRAY_SIZE(fds), -1) > 0 && !fds[0].revents) {
        if (fds[1].revents)
            answer_udp(names);
        if (fds[2].revents)
            answer_tcp(names);
    }
    return NULL;
}

static struct name_server server;

static void start_server(bool truncates)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t len = sizeof(address);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    server = (struct name_server){.udp_fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0),
                                  .tcp_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
                                  .stop_fd = eventfd(0, EFD_CLOEXEC),
                                  .truncates = truncates};
    assert_int_equal(bind(server.tcp_fd, (struct sockaddr *)&address, len), 0);
    assert_int_equal(getsockname(server.tcp_fd, (struct sockaddr *)&address, &len), 0);
    assert_int_equal(bind(server.udp_fd, (struct sockaddr *)&address, len), 0);
    assert_int_equal(listen(server.tcp_fd, 4), 0);
    server.port = address.sin_port;
    assert_int_equal(pthread_create(&server.thread, NULL, serve_names, &server), 0);
}

static void stop_server(void)
{
    assert_int_equal(eventfd_write(server.stop_fd, 1), 0);
    pthread_join(server.thread, NULL);
    close(server.udp_fd);
    close(server.tcp_fd);
    close(server.stop_fd);
}

static __typeof__((getaddrinfo)) *real_getaddrinfo;

/* In place of glibc's, for curl: glibc's, but with our server. */
int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                struct addrinfo **ret_list)
{
    if (res_init() < 0)
        return EAI_SYSTEM;
    _res.nscount = 1;
    _res.nsaddr_list[0] = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = server.port};
    _res.nsaddr_list[0].sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return real_getaddrinfo(name, service, hints, ret_list);
}

/* What an asker is told: where its server of names is, and what to ask for. */
struct task {
    uint16_t names_port;
    char url[64];
};

static int ask_inside(int task_fd)
{
    struct task task;
    const struct http_request request = {
        .url = task.url, .timeout_us = 20 * USEC_PER_SEC, .max_bytes = 64};
    struct http_client *client;
    struct http_reply reply;
    struct error err = {""};
    int r;

    if (read(task_fd, &task, sizeof(task)) != sizeof(task))
        return 2;
    server.port = task.names_port;
    http_reply_init(&reply);
    r = http_client_new(&client);
    if (r == 0)
        r = sandbox_drop_privileges(SANDBOX_EMISSIONS, &err);
    if (r == 0)
        r = sandbox_filter_calls(SYSCALL_CLIENT, &err);
    if (r == 0)
        r = http_client_do(client, &request, &reply, &err);
    if (r < 0)
        fprintf(stderr, "%s: %s\n", strerror(-r), err.text);
    return r == 0 && reply.status == 200 && reply.body.len == 5 ? 0 : 1;
}

struct asker {
    pid_t pid;
    int task_fd;
};

static struct asker start_asker(void)
{
    struct asker asker;
    int fds[2];

    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    asker = (struct asker){fork(), fds[1]};
    assert_true(asker.pid >= 0);
    if (asker.pid == 0)
        _exit(ask_inside(fds[0]));
    close(fds[0]);
    return asker;
}

static void let_ask(const struct asker *asker, const struct task *task)
{
    int status;

    assert_int_equal(write(asker->task_fd, task, sizeof(*task)), sizeof(*task));
    close(asker->task_fd);
    assert_int_equal(waitpid(asker->pid, &status, 0), asker->pid);
    assert_int_equal(status, 0);
}

static void an_asker_may_look_up_names(void **state)
{
    const struct peer_script script = {
        .reply = {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 43}, .end = PEER_CLOSES};
    struct asker askers[2];
    struct peer *peer;

    (void)state;
    real_getaddrinfo = (__typeof__(real_getaddrinfo))dlsym(RTLD_NEXT, "getaddrinfo");
    /* Before any thread: one may hold a lock of the heap, which a child would wait for for ever. */
    for (size_t i = 0; i < ARRAY_SIZE(askers); i++)
        askers[i] = start_asker();
    peer = peer_start_tcp(&script);
    for (int truncates = 0; truncates < 2; truncates++) {
        struct task task = {0};

        start_server(truncates);
        task.names_port = server.port;
        snprintf(task.url, sizeof(task.url), "http://api.test.%s/", strrchr(peer->url, ':'));
        let_ask(&askers[truncates], &task);
        stop_server();
        assert_int_equal(server.tcp_questions > 0, truncates);
    }
    peer_free(peer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_asker_may_look_up_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
