/*
 * Pull parser for the subset of XML that services send: elements, attributes (skipped) and text.
 * DTDs, CDATA and more than XML_DEPTH_MAX levels are errors; entities stay as they are. Events
 * point into the document; nothing is allocated. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "core/span.h"

enum { XML_DEPTH_MAX = 16 };

enum xml_kind {
    XML_OPEN,
    XML_CLOSE, /* also follows the XML_OPEN of an empty element */
    XML_TEXT,  /* trimmed, never empty */
    XML_END,   /* the root element has ended */
};

struct xml_event {
    enum xml_kind kind;
    struct span name; /* of the innermost element, without its prefix */
    struct span text; /* of XML_TEXT */
};

struct xml_scanner {
    struct span rest;
    struct span open[XML_DEPTH_MAX]; /* names with prefix */
    size_t depth;
    bool is_empty; /* the innermost element was an empty tag */
    bool has_root;
};

void xml_init(struct xml_scanner *scanner, struct span document);

/* 0 or -EBADMSG, which ends the scan. */
int xml_next(struct xml_scanner *scanner, struct xml_event *ret_event);
