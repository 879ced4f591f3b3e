/* process/capabilities: which capabilities are kept, and that the manual tells why. */
#include "options_fixture.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>

#include "core/fs.h"
#include "core/macros.h"
#include "process/capabilities.h"

#define BIT(name) (UINT64_C(1) << CAP_##name)
#define CHILDREN  (BIT(SETUID) | BIT(SETGID) | BIT(SETPCAP) | BIT(KILL))
#define NODE      (BIT(SYS_PTRACE) | BIT(DAC_READ_SEARCH) | BIT(PERFMON))

/* Flags as "NAME=VALUE", ended by NULL. */
static uint64_t needed(struct capability_context context, const char *const *flags)
{
    struct options options;
    struct error err;
    uint64_t set;

    assert_int_equal(options_init(&options, &err), 0);
    for (; *flags; flags++) {
        char name[64];
        const char *value = strchr(*flags, '=') + 1;

        snprintf(name, sizeof(name), "%.*s", (int)(value - 1 - *flags), *flags);
        assert_int_equal(set_flag(&options, name, value, OPTIONS_COMMAND_LINE, &err), 0);
    }
    context.options = &options;
    set = capabilities_needed(&context);
    options_done(&options);
    return set;
}

#define NEEDED(release, children, ...)                                                             \
    needed((struct capability_context){.kernel_release = (release), .has_children = (children)},   \
           (const char *const[]){__VA_ARGS__, NULL})

static void what_is_switched_off_needs_nothing(void **state)
{
    (void)state;
    assert_true(NEEDED("6.12.1", true, NULL) == (NODE | CHILDREN));
    assert_true(NEEDED("6.12.1", false, NULL) == NODE);
    assert_true(NEEDED("6.12.1", true, "collector.rapl=false") ==
                ((NODE & ~BIT(PERFMON)) | CHILDREN));
    assert_true(NEEDED("6.12.1", true, "replay=/x") == (CHILDREN | BIT(DAC_READ_SEARCH)));
    assert_true(NEEDED("6.12.1", true, "podman-socket=/x") ==
                (NODE | CHILDREN | BIT(DAC_OVERRIDE)));
    assert_true(NEEDED("6.12.1", true, "podman-socket=", "pod-resources-socket=") ==
                (NODE | CHILDREN));
    assert_true(needed((struct capability_context){.kernel_release = "6.12", .writes_file = true},
                       (const char *const[]){NULL}) == (NODE | BIT(DAC_OVERRIDE)));
    assert_true(needed((struct capability_context){.kernel_release = "6.1", .reads_traces = true},
                       (const char *const[]){NULL}) == BIT(DAC_READ_SEARCH));
}

static void process_events_need_an_administrator_before_linux_6_6(void **state)
{
    static const struct {
        const char *release;
        bool is_old;
    } cases[] = {
        {"6.1.0-18-amd64", true},
        {"5.14.0-427.el9", true},
        {"6.5", true},
        {"4.18.0", true},
        {"6.6.0", false},
        {"6.6-rc1", false},
        {"6.12.1+", false},
        {"7.0.0", false},
        {"10.0", false},
        {"", false},
        {"linux", false},
        {"6", false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        if (((NEEDED(cases[i].release, true, NULL) & BIT(NET_ADMIN)) != 0) != cases[i].is_old)
            fail_msg("%s", cases[i].release);
    assert_true((NEEDED("6.1.0", true, "process-events=false") & BIT(NET_ADMIN)) == 0);
}

static void the_manual_has_the_table(void **state)
{
    _cleanup_close_ int fd = open(SOURCE_DIR "/docs/systemd.md", O_RDONLY | O_CLOEXEC);
    _cleanup_free_ char *page = NULL;
    char table[4096] =
        "| for | capability | file or call | without it |\n| --- | --- | --- | --- |\n";
    size_t len;

    (void)state;
    assert_int_equal(fs_read_fd(fd, 1 << 20, &page, &len), 0);
    for (size_t i = 0; i < capability_uses_count; i++) {
        const struct capability_use *use = &capability_uses[i];
        size_t end = strlen(table);

        snprintf(table + end, sizeof(table) - end, "| %s | %s | %s | %s |\n", use->feature,
                 use->name, use->object, use->loss);
    }
    strcat(table, "\n");
    if (!strstr(page, table))
        fail_msg("docs/systemd.md has not this table:\n%s", table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_switched_off_needs_nothing),
        cmocka_unit_test(process_events_need_an_administrator_before_linux_6_6),
        cmocka_unit_test(the_manual_has_the_table),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
