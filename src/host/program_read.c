#include "host/program_read.h"

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/macros.h"
#include "host/memory_read.h"

enum { ARGUMENTS_BYTES = 32 << 10 }; /* a longer command line has no key */

struct program_read {
    const struct proc_reader *reader;
    struct memory_read *arguments;
    int process_fd;
    uint64_t start_us;
};

struct program_read *program_read_start(const struct proc_reader *reader,
                                        const struct sample_process *process)
{
    const struct program_secret *secret = &reader->host->program_secret;
    struct program_read *read;

    if ((secret->words[0] | secret->words[1]) == 0)
        return NULL;
    read = malloc(sizeof(*read));
    if (!read)
        return NULL;
    *read = (struct program_read){
        .reader = reader,
        .process_fd = proc_open(reader->host, process->pid),
        .start_us = process->start_us,
    };
    if (read->process_fd >= 0)
        read->arguments =
            memory_read_start(read->process_fd, process->uid, "cmdline", ARGUMENTS_BYTES);
    if (read->arguments)
        return read;
    program_read_free(read);
    return NULL;
}

bool program_read_wait(struct program_read *read, uint32_t timeout_ms, struct program_key *ret_key)
{
    const struct proc_reader *reader = read->reader;
    struct program_key key = {0};
    struct span arguments;
    char path[PATH_MAX];
    uint64_t start_us;

    if (!memory_read_wait(read->arguments, timeout_ms, &arguments))
        return false;
    if (arguments.len < ARGUMENTS_BYTES &&
        proc_read_start(read->process_fd, reader->boot_us, &start_us) == 0 &&
        start_us == read->start_us) /* the pid was not reused meanwhile */
        key = program_key_of(&reader->host->program_secret,
                             proc_read_executable(read->process_fd, path, sizeof(path)), arguments);
    *ret_key = key;
    return true;
}

void program_read_free(struct program_read *read)
{
    if (!read)
        return;
    memory_read_free(read->arguments);
    cleanup_close(&read->process_fd);
    free(read);
}
