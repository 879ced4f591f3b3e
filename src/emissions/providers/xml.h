/*
 * A scanner for the small, regular part of XML that machines send each other: elements, attributes
 * that nobody reads, text. No DTD, no CDATA, no entities (a text has them as they stand), no more
 * than XML_DEPTH_MAX levels; any of these is an error. Views into the document, no memory. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "core/span.h"

enum { XML_DEPTH_MAX = 16 };

enum xml_kind {
    XML_OPEN,  /* an element begins; an empty one begins and ends */
    XML_CLOSE, /* it ends */
    XML_TEXT,  /* without the blanks around it, and never empty */
    XML_END,   /* of the document, whose one root has ended */
};

struct xml_event {
    enum xml_kind kind;
    struct span name; /* of the innermost element, without its prefix */
    struct span text; /* of XML_TEXT */
};

struct xml_scanner {
    struct span rest;
    struct span open[XML_DEPTH_MAX]; /* full names */
    size_t depth;
    bool is_empty; /* the element on top has ended where it began */
    bool has_root;
};

void xml_init(struct xml_scanner *scanner, struct span document);

/* 0 or -EBADMSG, after which the scanner is of no more use. */
int xml_next(struct xml_scanner *scanner, struct xml_event *ret_event);
