#include "identity/runtime_table.h"

#include <assert.h>

#include "core/macros.h"

/* clang-format off */
const struct runtime_ops *const runtime_table[] = {
    &runtime_cri,
    &runtime_docker,
    &runtime_podman,
    NULL,
};
/* clang-format on */

static_assert(ARRAY_SIZE(runtime_table) - 1 <= RUNTIME_TABLE_MAX, "raise RUNTIME_TABLE_MAX");
