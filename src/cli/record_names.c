#include "cli/record_names.h"

#include <errno.h>
#include <stdio.h>

#include "core/macros.h"

static const uint64_t PERIOD_US = 2 * USEC_PER_SEC;

int record_names_open(struct record_names *names, const struct options *options,
                      const struct host *host, const struct clock *clock, struct error *err)
{
    int r = recorded_names_new(&names->written);

    names->clock = clock;
    if (r < 0 || !options->record_names)
        return r;
    return identity_open(
        &(struct identity_options){
            .host = host,
            .rootfs_path = options->rootfs_path,
            .clock = clock,
            .scan_interval_us = options->process_scan_interval_us,
            .kubernetes = options->kubernetes_enabled,
            .runtime_sockets = options->runtime_sockets,
            .pod_resources_socket = options->pod_resources_socket,
        },
        &names->identity, err);
}

void record_names_close(struct record_names *names)
{
    identity_close(names->identity);
    recorded_names_free(names->written);
    *names = (struct record_names){0};
}

void record_names_note(struct record_names *names, const struct batch *batch)
{
    for (size_t i = 0; names->identity && i < batch->count; i++) {
        const struct sample *sample = &batch->samples[i];
        struct workload_owner owner;

        if (sample->kind != SAMPLE_PROCESS)
            continue;
        identity_find_owner(&sample->process, &owner);
        identity_note(names->identity, sample->process.pid, &owner);
    }
}

static void find_owner(const struct snapshot_info *info, struct workload_owner *ret_owner)
{
    *ret_owner = (struct workload_owner){.kind = info->kind};
    snprintf(ret_owner->id, sizeof(ret_owner->id), "%s", info->id);
    snprintf(ret_owner->container_id, sizeof(ret_owner->container_id), "%s", info->container_id);
    snprintf(ret_owner->pod_uid, sizeof(ret_owner->pod_uid), "%s", info->pod_uid);
}

/* All that identity knows of a workload; some of the texts are the owner's. False: there may be
 * more of it soon. */
static bool find_texts(struct identity *identity, const struct workload_owner *owner,
                       const struct snapshot_info *info, struct sample_names *ret_texts)
{
    struct workload_names names;
    bool is_final = identity_find_names(identity, owner, &names);

    *ret_texts = (struct sample_names){
        .kind = info->kind,
        .id = info->id,
        .texts = {[WORKLOAD_TEXT_NAME] = names.name,
                  [WORKLOAD_TEXT_NAMESPACE] = names.namespace,
                  [WORKLOAD_TEXT_POD] = names.pod,
                  [WORKLOAD_TEXT_CONTAINER] = names.container,
                  [WORKLOAD_TEXT_IMAGE] = info->image,
                  [WORKLOAD_TEXT_USER] = info->user,
                  [WORKLOAD_TEXT_ACCOUNT] = info->account,
                  [WORKLOAD_TEXT_JOB_ID] = info->job_id,
                  [WORKLOAD_TEXT_JOB_NAME] = info->job_name,
                  [WORKLOAD_TEXT_UUID] = info->uuid,
                  [WORKLOAD_TEXT_UNVERIFIED] = info->unverified},
    };
    return is_final;
}

static bool are_empty(const struct sample_names *names)
{
    for (int i = 0; i < WORKLOAD_TEXTS; i++)
        if (names->texts[i][0])
            return false;
    return true;
}

static int write_infos(struct record_names *names, const struct snapshot *snapshot, bool is_last,
                       struct trace_writer *lines, struct buffer *out)
{
    uint64_t t_us = names->clock->realtime_us(names->clock);

    for (size_t i = 0; i < snapshot->info_count; i++) {
        const struct snapshot_info *info = &snapshot->infos[i];
        struct workload_owner owner;
        struct sample_names texts;
        bool is_final;
        int r;

        find_owner(info, &owner);
        is_final = find_texts(names->identity, &owner, info, &texts);
        if (are_empty(&texts) || (!is_final && !is_last))
            continue;
        r = recorded_names_learn(names->written, &texts);
        if (r < 0)
            return r;
        if (r > 0)
            trace_write_sample(
                lines, &(struct sample){.kind = SAMPLE_NAMES, .t_us = t_us, .names = &texts}, out);
    }
    return 0;
}

int record_names_write(struct record_names *names, const struct pipeline *pipeline, bool is_last,
                       struct trace_writer *lines, struct buffer *out)
{
    uint64_t now_us = names->clock->monotonic_us(names->clock);
    struct snapshot snapshot;
    int r;

    if (!names->identity || (now_us < names->due_us && !is_last))
        return 0;
    names->due_us = now_us + PERIOD_US;
    snapshot_init(&snapshot);
    r = pipeline_snapshot(pipeline, 0, 0, &snapshot);
    if (r == 0)
        r = identity_describe(names->identity, &snapshot);
    if (r == 0)
        r = write_infos(names, &snapshot, is_last, lines, out);
    snapshot_done(&snapshot);
    return r;
}
