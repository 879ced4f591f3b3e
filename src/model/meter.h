/* Meter: something on the node that counts joules; the words of the label `meter`. */
#pragma once

enum meter_kind {
    /* Booked: they do not overlap, so that their sum is what the node used, as far as it is known.
     */
    METER_GPU,
    METER_PACKAGE,
    METER_DRAM,
    METER_REST, /* the node without the others */

    /* Only observed: they contain others, or are contained in them. */
    METER_CORE,
    METER_UNCORE,
    METER_PSYS,
    METER_MODULE,
    METER_NODE,
    METER_KINDS,
};

extern const char *const meter_words[METER_KINDS];
