/* The screen of `wattribute top`: keys, signals and documents until the user quits. */
#pragma once

#include "cli/top_feed.h"
#include "config/options.h"

/* Of whatever thread gets them; before the first one starts. */
void top_screen_block_signals(void);

/* Whether the locale's characters are UTF-8. */
bool top_screen_is_utf8(void);

/*
 * Takes the terminal and gives it back as it was, however it ends; takes the first document, too,
 * which may be NULL. Returns 0 when the user quits, by q or Ctrl-C; the number of the signal that
 * ended it, of SIGTERM, SIGHUP and SIGQUIT, for the caller to die by; or -errno with a text.
 */
int top_screen_run(const struct top_source *source, const struct options *options,
                   bool is_in_colour, struct node_document *first, struct error *err);
