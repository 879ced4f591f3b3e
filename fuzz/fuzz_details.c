/*
 * What processes and files say of a workload: any bytes give texts of a bounded length that are in
 * them, or none.
 *
 * The first byte chooses: '0' to '2' the environment of a batch job, '3' the command line of QEMU,
 * '4' /etc/passwd, '5' the link of a mediated device.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"
#include "core/parse.h"
#include "identity/details.h"
#include "identity/job_gpus.h"
#include "identity/vm_gpus.h"

enum { TEXT_MAX = 255 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static bool holds_text(struct span whole, const char *text)
{
    return memmem(whole.data, whole.len, text, strlen(text));
}

static void free_texts(char *texts[WORKLOAD_TEXTS])
{
    for (size_t i = 0; i < WORKLOAD_TEXTS; i++)
        free(texts[i]);
}

static void check_texts(char *texts[WORKLOAD_TEXTS], unsigned allowed)
{
    for (size_t i = 0; i < WORKLOAD_TEXTS; i++)
        check(!texts[i] || ((allowed >> i & 1) && texts[i][0] && strlen(texts[i]) <= TEXT_MAX));
}

/* Whatever a job says, it is its own word, and of GPUs that can be on a node. */
static void check_gpus(enum workload_kind kind, struct span text)
{
    for (enum job_step step = JOB_STEP_BATCH; step <= JOB_STEP_NONE; step++) {
        struct gpu_access_list gpus = {.count = 0};

        job_gpus_parse_environ(kind, step, text, &gpus);
        check(job_gpus_parse_count(kind, step, text) <= GPU_ACCESS_MAX);
        check(gpus.count <= GPU_ACCESS_MAX);
        check(gpus.count == 0 || kind != WORKLOAD_SLURM || step != JOB_STEP_NONE);
        for (size_t i = 0; i < gpus.count; i++) {
            const struct gpu_access *gpu = &gpus.items[i];

            check(gpu->is_unverified && gpu->source == ALLOCATED_BY_ENVIRONMENT);
            check(gpu->kind == ALLOCATION_ORDINAL ? gpu->index < GPU_ACCESS_MAX && !gpu->id[0]
                                                  : holds_text(text, gpu->id));
        }
    }
}

/* The first of two variables with a name counts, so those behind it only add what is missing. */
static void check_environ(enum workload_kind kind, struct span text)
{
    static const char more[] = "\0SLURM_JOB_NAME=last\0LSB_JOBNAME=last\0PBS_JOBNAME=last";
    char *texts[WORKLOAD_TEXTS] = {0}, *again[WORKLOAD_TEXTS] = {0};
    _cleanup_free_ char *longer = malloc(text.len + sizeof(more));
    const char *name;
    uint64_t id;

    if (!longer)
        abort();
    memcpy(longer, text.data, text.len);
    memcpy(longer + text.len, more, sizeof(more));
    details_parse_environ(kind, text, texts);
    details_parse_environ(kind, (struct span){longer, text.len + sizeof(more)}, again);
    check_texts(texts, 1 << WORKLOAD_TEXT_JOB_ID | 1 << WORKLOAD_TEXT_JOB_NAME |
                           1 << WORKLOAD_TEXT_ACCOUNT);
    for (size_t i = 0; i < WORKLOAD_TEXTS; i++)
        check(!texts[i] || (holds_text(text, texts[i]) && strcmp(texts[i], again[i]) == 0));
    name = texts[WORKLOAD_TEXT_JOB_NAME];
    check(strcmp(again[WORKLOAD_TEXT_JOB_NAME], name ? name : "last") == 0);
    if (texts[WORKLOAD_TEXT_JOB_ID])
        check(kind == WORKLOAD_SLURM && parse_u64(span_of(texts[WORKLOAD_TEXT_JOB_ID]), &id) == 0);
    free_texts(texts);
    free_texts(again);
    check_gpus(kind, text);
}

/* An address is written in one way only. */
static void check_address(const char *address)
{
    char again[SAMPLE_PCI_BYTES];

    check(strlen(address) < SAMPLE_PCI_BYTES);
    check(vm_gpus_parse_address(span_of(address), again) && strcmp(address, again) == 0);
}

/* A device can name nothing but one entry of a directory in sysfs, whatever path it has. */
static void check_devices(struct span text)
{
    struct vm_device_list devices = {.count = 0};

    (void)vm_gpus_parse_cmdline(text, &devices);
    check(devices.count <= VM_DEVICES_MAX);
    for (size_t i = 0; i < devices.count; i++) {
        const char *name = devices.items[i].name;

        if (devices.items[i].is_mediated)
            check(parse_is_uuid(span_of(name)));
        else
            check_address(name);
    }
}

static void check_mdev_link(struct span text)
{
    char address[SAMPLE_PCI_BYTES];

    if (vm_gpus_parse_mdev_link(text, address))
        check_address(address);
}

/* Commas in a name are doubled in the command line. */
static void check_cmdline(struct span text)
{
    char *texts[WORKLOAD_TEXTS] = {0}, doubled[2 * TEXT_MAX + 1];
    const char *name;
    size_t len = 0;

    details_parse_cmdline(text, texts);
    check_texts(texts, 1 << WORKLOAD_TEXT_NAME | 1 << WORKLOAD_TEXT_UUID);
    name = texts[WORKLOAD_TEXT_NAME];
    for (size_t i = 0; name && name[i]; i++) {
        doubled[len++] = name[i];
        if (name[i] == ',')
            doubled[len++] = ',';
    }
    check(memmem(text.data, text.len, doubled, len));
    if (texts[WORKLOAD_TEXT_UUID])
        check(strlen(texts[WORKLOAD_TEXT_UUID]) == 36 &&
              holds_text(text, texts[WORKLOAD_TEXT_UUID]));
    free_texts(texts);
    check_devices(text);
}

/* With a line of our own at the end a uid always has a name, and it is that of a line. */
static void check_passwd(struct span text)
{
    static const char own_line[] = "\nown:x:1000:1000::/:\n";
    _cleanup_free_ char *whole = malloc(text.len + sizeof(own_line));
    struct span file = {whole, text.len + sizeof(own_line) - 1};
    char name[32], cut[4], field[40];

    if (!whole)
        abort();
    memcpy(whole, text.data, text.len);
    memcpy(whole + text.len, own_line, sizeof(own_line));
    check(passwd_find(file, 1000, name, sizeof(name)));
    check(name[0] && memchr(name, '\0', sizeof(name)) && !strpbrk(name, ":\n"));
    snprintf(field, sizeof(field), "%s:", name);
    check(holds_text(file, field));
    check(passwd_find(file, 1000, cut, sizeof(cut)) && strlen(cut) < sizeof(cut));
    check(!passwd_find(file, UINT32_MAX, name, sizeof(name)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span text = {(const char *)data + 1, size - 1};

    if (size == 0)
        return 0;
    switch ((unsigned char)(data[0] - '0') % 6) {
    case 0:
        check_environ(WORKLOAD_SLURM, text);
        break;
    case 1:
        check_environ(WORKLOAD_LSF, text);
        break;
    case 2:
        check_environ(WORKLOAD_PBS, text);
        break;
    case 3:
        check_cmdline(text);
        break;
    case 4:
        check_passwd(text);
        break;
    default:
        check_mdev_link(text);
    }
    return 0;
}
