#include "top/node_document.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/json_reader.h"
#include "core/macros.h"

enum {
    API_VERSION = 1,
    ARENA_CAP_BYTES = 256 << 20,
};

/* Too little time to tell how busy a CPU was: accounting may be as coarse as 10 ms. */
static const double COMPARED_MIN_S = 0.2;

const char *const node_unowned_words[NODE_UNOWNED_COUNT] = {
    [NODE_IDLE] = "idle",
    [NODE_SYSTEM] = "system",
    [NODE_UNATTRIBUTED] = "unattributed",
    [NODE_GAP] = "gap",
};

struct field {
    const char *key;
    size_t offset;
};

#define FIELD(type, key, member)                                                                   \
    {                                                                                              \
        key, offsetof(struct type, member)                                                         \
    }

/* While it is read. */
struct reader {
    struct node_document *document;
    bool is_short; /* of memory */
};

static double read_number(const struct json *object, const char *key)
{
    double number;

    return json_double(json_get(object, key), &number) ? number : NAN;
}

static void read_numbers(const struct json *object, const struct field *fields, size_t count,
                         void *target)
{
    for (size_t i = 0; i < count; i++) {
        double *member = (void *)((char *)target + fields[i].offset);

        *member = read_number(object, fields[i].key);
    }
}

static void read_texts(struct reader *reader, const struct json *object, const struct field *fields,
                       size_t count, void *target)
{
    for (size_t i = 0; i < count; i++) {
        const char *text = json_text(json_get(object, fields[i].key)), *copy = "";
        const char **member = (void *)((char *)target + fields[i].offset);

        if (text && text[0])
            copy = arena_copy(&reader->document->arena, text, strlen(text));
        if (!copy) {
            reader->is_short = true;
            copy = "";
        }
        *member = copy;
    }
}

/* Room for the members of an array. */
static void *make_array(struct reader *reader, const struct json *array, size_t item_bytes,
                        size_t *ret_count)
{
    size_t count = json_length(array);
    void *items = count > 0 ? arena_array(&reader->document->arena, count, item_bytes) : NULL;

    reader->is_short = reader->is_short || (count > 0 && !items);
    *ret_count = items ? count : 0;
    return items;
}

static void read_meters(struct reader *reader, const struct json *array)
{
    static const struct field texts[] = {FIELD(document_meter, "meter", meter),
                                         FIELD(document_meter, "meter_id", id)};
    static const struct field numbers[] = {
        FIELD(document_meter, "gpu", gpu),
        FIELD(document_meter, "watts", watts),
        FIELD(document_meter, "measured_watts", measured_watts),
        FIELD(document_meter, "energy_joules", energy_joules),
        FIELD(document_meter, "pending_joules", pending_joules),
        FIELD(document_meter, "imbalance_joules", imbalance_joules),
        FIELD(document_meter, "settled_time", settled_time)};
    struct node_document *document = reader->document;

    document->meters =
        make_array(reader, array, sizeof(struct document_meter), &document->meter_count);
    for (size_t i = 0; i < document->meter_count; i++) {
        const struct json *from = json_at(array, i), *unowned = json_get(from, "unowned");
        struct document_meter *meter = &document->meters[i];

        read_texts(reader, from, texts, ARRAY_SIZE(texts), meter);
        read_numbers(from, numbers, ARRAY_SIZE(numbers), meter);
        meter->is_modelled = json_is_true(json_get(from, "modelled"));
        for (size_t k = 0; k < NODE_UNOWNED_COUNT; k++) {
            const struct json *owner = json_get(unowned, node_unowned_words[k]);

            meter->unowned_watts[k] = read_number(owner, "watts");
            meter->unowned_joules[k] = read_number(owner, "energy_joules");
        }
    }
}

static void read_shares(struct reader *reader, const struct json *array,
                        struct document_workload *workload)
{
    static const struct field numbers[] = {
        FIELD(document_share, "watts", watts),
        FIELD(document_share, "energy_joules", energy_joules),
        FIELD(document_share, "uncertainty_joules", uncertainty_joules),
        FIELD(document_share, "confidence", confidence)};
    size_t capacity;

    workload->shares = make_array(reader, array, sizeof(struct document_share), &capacity);
    for (size_t i = 0; i < capacity; i++) {
        const struct json *from = json_at(array, i);
        struct document_share *share = &workload->shares[workload->share_count];
        int64_t meter;

        if (!json_int64(json_get(from, "meter"), &meter) || meter < 0 ||
            (uint64_t)meter >= reader->document->meter_count)
            continue;
        share->meter = (size_t)meter;
        read_numbers(from, numbers, ARRAY_SIZE(numbers), share);
        workload->share_count++;
    }
}

/* The largest first; what is unknown comes last. */
static int compare_processes(const void *a, const void *b)
{
    double x = ((const struct document_process *)a)->energy_joules;
    double y = ((const struct document_process *)b)->energy_joules;

    return isnan(x) || isnan(y) ? isnan(x) - isnan(y) : (x < y) - (x > y);
}

static void read_processes(struct reader *reader, const struct json *array,
                           struct document_workload *workload)
{
    static const struct field texts[] = {FIELD(document_process, "name", name)};
    static const struct field numbers[] = {
        FIELD(document_process, "pid", pid),
        FIELD(document_process, "gpu", gpu),
        FIELD(document_process, "energy_joules", energy_joules),
        FIELD(document_process, "uncertainty_joules", uncertainty_joules),
        FIELD(document_process, "gpu_memory_bytes", gpu_memory_bytes),
        FIELD(document_process, "start_time", start_time)};

    workload->processes =
        make_array(reader, array, sizeof(struct document_process), &workload->process_count);
    for (size_t i = 0; i < workload->process_count; i++) {
        read_texts(reader, json_at(array, i), texts, ARRAY_SIZE(texts), &workload->processes[i]);
        read_numbers(json_at(array, i), numbers, ARRAY_SIZE(numbers), &workload->processes[i]);
    }
    if (workload->process_count > 0)
        qsort(workload->processes, workload->process_count, sizeof(struct document_process),
              compare_processes);
}

static void read_allocations(struct reader *reader, const struct json *array,
                             struct document_workload *workload)
{
    static const struct field texts[] = {FIELD(document_allocation, "uuid", uuid),
                                         FIELD(document_allocation, "source", source)};
    static const struct field numbers[] = {
        FIELD(document_allocation, "gpu", gpu),
        FIELD(document_allocation, "gpu_instance", gpu_instance)};

    workload->allocations =
        make_array(reader, array, sizeof(struct document_allocation), &workload->allocation_count);
    for (size_t i = 0; i < workload->allocation_count; i++) {
        struct document_allocation *allocation = &workload->allocations[i];

        read_texts(reader, json_at(array, i), texts, ARRAY_SIZE(texts), allocation);
        read_numbers(json_at(array, i), numbers, ARRAY_SIZE(numbers), allocation);
        allocation->is_unverified = json_is_true(json_get(json_at(array, i), "unverified"));
    }
}

static void read_workload(struct reader *reader, const struct json *from,
                          struct document_workload *workload)
{
    static const struct field texts[] = {
        FIELD(document_workload, "kind", kind), FIELD(document_workload, "id", id),
        FIELD(document_workload, "name", name), FIELD(document_workload, "namespace", namespace),
        FIELD(document_workload, "pod", pod),   FIELD(document_workload, "container", container)};
    static const struct field details[] = {FIELD(document_workload, "image", image),
                                           FIELD(document_workload, "user", user),
                                           FIELD(document_workload, "account", account),
                                           FIELD(document_workload, "job_id", job_id),
                                           FIELD(document_workload, "job_name", job_name),
                                           FIELD(document_workload, "unverified", unverified)};
    static const struct field numbers[] = {
        FIELD(document_workload, "watts", watts),
        FIELD(document_workload, "energy_joules", energy_joules),
        FIELD(document_workload, "uncertainty_joules", uncertainty_joules),
        FIELD(document_workload, "emissions_grams", emissions_grams),
        FIELD(document_workload, "cost", cost),
        FIELD(document_workload, "gpu_memory_bytes", gpu_memory_bytes),
        FIELD(document_workload, "cpu_seconds", cpu_seconds),
        FIELD(document_workload, "memory_bytes", memory_bytes)};

    read_texts(reader, from, texts, ARRAY_SIZE(texts), workload);
    read_texts(reader, json_get(from, "details"), details, ARRAY_SIZE(details), workload);
    read_numbers(from, numbers, ARRAY_SIZE(numbers), workload);
    workload->cpu_cores = NAN;
    read_shares(reader, json_get(from, "meters"), workload);
    read_processes(reader, json_get(from, "processes"), workload);
    read_allocations(reader, json_get(from, "gpus"), workload);
}

static void read_gpus(struct reader *reader, const struct json *array)
{
    static const struct field texts[] = {
        FIELD(document_gpu, "uuid", uuid), FIELD(document_gpu, "name", name),
        FIELD(document_gpu, "driver", driver), FIELD(document_gpu, "sharing", sharing)};
    static const struct field numbers[] = {
        FIELD(document_gpu, "gpu", gpu),
        FIELD(document_gpu, "utilisation_percent", utilisation_percent),
        FIELD(document_gpu, "memory_used_bytes", memory_used_bytes),
        FIELD(document_gpu, "memory_total_bytes", memory_total_bytes),
        FIELD(document_gpu, "temperature_celsius", temperature_celsius),
        FIELD(document_gpu, "watts", watts)};
    struct node_document *document = reader->document;

    document->gpus = make_array(reader, array, sizeof(struct document_gpu), &document->gpu_count);
    for (size_t i = 0; i < document->gpu_count; i++) {
        const struct json *from = json_at(array, i);

        read_texts(reader, from, texts, ARRAY_SIZE(texts), &document->gpus[i]);
        read_numbers(from, numbers, ARRAY_SIZE(numbers), &document->gpus[i]);
        document->gpus[i].instance_count = json_length(json_get(from, "instances"));
    }
}

static void read_sources(struct reader *reader, const struct json *array)
{
    static const struct field texts[] = {FIELD(document_source, "name", name)};
    static const struct field numbers[] = {FIELD(document_source, "age_seconds", age_seconds),
                                           FIELD(document_source, "errors", errors)};
    struct node_document *document = reader->document;

    document->sources =
        make_array(reader, array, sizeof(struct document_source), &document->source_count);
    for (size_t i = 0; i < document->source_count; i++) {
        read_texts(reader, json_at(array, i), texts, ARRAY_SIZE(texts), &document->sources[i]);
        read_numbers(json_at(array, i), numbers, ARRAY_SIZE(numbers), &document->sources[i]);
        document->sources[i].is_up = json_is_true(json_get(json_at(array, i), "up"));
    }
}

static int compare_identities(const struct document_workload *a, const struct document_workload *b)
{
    int order = strcmp(a->kind, b->kind);

    return order != 0 ? order : strcmp(a->id, b->id);
}

static int compare_pointed_identities(const void *a, const void *b)
{
    return compare_identities(*(struct document_workload *const *)a,
                              *(struct document_workload *const *)b);
}

static void read_workloads(struct reader *reader, const struct json *array)
{
    struct node_document *document = reader->document;

    document->workloads =
        make_array(reader, array, sizeof(struct document_workload), &document->workload_count);
    document->by_identity = arena_array(&document->arena, MAX(document->workload_count, (size_t)1),
                                        sizeof(struct document_workload *));
    if (!document->by_identity) {
        reader->is_short = true;
        return;
    }
    for (size_t i = 0; i < document->workload_count; i++) {
        read_workload(reader, json_at(array, i), &document->workloads[i]);
        document->by_identity[i] = &document->workloads[i];
    }
    if (document->workload_count > 0)
        qsort(document->by_identity, document->workload_count, sizeof(struct document_workload *),
              compare_pointed_identities);
}

static void read_document(struct reader *reader, const struct json *root)
{
    static const struct field texts[] = {FIELD(node_document, "version", version),
                                         FIELD(node_document, "node", node),
                                         FIELD(node_document, "currency", currency)};
    static const struct field numbers[] = {
        FIELD(node_document, "time", time), FIELD(node_document, "start_time", start_time),
        FIELD(node_document, "watts", watts), FIELD(node_document, "price_per_kwh", price_per_kwh),
        FIELD(node_document, "grams_per_kwh", grams_per_kwh)};
    struct node_document *document = reader->document;

    read_texts(reader, root, texts, ARRAY_SIZE(texts), document);
    read_numbers(root, numbers, ARRAY_SIZE(numbers), document);
    document->is_replay = json_is_true(json_get(root, "replay"));
    read_meters(reader, json_get(root, "meters")); /* before what points to them */
    read_workloads(reader, json_get(root, "workloads"));
    read_gpus(reader, json_get(root, "gpus"));
    read_sources(reader, json_get(root, "sources"));
}

static int check_version(const struct json *root, struct error *err)
{
    int64_t version;

    if (!json_int64(json_get(root, "api"), &version))
        return error_set(err, -EBADMSG, "the document is not that of a node: it has no 'api'");
    if (version != API_VERSION)
        return error_set(err, -EBADMSG,
                         "the document has version %lld of the API, and this program reads %d: use "
                         "the program that came with the daemon",
                         (long long)version, API_VERSION);
    return 0;
}

int node_document_parse(struct span text, struct node_document **ret_document, struct error *err)
{
    struct reader reader = {0};
    struct json *root = NULL;
    int r = json_read_large(text, &root);

    if (r == -EBADMSG)
        return error_set(err, r, "the document is no JSON, or larger than that of any node");
    if (r == 0)
        r = check_version(root, err);
    if (r == 0) {
        reader.document = calloc(1, sizeof(*reader.document));
        if (reader.document) {
            arena_init(&reader.document->arena, ARENA_CAP_BYTES);
            read_document(&reader, root);
        }
        if (!reader.document || reader.is_short)
            r = -ENOMEM;
    }
    json_free(root);
    if (r == -ENOMEM)
        error_format(err, "out of memory");
    if (r < 0)
        node_document_free(reader.document);
    else
        *ret_document = reader.document;
    return r;
}

void node_document_free(struct node_document *document)
{
    if (!document)
        return;
    arena_done(&document->arena);
    free(document);
}

struct document_workload *node_document_find(const struct node_document *document,
                                             const struct document_workload *like)
{
    struct document_workload **found;

    if (!document || document->workload_count == 0)
        return NULL;
    found = bsearch(&like, document->by_identity, document->workload_count,
                    sizeof(struct document_workload *), compare_pointed_identities);
    return found ? *found : NULL;
}

void node_document_compare(struct node_document *document, const struct node_document *before)
{
    double elapsed = before ? document->time - before->time : NAN;

    for (size_t i = 0; i < document->workload_count; i++) {
        struct document_workload *workload = &document->workloads[i];
        const struct document_workload *earlier = node_document_find(before, workload);

        workload->cpu_cores = NAN;
        if (!earlier)
            continue;
        if (elapsed >= COMPARED_MIN_S && workload->cpu_seconds >= earlier->cpu_seconds)
            workload->cpu_cores = (workload->cpu_seconds - earlier->cpu_seconds) / elapsed;
        else if (elapsed >= 0 && elapsed < COMPARED_MIN_S)
            workload->cpu_cores = earlier->cpu_cores;
    }
}

double node_document_measured_watts(const struct node_document *document)
{
    double sum = NAN;

    for (size_t i = 0; i < document->meter_count; i++) {
        double watts = document->meters[i].measured_watts;

        if (!isnan(watts))
            sum = isnan(sum) ? watts : sum + watts;
    }
    return sum;
}

double node_document_seconds_behind(const struct node_document *document)
{
    double latest = 0;

    for (size_t i = 0; i < document->meter_count; i++)
        if (!isnan(document->meters[i].watts))
            latest = fmax(latest, document->time - document->meters[i].settled_time);
    return latest;
}

double node_document_unowned_watts(const struct node_document *document, enum node_unowned owner)
{
    double sum = 0;

    for (size_t i = 0; i < document->meter_count; i++)
        if (!isnan(document->meters[i].unowned_watts[owner]))
            sum += document->meters[i].unowned_watts[owner];
    return sum;
}
