/*
 * The GPUs of virtual machines: by the command line of their QEMU, which libvirt or Proxmox writes,
 * and by the host's PCI devices, which show the board of each.
 *
 *   -device vfio-pci,sysfsdev=/sys/bus/mdev/devices/UUID  a mediated device: a vGPU
 *   -device vfio-pci,host=0000:41:00.4                    a virtual function (SR-IOV): a vGPU
 *   -device vfio-pci,host=0000:65:00.0                    a whole board, passed through
 *
 * or the same as JSON. Devices that were plugged in later are not on it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "core/span.h"
#include "host/host.h"
#include "identity/gpu_access.h"
#include "model/sample.h"

enum { VM_DEVICES_MAX = 64, VM_DEVICE_BYTES = 40 };

struct vm_device {
    bool is_mediated;
    char name[VM_DEVICE_BYTES]; /* the uuid of a mediated device, or a PCI address */
};

/* Those that do not fit are left out. */
struct vm_device_list {
    struct vm_device items[VM_DEVICES_MAX];
    size_t count;
};

/* Pure. Adds the host's devices that the command line hands to the guest. False: it is not that of
 * a QEMU with a name, but of a helper, or of a QEMU before its exec. */
bool vm_gpus_parse_cmdline(struct span cmdline, struct vm_device_list *devices);

/* Pure. "[DOMAIN:]BUS:SLOT.FUNCTION" in hexadecimal, written as sysfs does. */
bool vm_gpus_parse_address(struct span text, char ret_address[static SAMPLE_PCI_BYTES]);

/* Pure. The PCI device above a mediated one, from the link in /sys/bus/mdev/devices. */
bool vm_gpus_parse_mdev_link(struct span link, char ret_address[static SAMPLE_PCI_BYTES]);

/* Adds the boards of NVIDIA that these devices are, or are part of. A whole one counts only while
 * a VFIO driver has it: it may have been unplugged from the guest. */
void vm_gpus_add_boards(const struct host *host, const struct vm_device_list *devices,
                        struct gpu_access_list *gpus);

/* Adds the boards of NVIDIA that a VFIO driver has as a whole. The vendor's driver does not see
 * them, so they have no meter here. */
void vm_gpus_list_passed_through(const struct host *host, struct gpu_access_list *gpus);
