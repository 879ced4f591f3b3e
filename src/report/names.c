#include "report/names.h"

#include <errno.h>
#include <string.h>

#include "core/buffer.h"
#include "core/macros.h"

enum { STRINGS_BYTES = 1 << 30 };

const char *const names_by_words[NAMES_BY_COUNT] = {"namespace", "user",  "account", "job",
                                                    "pod",       "image", "node"};

struct name_key {
    const struct page *page;
    const char *kind, *id;
};

void names_init(struct names *names)
{
    *names = (struct names){0};
    arena_init(&names->strings, STRINGS_BYTES);
}

void names_done(struct names *names)
{
    table_done(&names->table);
    arena_done(&names->strings);
}

static uint64_t hash_of(const struct name_key *key)
{
    return map_hash_bytes(span_of(key->kind)) * 31 + map_hash_bytes(span_of(key->id)) * 17 +
           map_hash_u64(key->page->entry.index);
}

static uint64_t nonzero(uint64_t hash)
{
    return hash ? hash : 1;
}

static bool has_key(const void *entry, const void *key)
{
    const struct name_details *details = entry;
    const struct name_key *wanted = key;

    return details->page == wanted->page && strcmp(details->id, wanted->id) == 0 &&
           strcmp(details->kind, wanted->kind) == 0;
}

static bool set_text(struct names *names, const char **text, const char *value)
{
    if (value[0] == '\0' || strcmp(*text, value) == 0)
        return true;
    *text = arena_copy(&names->strings, value, strlen(value));
    if (!*text)
        *text = "";
    return **text != '\0';
}

static struct name_details *add(struct names *names, const struct name_key *key)
{
    struct name_details *details =
        table_add(&names->table, nonzero(hash_of(key)), sizeof(*details));

    if (!details)
        return NULL;
    details->page = key->page;
    details->kind = details->id = details->namespace = details->pod = details->image = "";
    details->user = details->account = details->job_name = details->node = "";
    return set_text(names, &details->kind, key->kind) && set_text(names, &details->id, key->id)
               ? details
               : NULL;
}

const char *names_of_row(const struct page *page, const struct answer_series *series,
                         const char *label, const char *exported_label)
{
    const char *value = answer_label(series, exported_label);

    if (value[0] == '\0' &&
        (!page->has_namespace || strcmp(answer_label(series, "kind"), "pod") == 0))
        value = answer_label(series, label);
    return value;
}

int names_take(struct names *names, const struct pages *pages, const struct answer *answer)
{
    for (size_t i = 0; i < answer->series_count; i++) {
        const struct answer_series *series = &answer->series[i];
        const struct page *page = pages_find(pages, series);
        struct name_key key = {page, answer_label(series, "kind"), answer_label(series, "id")};
        struct name_details *details;

        if (!page || series->sample_count == 0)
            continue;
        details = table_find(&names->table, nonzero(hash_of(&key)), has_key, &key);
        if (!details)
            details = add(names, &key);
        if (!details ||
            !set_text(names, &details->namespace,
                      names_of_row(page, series, "namespace", "exported_namespace")) ||
            !set_text(names, &details->pod, names_of_row(page, series, "pod", "exported_pod")) ||
            !set_text(names, &details->image, answer_label(series, "image")) ||
            !set_text(names, &details->user, answer_label(series, "user")) ||
            !set_text(names, &details->account, answer_label(series, "account")) ||
            !set_text(names, &details->job_name, answer_label(series, "job_name")) ||
            !set_text(names, &details->node, answer_label(series, "node")))
            return -ENOMEM;
    }
    return 0;
}

const struct name_details *names_find(const struct names *names, const struct page *page,
                                      const char *kind, const char *id)
{
    struct name_key key = {page, kind, id};

    return table_find(&names->table, nonzero(hash_of(&key)), has_key, &key);
}

static void put_about(struct buffer *about, const char *text)
{
    if (text[0] == '\0')
        return;
    buffer_str(about, about->len > 0 ? ", " : "");
    buffer_str(about, text);
}

static const char *either(const char *first, const char *second)
{
    return first[0] ? first : second;
}

static bool is_job(const char *kind)
{
    return strcmp(kind, "slurm") == 0 || strcmp(kind, "lsf") == 0 || strcmp(kind, "pbs") == 0;
}

void names_put_group(const struct names *names, enum names_by by, const struct page *page,
                     const struct answer_series *series, struct buffer *name, struct buffer *about)
{
    static const struct name_details unknown = {.namespace = "",
                                                .pod = "",
                                                .image = "",
                                                .user = "",
                                                .account = "",
                                                .job_name = "",
                                                .node = ""};
    const char *kind = answer_label(series, "kind"), *id = answer_label(series, "id");
    const struct name_details *details = names_find(names, page, kind, id);
    const char *namespace = names_of_row(page, series, "namespace", "exported_namespace");
    const char *pod = names_of_row(page, series, "pod", "exported_pod");

    if (!details)
        details = &unknown;
    namespace = either(namespace, details->namespace);
    pod = either(pod, details->pod);
    switch (by) {
    case NAMES_NAMESPACE:
        buffer_str(name, namespace);
        break;
    case NAMES_USER:
        buffer_str(name, details->user);
        break;
    case NAMES_ACCOUNT:
        buffer_str(name, details->account);
        break;
    case NAMES_JOB:
        if (!is_job(kind))
            break;
        buffer_str(name, id);
        put_about(about, details->job_name);
        put_about(about, details->user);
        put_about(about, details->account);
        break;
    case NAMES_POD:
        if (pod[0] == '\0')
            break;
        buffer_str(name, namespace);
        buffer_char(name, '/');
        buffer_str(name, pod);
        put_about(about, details->image);
        break;
    case NAMES_IMAGE:
        buffer_str(name, details->image);
        break;
    default:
        buffer_str(name, page->title);
        put_about(about, details->node);
        break;
    }
}
