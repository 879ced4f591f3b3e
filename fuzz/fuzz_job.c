/* Jobs of children: any bytes are a whole job, whose packed form is those bytes again or, if they
 * have numbers with zeros in front, shorter; or -EPROTO. The first byte says of which child. */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/fs.h"
#include "core/macros.h"
#include "core/pack.h"
#include "process/child.h"
#include "process/job.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void check_packed(struct span packed, struct span bytes)
{
    check(packed.len <= bytes.len);
    check(packed.len < bytes.len || memcmp(packed.data, bytes.data, bytes.len) == 0);
}

static void check_server(int fd, struct span bytes)
{
    _cleanup_close_ int again_fd = -1;
    _cleanup_free_ char *packed = NULL;
    struct server_job job;
    struct job block;
    size_t len;
    int r = server_job_read(fd, &block, &job);

    check(r == 0 || r == -EPROTO);
    if (r < 0)
        return;
    check(job.listener_count <= CHILD_MORE_MAX && job.log.level <= LOG_LEVEL_ERROR);
    again_fd = server_job_seal(&job);
    check(again_fd >= 0 && lseek(again_fd, 0, SEEK_SET) == 0);
    check(fs_read_fd(again_fd, bytes.len + 1, &packed, &len) == 0);
    check_packed((struct span){packed, len}, bytes);
    job_done(&block);
}

static void check_checker(int fd, struct span bytes)
{
    _cleanup_close_ int again_fd = -1;
    _cleanup_free_ char *packed = NULL;
    struct checker_job job;
    struct job block;
    size_t len;
    int r = checker_job_read(fd, &block, &job);

    check(r == 0 || r == -EPROTO);
    if (r < 0)
        return;
    check(job.off_count <= SOURCE_SWITCHES_MAX);
    again_fd = checker_job_seal(&job);
    check(again_fd >= 0 && lseek(again_fd, 0, SEEK_SET) == 0);
    check(fs_read_fd(again_fd, bytes.len + 1, &packed, &len) == 0);
    check_packed((struct span){packed, len}, bytes);
    job_done(&block);
}

static void check_emissions(const struct emissions_job *job)
{
    check(job->count <= CHOICE_MAX && job->basis < PRICE_BASES);
    for (size_t i = 0; i < EMISSION_KEYS_MAX; i++)
        check(memchr(job->keys.values[i], '\0', EMISSION_KEY_BYTES));
}

static void check_fetcher(int fd, struct span bytes)
{
    struct fetcher_job job;
    struct buffer packed;
    struct job block;
    int r = fetcher_job_read(fd, &block, &job);

    check(r == 0 || r == -EPROTO);
    if (r < 0)
        return;
    check(job.kind < FETCHER_KINDS);
    if (job.kind == FETCHER_EMISSIONS)
        check_emissions(&job.emissions);
    fetcher_job_pack(&job, &packed);
    pack_u64(&packed, job.is_restart);
    check(!buffer_failed(&packed));
    check_packed((struct span){packed.data, packed.len}, bytes);
    buffer_wipe(&packed);
    job_done(&block);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span bytes = {(const char *)data + 1, size - 1};
    _cleanup_close_ int fd = -1;

    if (size < 2)
        return 0;
    check(fs_create_sealed(bytes.data, bytes.len, &fd) == 0);
    if (data[0] == 2)
        check_checker(fd, bytes);
    else if (data[0] % 2 == 0)
        check_server(fd, bytes);
    else
        check_fetcher(fd, bytes);
    return 0;
}
