#include "attribution/gpu/labels.h"

#include "attribution/ledger/ledger.h"
#include "core/macros.h"

struct label *labels_at(struct labels *labels, size_t index)
{
    return &labels->ring[(labels->first + index) % LABELS_MAX];
}

const struct label *labels_peek(const struct labels *labels, size_t index)
{
    return &labels->ring[(labels->first + index) % LABELS_MAX];
}

static void drop_first(struct labels *labels)
{
    labels->first = (labels->first + 1) % LABELS_MAX;
    labels->count--;
}

struct label *labels_add(struct labels *labels, const struct sample_label *sample,
                         uint64_t settled_until_us)
{
    uint16_t weight =
        MAX(sample->sm_percent, MAX(sample->encoder_percent, sample->decoder_percent));
    struct label *label;

    if (weight > 100 || sample->memory_percent > 100) {
        labels->garbage++;
        return NULL;
    }
    for (size_t i = labels->count; i-- > 0;) {
        label = labels_at(labels, i);
        if (label->at_us == sample->at_us && label->pid == sample->pid) {
            labels->repeated++;
            return NULL;
        }
    }
    if (labels->count == LABELS_MAX)
        drop_first(labels);
    label = labels_at(labels, labels->count++);
    *label = (struct label){
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

void labels_prune(struct labels *labels, uint64_t now_us)
{
    while (labels->count > 0 && labels_at(labels, 0)->counted &&
           labels_at(labels, 0)->at_us + LABELS_RATIO_US < now_us)
        drop_first(labels);
}

void labels_clear(struct labels *labels)
{
    labels->first = labels->count = 0;
}
