/* docs/metrics.md tells of every metric. */
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/fs.h"
#include "core/macros.h"
#include "metrics/text.h"

static void every_metric_is_documented(void **state)
{
    static const char *const prefixes[] = {
        [METRIC_PREFIX_PROCESS] = "my_gpu_process_",
        [METRIC_PREFIX_OWN] = "wattribute_",
        [METRIC_PREFIX_NONE] = "",
    };
    _cleanup_close_ int fd = open(SOURCE_DIR "/docs/metrics.md", O_RDONLY | O_CLOEXEC);
    _cleanup_free_ char *page = NULL;
    size_t len;

    (void)state;
    assert_int_equal(fs_read_fd(fd, 1 << 20, &page, &len), 0);
    for (size_t i = 0; i < METRIC_COUNT; i++) {
        const struct metric_name *metric = &metric_names[i];
        char name[128];

        snprintf(name, sizeof(name), "`%s%s%s", prefixes[metric->prefix], metric->name,
                 metric->type == METRIC_COUNTER ? "_total" : "");
        if (!strstr(page, name))
            fail_msg("docs/metrics.md does not name %s`", name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_metric_is_documented)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
