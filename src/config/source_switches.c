#include "config/source_switches.h"

#include <stdio.h>

#include "core/macros.h"
#include "sources/source.h"

void source_switches_read(const struct options *options, struct source_switches *ret_switches)
{
    *ret_switches = (struct source_switches){0};
    for (size_t i = 0; source_table[i]; i++)
        if (source_table[i]->flag && !options->source_is_on[i])
            ret_switches->off[ret_switches->off_count++] = source_table[i]->name;
}

bool source_switches_is_on(const struct options *options, const char *source)
{
    struct source_switches switches;

    source_switches_read(options, &switches);
    return !source_is_off(&switches, source);
}

void source_switches_read_model(const struct options *options, struct source_estimate *ret_model)
{
    bool is_given = options->model_full_uw > 0;

    ret_model->is_on = is_given || options->model_cpu == OPTIONS_MODEL_AUTO;
    ret_model->by_table = !is_given;
    ret_model->idle_uw = options->model_idle_uw;
    ret_model->full_uw = options->model_full_uw;
    atomic_init(&ret_model->gives_way, false);
}

const char *source_switches_list_off(const struct source_switches *switches, char *text,
                                     size_t size_bytes)
{
    size_t len = 0;

    for (size_t i = 0; i < switches->off_count && len < size_bytes; i++)
        len += (size_t)snprintf(text + len, size_bytes - len, "%s%s", i > 0 ? ", " : "",
                                switches->off[i]);
    return switches->off_count > 0 ? text : NULL;
}
