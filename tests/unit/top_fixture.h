/* A node's document, and the screen that shows it. */
#pragma once

#include "unit.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/buffer.h"
#include "top/node_document.h"
#include "top/screen.h"
#include "top/top.h"
#include "top/view.h"

/* Without "api" and "time", and its last bracket. */
#define NODE                                                                                        \
    "\"version\":\"0.1.0\",\"node\":\"gpu-07\",\"start_time\":50.5,\"currency\":\"EUR\","           \
    "\"watts\":300,\"meters\":["                                                                    \
    "{\"meter\":\"gpu\",\"meter_id\":\"GPU-1\",\"gpu\":0,\"watts\":280,\"measured_watts\":281.5,"   \
    "\"energy_joules\":90000,\"pending_joules\":1.5,\"unowned\":{\"idle\":{\"watts\":12,"           \
    "\"energy_joules\":900},\"unattributed\":{\"watts\":2}}},"                                      \
    "{\"meter\":\"package\",\"meter_id\":\"0\",\"modelled\":true,\"watts\":20,"                     \
    "\"unowned\":{\"idle\":{\"watts\":6}}}],"                                                       \
    "\"workloads\":["                                                                               \
    "{\"kind\":\"container\",\"id\":\"c0\",\"name\":\"web\",\"watts\":30,\"energy_joules\":500,"    \
    "\"uncertainty_joules\":5,\"cpu_seconds\":%s},"                                                 \
    "{\"kind\":\"pod\",\"id\":\"p1\",\"name\":\"train\",\"namespace\":\"ml\",\"watts\":200,"        \
    "\"energy_joules\":30000,\"uncertainty_joules\":600,\"emissions_grams\":4.25,\"cost\":0.125,"   \
    "\"gpu_memory_bytes\":1073741824,\"cpu_seconds\":100,\"memory_bytes\":2048,"                    \
    "\"meters\":[{\"meter\":0,\"watts\":190,\"energy_joules\":28000,\"uncertainty_joules\":560,"    \
    "\"confidence\":0.9},{\"meter\":1,\"watts\":10},{\"meter\":2,\"watts\":1},{\"meter\":-1}],"     \
    "\"processes\":[{\"pid\":11,\"name\":\"loader\",\"energy_joules\":1},"                          \
    "{\"pid\":12,\"gpu\":0,\"name\":\"python3\",\"energy_joules\":27000,"                           \
    "\"uncertainty_joules\":270,\"gpu_memory_bytes\":1048576}],"                                    \
    "\"gpus\":[{\"gpu\":0,\"uuid\":\"GPU-1\",\"gpu_instance\":3,\"source\":\"kubelet\","            \
    "\"unverified\":true}],\"details\":{\"image\":\"train:7\",\"user\":\"ann\"}},"                  \
    "{\"kind\":\"slurm\",\"id\":\"47\",\"name\":\"47\",\"watts\":50,\"energy_joules\":700,"         \
    "\"details\":{\"job_name\":\"relax\"}},"                                                        \
    "{\"kind\":\"user\",\"id\":\"1000\",\"name\":\"\",\"energy_joules\":1}],"                       \
    "\"gpus\":[{\"gpu\":0,\"uuid\":\"GPU-1\",\"name\":\"NVIDIA H200\",\"sharing\":\"time_sliced\"," \
    "\"utilisation_percent\":98,\"memory_used_bytes\":1073741824,"                                  \
    "\"memory_total_bytes\":150323855360,\"temperature_celsius\":43,\"watts\":281.5,"               \
    "\"instances\":[{},{}]}],"                                                                      \
    "\"sources\":[{\"name\":\"nvml/0\",\"up\":true,\"age_seconds\":0.5,\"errors\":2},"              \
    "{\"name\":\"rapl\",\"up\":false}]"

static struct node_document *parse_document(const char *text)
{
    struct node_document *document = NULL;
    struct error err = {""};

    if (node_document_parse(span_of(text), &document, &err) != 0)
        fail_msg("%s", err.text);
    return document;
}

/* The node at this time, with so much CPU time of "web". */
static struct node_document *node_at(double time, const char *cpu_seconds)
{
    char text[4096];
    int len = snprintf(text, sizeof(text), "{\"api\":1,\"time\":%f," NODE "}", time, cpu_seconds);

    assert_true(len > 0 && (size_t)len < sizeof(text));
    return parse_document(text);
}

static void use_utf8(void)
{
    assert_non_null(setlocale(LC_CTYPE, "C.UTF-8"));
}

/* What a screen of this size shows; to be freed. */
static char *drawn(struct top *top, size_t rows, size_t columns, bool is_utf8)
{
    struct screen screen = {.is_utf8 = is_utf8};
    struct buffer text;

    buffer_init(&text, 1 << 20);
    assert_int_equal(screen_resize(&screen, rows, columns), 0);
    view_draw(top, &screen);
    screen_print(&screen, &text);
    buffer_char(&text, '\0');
    assert_false(buffer_failed(&text));
    screen_done(&screen);
    return text.data;
}

static void press(struct top *top, const char *keys)
{
    for (; *keys; keys++)
        top_press(top, (unsigned char)*keys);
}

#define assert_shows(text, part)                                                                   \
    do {                                                                                           \
        if (!strstr(text, part))                                                                   \
            fail_msg("no \"%s\" in:\n%s", part, text);                                             \
    } while (0)
#define assert_hides(text, part)                                                                   \
    do {                                                                                           \
        if (strstr(text, part))                                                                    \
            fail_msg("\"%s\" in:\n%s", part, text);                                                \
    } while (0)
