/* The landing page, from its template. Pure. */
#pragma once

#include "core/buffer.h"
#include "core/span.h"

/* Replaces {{metrics_path}} and {{version}}, escaped for HTML. */
void landing_render(struct span template, const char *metrics_path, const char *version,
                    struct buffer *out);
