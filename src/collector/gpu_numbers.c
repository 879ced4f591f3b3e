#include "collector/gpu_numbers.h"

/* SAMPLE_GPU_MAX: none is left. */
static uint32_t find_index(const struct gpu_numbers *numbers, const struct source_ops *source,
                           uint32_t number)
{
    uint32_t index = 0;

    for (uint32_t i = 0; i < SAMPLE_GPU_MAX; i++)
        if (numbers->owners[i].source == source && numbers->owners[i].number == number)
            return i;
    if (!numbers->owners[number].source)
        return number;
    while (index < SAMPLE_GPU_MAX && numbers->owners[index].source)
        index++;
    return index;
}

/* True: it is the first that is seen of this GPU, and it cannot have its own number. */
static bool take_index(struct gpu_numbers *numbers, const struct source_ops *source,
                       uint32_t number, uint32_t *ret_index)
{
    uint32_t index = find_index(numbers, source, number);
    bool is_news;

    *ret_index = index;
    if (index == SAMPLE_GPU_MAX) {
        is_news = !numbers->is_full;
        numbers->is_full = true;
        return is_news;
    }
    is_news = !numbers->owners[index].source && index != number;
    numbers->owners[index].source = source;
    numbers->owners[index].number = number;
    return is_news;
}

size_t gpu_numbers_apply(struct gpu_numbers *numbers, const struct source_ops *source,
                         struct batch *batch)
{
    size_t kept = 0, news = 0;

    for (size_t i = 0; i < batch->count; i++) {
        struct sample *sample = &batch->samples[i];
        uint32_t index = sample->gpu;

        if (sample->kind < SAMPLE_METER) {
            news += take_index(numbers, source, sample->gpu, &index);
            if (index == SAMPLE_GPU_MAX)
                continue;
            if (sample->kind == SAMPLE_DEVICE)
                sample->device.is_renumbered = index != sample->gpu;
            sample->gpu = index;
        }
        batch->samples[kept++] = *sample;
    }
    batch->count = kept;
    return news;
}
