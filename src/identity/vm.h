/* What QEMU's command line says of a virtual machine. libvirt writes it, not the guest. Pure. */
#pragma once

#include "core/span.h"

struct vm {
    char name[256];
    char uuid[37];
};

/* From /proc/PID/cmdline: arguments separated by NUL. What is not there, or no good, is "". */
void vm_parse_cmdline(struct span cmdline, struct vm *ret_vm);
