/*
 * Messages between the collector and its children, in both directions, from a peer that was taken
 * over: any bytes, with any descriptors, give a valid message or -EPROTO. A body can be mapped and
 * read, a job is whole, and no descriptor is left open.
 *
 * The first byte is the receiver and what comes with the message, see enum form. The record
 * follows, then the body.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "config/web_config.h"
#include "core/fs.h"
#include "core/macros.h"
#include "process/channel.h"
#include "process/job.h"

enum form {
    FORM_REQUEST = 1, /* to the collector; else a reply, to the server */
    FORM_BODY = 2,    /* with a descriptor of the body */
    FORM_TWO = 4,     /* with two of them */
    FORM_OPEN = 8,    /* the body is not sealed */
    FORM_CUT = 16,    /* all bytes are the record, else it has its size */
    FORM_LIE = 32,    /* body_bytes is the record's own, else that of the body */
    FORM_PING = 64,   /* to a fetcher, or from one that sends nothing else */
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

/* The highest of as many descriptors as a message may need, if the kernel gave them out now: the
 * same before and after if none leaked. */
static int next_descriptors(void)
{
    int fds[6];

    for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
        check((fds[i] = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0)) >= 0);
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
        close(fds[i]);
    return fds[ARRAY_SIZE(fds) - 1];
}

static int make_body(struct span body, bool is_sealed)
{
    int fd = -1;

    if (is_sealed && fs_create_sealed(body.data, body.len, &fd) == 0)
        return fd;
    fd = memfd_create("body", MFD_CLOEXEC);
    check(fd >= 0 && fs_write_all(fd, body.data, body.len) == 0);
    return fd;
}

static void send_message(int fd, struct span record, const int *fds, size_t fd_count)
{
    union {
        char bytes[CMSG_SPACE(2 * sizeof(int))];
        struct cmsghdr align;
    } control = {0};
    struct iovec part = {(void *)record.data, record.len};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

    if (fd_count > 0) {
        struct cmsghdr *header;

        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
        header = CMSG_FIRSTHDR(&message);
        *header = (struct cmsghdr){.cmsg_len = CMSG_LEN(fd_count * sizeof(int)),
                                   .cmsg_level = SOL_SOCKET,
                                   .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(header), fds, fd_count * sizeof(int));
    }
    check(sendmsg(fd, &message, MSG_NOSIGNAL) == (ssize_t)record.len);
}

/* What is neither a record nor a ping is an error, or an end if it is empty. */
static void check_result(int r, struct span record, size_t record_bytes,
                         const struct channel_ping *ping)
{
    if (r == 1)
        check(record.len == sizeof(*ping) && memcmp(record.data, ping, sizeof(*ping)) == 0 &&
              ping->number > 0);
    else if (r == 0)
        check(record.len == record_bytes);
    else
        check(r == -EPROTO || (r == -ENOTCONN && record.len == 0));
}

static void check_ping(int fd, struct span record)
{
    struct channel_ping ping;
    int r = channel_receive_ping(fd, &ping);

    check_result(r == 0 ? 1 : r, record, 0, &ping);
}

static void check_request(int fd, struct span record)
{
    struct channel_request request;
    struct channel_ping ping;
    int r = channel_receive_request(fd, &request, &ping);

    check_result(r, record, sizeof(request), &ping);
    if (r == 0)
        check(request.format < PAGE_FORMATS && request.encoding < PAGE_ENCODINGS);
}

/* As the server does. */
static void check_job(int job_fd)
{
    struct web_config web;
    struct server_job job;
    struct job block;

    if (server_job_read(job_fd, &block, &job) < 0)
        return;
    (void)web_config_unpack(job.web_config, &web);
    web_config_done(&web);
    job_done(&block);
}

static void check_body(int body_fd, uint64_t bytes, struct span body)
{
    void *page = mmap(NULL, bytes, PROT_READ, MAP_SHARED, body_fd, 0);

    check(page != MAP_FAILED && bytes == body.len && memcmp(page, body.data, bytes) == 0);
    check(munmap(page, bytes) == 0);
    check(ftruncate(body_fd, 0) < 0 && pwrite(body_fd, "x", 1, 0) < 0);
}

static void check_reply(int fd, struct span record, struct span body)
{
    _cleanup_close_ int body_fd = -1;
    struct channel_reply reply;
    struct channel_ping ping;
    int r = channel_receive_reply(fd, &reply, &body_fd, &ping);

    check_result(r, record, sizeof(reply), &ping);
    if (r != 0) {
        check(body_fd == -1);
        return;
    }
    check(reply.status < CHANNEL_STATUS_COUNT && reply.format < PAGE_FORMATS &&
          reply.encoding < PAGE_ENCODINGS);
    check((body_fd >= 0) == (reply.status == CHANNEL_BODY || reply.status == CHANNEL_JOB));
    if (body_fd >= 0)
        check_body(body_fd, reply.body_bytes, body);
    if (reply.status == CHANNEL_JOB)
        check_job(body_fd);
}

/* What is missing of a record is 0. */
static struct span cut_record(struct span *rest, unsigned form, char *record, size_t room)
{
    size_t size =
        form & FORM_REQUEST ? sizeof(struct channel_request) : sizeof(struct channel_reply);
    size_t len = MIN(rest->len, form & FORM_CUT ? room : size);
    uint64_t body_bytes = rest->len - len;

    memcpy(record, rest->data, len);
    *rest = (struct span){rest->data + len, rest->len - len};
    if (!(form & (FORM_CUT | FORM_PING | FORM_REQUEST | FORM_LIE)))
        memcpy(record + offsetof(struct channel_reply, body_bytes), &body_bytes,
               sizeof(body_bytes));
    return (struct span){record, form & FORM_CUT ? len : size};
}

static void check_message(unsigned form, struct span rest)
{
    char bytes[2 * sizeof(struct channel_reply)] = {0};
    struct span record = cut_record(&rest, form, bytes, sizeof(bytes));
    _cleanup_close_ int ours = -1, theirs = -1, body_fd = -1;

    check(channel_open(&ours, &theirs) == 0);
    if (form & (FORM_BODY | FORM_TWO))
        body_fd = make_body(rest, !(form & FORM_OPEN));
    send_message(theirs, record, (const int[]){body_fd, body_fd},
                 body_fd < 0       ? 0
                 : form & FORM_TWO ? 2
                                   : 1);
    if (form & FORM_PING)
        check_ping(ours, record);
    else if (form & FORM_REQUEST)
        check_request(ours, record);
    else
        check_reply(ours, record, rest);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int next = next_descriptors();

    if (size == 0)
        return 0;
    check_message(data[0], (struct span){(const char *)data + 1, size - 1});
    check(next_descriptors() == next);
    return 0;
}
