/* The records of partitioned boards in a trace: MIG layouts, their memory, and vGPUs. What a layout
 * has is what the calls in mig.c and vgpu.c answer, which cite their sources. */
#include <stdlib.h>
#include <string.h>

#include "scenario.h"
#include "words.h"

enum { PARTITIONS_MAX = 256 };

/* A text up to the next colon; `-` is none. No scenario needs the codes for odd bytes. */
static bool take_text(char **rest, char *to, size_t size)
{
    const char *text = strsep(rest, ":");

    if (!text || strlen(text) >= size)
        return false;
    strcpy(to, strcmp(text, "-") == 0 ? "" : text);
    return true;
}

static bool parse_instance(struct instance *to, char *word)
{
    uint64_t *const numbers[] = {&to->gpu_instance, &to->compute_instance, &to->index,
                                 &to->slices,       &to->compute_slices,   &to->sms,
                                 &to->bytes};

    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
        if (!words_u64(strsep(&word, ":"), numbers[i]))
            return false;
    if (!take_text(&word, to->profile, sizeof(to->profile)) ||
        !take_text(&word, to->uuid, sizeof(to->uuid)) || to->index >= 64)
        return false;
    to->has_placement = word;
    for (size_t i = 0; to->has_placement && i < sizeof(to->placement) / sizeof(*to->placement); i++)
        if (!words_u64(strsep(&word, ":"), &to->placement[i]))
            return false;
    return !word;
}

/* Allocates `size` bytes for each of the announced items. */
static const char *take_count(struct record *record, char **rest, size_t size)
{
    uint64_t count;

    if (!words_u64(words_next(rest), &count) || count > PARTITIONS_MAX)
        return "a bad number of instances";
    record->entries = calloc(count + 1, size);
    record->count = count;
    return record->entries ? NULL : "out of memory";
}

const char *partitions_parse_layout(struct record *record, char *rest)
{
    const char *why;

    for (size_t i = 0; i < 3; i++)
        if (!words_u64(words_next(&rest), &record->values[i]))
            return "a layout with a bad number";
    why = take_count(record, &rest, sizeof(*record->instances));
    for (size_t i = 0; !why && i < record->count; i++) {
        char *word = words_next(&rest);

        if (!word || !parse_instance(&record->instances[i], word))
            why = "a bad instance";
    }
    return why || !words_next(&rest) ? why : "a layout with too many words";
}

const char *partitions_parse_memory(struct record *record, char *rest)
{
    static const char *const memory_words[INSTANCE_MEMORY_WORDS] = {
        [INSTANCE_MEMORY_TOTAL] = "total",
        [INSTANCE_MEMORY_RESERVED] = "reserved",
        [INSTANCE_MEMORY_USED] = "used",
        [INSTANCE_MEMORY_FREE] = "free",
    };
    const char *word;

    if (!words_u64(words_next(&rest), &record->values[0]))
        return "a bad GPU instance";
    word = words_next(&rest);
    for (record->values[1] = 0; word && record->values[1] < INSTANCE_MEMORY_WORDS;
         record->values[1]++)
        if (strcmp(word, memory_words[record->values[1]]) == 0)
            break;
    if (!word || record->values[1] == INSTANCE_MEMORY_WORDS ||
        !words_u64(words_next(&rest), &record->values[2]) || words_next(&rest))
        return "bad memory of an instance";
    return NULL;
}

const char *partitions_parse_vgpus(struct record *record, char *rest)
{
    const char *why = take_count(record, &rest, sizeof(*record->vgpus));

    for (size_t i = 0; !why && i < record->count; i++) {
        struct vgpu *vgpu = &record->vgpus[i];
        char *word = words_next(&rest);
        const char *type;

        if (!words_u64(strsep(&word, ":"), &vgpu->id) ||
            !words_u64(strsep(&word, ":"), &vgpu->bytes))
            return "a bad vGPU";
        type = strsep(&word, ":");
        vgpu->vm_is_uuid = type && strcmp(type, "u") == 0;
        if (!take_text(&word, vgpu->vm, sizeof(vgpu->vm)) ||
            !take_text(&word, vgpu->uuid, sizeof(vgpu->uuid)) || word)
            why = "a bad vGPU";
    }
    return why || !words_next(&rest) ? why : "a list of vGPUs with too many words";
}
