/*
 * The exporter's own NVML code on the fake library, in a rig. Closing it checks that everything was
 * released, besides what the rig checks.
 */
#pragma once

#include "source_rig.h"

#include <dlfcn.h>
#include <malloc.h>

#include "sources/nvml/nvml.h"

#define SCENARIOS SOURCE_DIR "/tests/fakes/nvml/scenarios/"
#define STEP_US   ((uint64_t)200000)

/* A process of the fixture, started so many seconds after boot, which was at the scenario's start.
 */
static inline void write_process(const struct rig *rig, uint32_t pid, unsigned start_s,
                                 const char *cgroup)
{
    char name[64], text[512];

    snprintf(name, sizeof(name), "proc/%u/stat", pid);
    snprintf(text, sizeof(text),
             "%u (a (b) c) S 1 1 1 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 %ld 0 0 0\n", pid,
             start_s * sysconf(_SC_CLK_TCK));
    tree_write(rig->root, name, text);
    snprintf(name, sizeof(name), "proc/%u/cgroup", pid);
    snprintf(text, sizeof(text), "1:name=systemd:/x\n0::%s\n", cgroup);
    tree_write(rig->root, name, text);
}

static inline void move_nvml(struct rig *rig)
{
    rig->set_time_us(rig->elapsed_us);
}

static inline void load_nvml(struct rig *rig, const char *library, const char *scenario)
{
    rig->library = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!rig->library)
        fail_msg("%s", dlerror());
    rig->set_time_us = (typeof(rig->set_time_us))dlsym(rig->library, "fake_nvml_set_time_us");
    rig->call_count = (typeof(rig->call_count))dlsym(rig->library, "fake_nvml_call_count");
    rig->open_handles = (typeof(rig->open_handles))dlsym(rig->library, "fake_nvml_open_handles");
    rig->init_count = (typeof(rig->init_count))dlsym(rig->library, "fake_nvml_init_count");
    rig->stale_uses = (typeof(rig->stale_uses))dlsym(rig->library, "fake_nvml_stale_uses");
    ((typeof(fake_nvml_reset) *)dlsym(rig->library, "fake_nvml_reset"))();
    assert_int_equal(((typeof(fake_nvml_load) *)dlsym(rig->library, "fake_nvml_load"))(scenario),
                     0);
    rig->set_time_us(0);
}

static inline void unload_nvml(struct rig *rig)
{
    /* Everything was released. */
    assert_int_equal(rig->init_count(), 0);
    assert_int_equal(rig->open_handles(), 0);
    assert_int_equal(rig->stale_uses(), 0);
    dlclose(rig->library);
}

static inline void open_rig_by(struct rig *rig, const char *library, const char *scenario,
                               struct gpu_options gpu_options)
{
    *rig = (struct rig){.root = "/tmp/nvmlXXXXXX", .step_us = STEP_US, .move = move_nvml};
    load_nvml(rig, library, scenario);
    assert_non_null(mkdtemp(rig->root));
    tree_write(rig->root, "proc/stat", "cpu 1\nbtime 1800000000\n");
    tree_write(rig->root, "sys/empty", "");
    rig_begin(rig, gpu_options);
    rig->context.nvml_library = library;
    rig_add_source(rig, &nvml_source);
}

/* By time share. */
static inline void open_rig(struct rig *rig, const char *library, const char *scenario)
{
    open_rig_by(rig, library, scenario, (struct gpu_options){.interval_us = SECOND});
}

static inline void close_rig(struct rig *rig)
{
    rig_end(rig);
    unload_nvml(rig);
}
