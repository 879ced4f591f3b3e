/* What KFD says of a GPU: any bytes give a node within its bounds, or none. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sources/amd/kfd.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* "0000:19:00.0" of a function 0, as sysfs writes it. */
static void check_address(const char pci[static SAMPLE_PCI_BYTES])
{
    size_t len = strnlen(pci, SAMPLE_PCI_BYTES);

    if (len < 12 || len > 16 || strcmp(pci + len - 2, ".0") != 0 || pci[len - 5] != ':' ||
        pci[len - 8] != ':' || pci[len - 4] > '1')
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span text = {(const char *)data, size};
    struct kfd_node node;

    if (kfd_parse_properties(text, &node) < 0)
        return 0;
    check_address(node.pci);
    if (node.gpu_id != 0 || (node.has_render ? node.render_minor < 128 : node.render_minor > 0))
        abort();
    return 0;
}
