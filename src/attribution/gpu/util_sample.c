#include "attribution/gpu/util_sample.h"

#include "attribution/ledger/ledger.h"
#include "core/macros.h"

struct util_sample *util_samples_at(struct util_samples *samples, size_t index)
{
    return &samples->ring[(samples->first + index) % UTIL_SAMPLES_MAX];
}

static void drop_first(struct util_samples *samples)
{
    samples->first = (samples->first + 1) % UTIL_SAMPLES_MAX;
    samples->count--;
}

struct util_sample *util_samples_add(struct util_samples *samples,
                                     const struct sample_label *sample, uint64_t settled_until_us)
{
    uint16_t weight =
        MAX(sample->sm_percent, MAX(sample->encoder_percent, sample->decoder_percent));
    struct util_sample *taken;

    if (weight > 100 || sample->memory_percent > 100) {
        samples->garbage++;
        return NULL;
    }
    for (size_t i = samples->count; i-- > 0;) {
        taken = util_samples_at(samples, i);
        if (taken->at_us == sample->at_us && taken->pid == sample->pid) {
            samples->repeated++;
            return NULL;
        }
    }
    if (samples->count == UTIL_SAMPLES_MAX)
        drop_first(samples);
    taken = util_samples_at(samples, samples->count++);
    *taken = (struct util_sample){
        .at_us = sample->at_us,
        .pid = sample->pid,
        .process = LEDGER_NONE,
        .sm_percent = (uint8_t)sample->sm_percent,
        .memory_percent = (uint8_t)sample->memory_percent,
        .weight = (uint8_t)weight,
        .in_proc = sample->in_proc,
        .counted = sample->at_us <= settled_until_us,
    };
    samples->late += taken->counted;
    return taken;
}

void util_samples_prune(struct util_samples *samples, uint64_t now_us)
{
    while (samples->count > 0 && util_samples_at(samples, 0)->counted &&
           util_samples_at(samples, 0)->at_us + UTIL_SAMPLES_RATIO_US < now_us)
        drop_first(samples);
}
