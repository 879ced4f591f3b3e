#include "attribution/gpu/util_sample.h"

#include "attribution/ledger/ledger.h"
#include "core/macros.h"

struct util_sample *util_samples_at(struct util_samples *labels, size_t index)
{
    return &labels->ring[(labels->first + index) % UTIL_SAMPLES_MAX];
}

const struct util_sample *util_samples_peek(const struct util_samples *labels, size_t index)
{
    return &labels->ring[(labels->first + index) % UTIL_SAMPLES_MAX];
}

static void drop_first(struct util_samples *labels)
{
    labels->first = (labels->first + 1) % UTIL_SAMPLES_MAX;
    labels->count--;
}

struct util_sample *util_samples_add(struct util_samples *labels, const struct sample_label *sample,
                                     uint64_t settled_until_us)
{
    uint16_t weight =
        MAX(sample->sm_percent, MAX(sample->encoder_percent, sample->decoder_percent));
    struct util_sample *label;

    if (weight > 100 || sample->memory_percent > 100) {
        labels->garbage++;
        return NULL;
    }
    for (size_t i = labels->count; i-- > 0;) {
        label = util_samples_at(labels, i);
        if (label->at_us == sample->at_us && label->pid == sample->pid) {
            labels->repeated++;
            return NULL;
        }
    }
    if (labels->count == UTIL_SAMPLES_MAX)
        drop_first(labels);
    label = util_samples_at(labels, labels->count++);
    *label = (struct util_sample){
        .at_us = sample->at_us,
        .pid = sample->pid,
        .process = LEDGER_NONE,
        .sm_percent = (uint8_t)sample->sm_percent,
        .memory_percent = (uint8_t)sample->memory_percent,
        .weight = (uint8_t)weight,
        .in_proc = sample->in_proc,
        .counted = sample->at_us <= settled_until_us,
    };
    labels->late += label->counted;
    return label;
}

void util_samples_prune(struct util_samples *labels, uint64_t now_us)
{
    while (labels->count > 0 && util_samples_at(labels, 0)->counted &&
           util_samples_at(labels, 0)->at_us + UTIL_SAMPLES_RATIO_US < now_us)
        drop_first(labels);
}

void util_samples_clear(struct util_samples *labels)
{
    labels->first = labels->count = 0;
}
