/* Flags by their names. */
#pragma once

#include "unit.h"

#include "config/options.h"

static struct options_flag flag_named(const char *name)
{
    struct options_flag flag;

    assert_true(options_find(span_of(name), &flag));
    return flag;
}

static int set_flag(struct options *options, const char *name, const char *value,
                    enum options_source source, struct error *err)
{
    const struct options_flag flag = flag_named(name);

    return options_set(options, &flag, value, source, name, err);
}
