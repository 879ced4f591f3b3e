/* Which GPUs there are, and who each of them is. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "call.h"

static int count(enum symbol symbol, unsigned *ret_count)
{
    _call_ struct call call = call_begin(symbol);

    if (call.code)
        return call.code;
    if (!ret_count)
        return NVML_INVALID_ARGUMENT;
    *ret_count = call.fake->scenario->gpu_count;
    return NVML_SUCCESS;
}

int nvmlDeviceGetCount_v2(unsigned *ret_count)
{
    return count(SYMBOL_nvmlDeviceGetCount_v2, ret_count);
}

int nvmlDeviceGetCount(unsigned *ret_count)
{
    return count(SYMBOL_nvmlDeviceGetCount, ret_count);
}

static int give_handle(struct call *call, unsigned index, void **ret_dev)
{
    if (call_apply(call, (int)index) == NVML_SUCCESS)
        *ret_dev = handle_make(HANDLE_DEVICE, call->fake->generation, index);
    return call->code;
}

static int by_index(enum symbol symbol, unsigned index, void **ret_dev)
{
    _call_ struct call call = call_open(symbol);

    if (call.code)
        return call.code;
    if (!ret_dev || index >= call.fake->scenario->gpu_count)
        return NVML_INVALID_ARGUMENT;
    return give_handle(&call, index, ret_dev);
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **ret_dev)
{
    return by_index(SYMBOL_nvmlDeviceGetHandleByIndex_v2, index, ret_dev);
}

int nvmlDeviceGetHandleByIndex(unsigned index, void **ret_dev)
{
    return by_index(SYMBOL_nvmlDeviceGetHandleByIndex, index, ret_dev);
}

/* "uuid: The UUID of the target GPU or MIG instance" (nvml.h). */
int nvmlDeviceGetHandleByUUID(const char *uuid, void **ret_dev)
{
    _call_ struct call call = call_open(SYMBOL_nvmlDeviceGetHandleByUUID);
    const struct record *layout;

    if (call.code)
        return call.code;
    if (!uuid || !ret_dev)
        return NVML_INVALID_ARGUMENT;
    for (unsigned i = 0; i < call.fake->scenario->gpu_count; i++) {
        if (strcmp(call.fake->scenario->gpus[i].uuid, uuid) == 0)
            return give_handle(&call, i, ret_dev);
        call.gpu = (int)i;
        layout = call_layout(&call);
        for (size_t k = 0; layout && layout->values[0] && k < layout->count; k++)
            if (strcmp(layout->instances[k].uuid, uuid) == 0) {
                if (call_apply(&call, (int)i) == NVML_SUCCESS)
                    *ret_dev = call_mig_handle(&call, &layout->instances[k]);
                return call.code;
            }
    }
    return NVML_NOT_FOUND;
}

/* "When used with MIG device handles the API returns globally unique UUIDs which can be used to
 * identify MIG devices across both GPU and MIG devices" (nvml.h). */
int nvmlDeviceGetUUID(void *dev, char *buf, unsigned len)
{
    _call_ struct call call = call_begin_any(SYMBOL_nvmlDeviceGetUUID, dev);

    if (call.code)
        return call.code;
    return copy_out(buf, len, call.instance ? call.instance->uuid : call_gpu(&call)->uuid);
}

/* "When used with MIG device handles the API returns MIG device names which can be used to identify
 * devices based on their attributes" (nvml.h): the board's, and the profile as `nvidia-smi -L` has
 * it. */
int nvmlDeviceGetName(void *dev, char *buf, unsigned len)
{
    _call_ struct call call = call_begin_any(SYMBOL_nvmlDeviceGetName, dev);
    char text[256];

    if (call.code)
        return call.code;
    snprintf(text, sizeof(text), "%s%s%s", call_gpu(&call)->name, call.instance ? " MIG " : "",
             call.instance ? call.instance->profile : "");
    return copy_out(buf, len, text);
}

int nvmlDeviceGetSerial(void *dev, char *buf, unsigned len)
{
    _call_ struct call call = call_begin_device(SYMBOL_nvmlDeviceGetSerial, dev);

    if (call.code)
        return call.code;
    if (!call_gpu(&call)->serial[0])
        return NVML_NOT_SUPPORTED;
    return copy_out(buf, len, call_gpu(&call)->serial);
}

static int answer(enum symbol symbol, void *dev, unsigned *ret_value, unsigned value)
{
    _call_ struct call call = call_begin_device(symbol, dev);

    if (call.code)
        return call.code;
    if (!ret_value)
        return NVML_INVALID_ARGUMENT;
    *ret_value = value;
    return NVML_SUCCESS;
}

static int answer_index(enum symbol symbol, void *dev, unsigned *ret_index)
{
    _call_ struct call call = call_begin_device(symbol, dev);

    if (call.code)
        return call.code;
    if (!ret_index)
        return NVML_INVALID_ARGUMENT;
    *ret_index = (unsigned)call.gpu;
    return NVML_SUCCESS;
}

int nvmlDeviceGetIndex(void *dev, unsigned *index)
{
    return answer_index(SYMBOL_nvmlDeviceGetIndex, dev, index);
}

int nvmlDeviceGetMinorNumber(void *dev, unsigned *minor)
{
    return answer_index(SYMBOL_nvmlDeviceGetMinorNumber, dev, minor);
}

/* The modes of the machine that the reference traces come from: pass-through, persistence on. */

int nvmlDeviceGetPersistenceMode(void *dev, unsigned *mode)
{
    return answer(SYMBOL_nvmlDeviceGetPersistenceMode, dev, mode, 1);
}

int nvmlDeviceGetComputeMode(void *dev, unsigned *mode)
{
    return answer(SYMBOL_nvmlDeviceGetComputeMode, dev, mode, 0);
}

int nvmlDeviceGetCurrPcieLinkGeneration(void *dev, unsigned *generation)
{
    return answer(SYMBOL_nvmlDeviceGetCurrPcieLinkGeneration, dev, generation, 5);
}

int nvmlDeviceGetCurrPcieLinkWidth(void *dev, unsigned *width)
{
    return answer(SYMBOL_nvmlDeviceGetCurrPcieLinkWidth, dev, width, 16);
}

/* A `pci` key (0000:1b:00.0, as sysfs writes it), or a bus for each index. Eight digits of domain
 * and upper case are NVML's own form. */
static void fill_pci(const struct call *call, struct nvml_pci_info *pci)
{
    unsigned domain = 0, bus = 0x18 + (unsigned)call->gpu, device = 0;
    const char *text = call_gpu(call)->pci;
    char *end;

    if (text[0]) {
        domain = (unsigned)strtoul(text, &end, 16);
        bus = *end == ':' ? (unsigned)strtoul(end + 1, &end, 16) : 0;
        device = *end == ':' ? (unsigned)strtoul(end + 1, NULL, 16) : 0;
    }
    memset(pci, 0, sizeof(*pci));
    pci->domain = domain;
    pci->bus = bus;
    pci->device = device;
    pci->pci_device_id = 0x233510de;
    pci->pci_subsystem_id = 0x18be10de;
    snprintf(pci->bus_id_legacy, sizeof(pci->bus_id_legacy), "%04X:%02X:%02X.0", domain & 0xffff,
             bus & 0xff, device & 0xff);
    snprintf(pci->bus_id, sizeof(pci->bus_id), "%08X:%02X:%02X.0", domain, bus & 0xff,
             device & 0xff);
}

/* Below v3 the call knows nothing of the last 32 bytes. */
static int pci_info(enum symbol symbol, void *dev, struct nvml_pci_info *ret_pci, size_t size)
{
    _call_ struct call call = call_begin_device(symbol, dev);
    struct nvml_pci_info pci;

    if (call.code)
        return call.code;
    if (!ret_pci)
        return NVML_INVALID_ARGUMENT;
    fill_pci(&call, &pci);
    memcpy(ret_pci, &pci, size);
    return NVML_SUCCESS;
}

int nvmlDeviceGetPciInfo_v3(void *dev, struct nvml_pci_info *pci)
{
    return pci_info(SYMBOL_nvmlDeviceGetPciInfo_v3, dev, pci, sizeof(*pci));
}

int nvmlDeviceGetPciInfo_v2(void *dev, struct nvml_pci_info *pci)
{
    return pci_info(SYMBOL_nvmlDeviceGetPciInfo_v2, dev, pci,
                    offsetof(struct nvml_pci_info, bus_id));
}

int nvmlDeviceGetPciInfo(void *dev, struct nvml_pci_info *pci)
{
    return pci_info(SYMBOL_nvmlDeviceGetPciInfo, dev, pci, offsetof(struct nvml_pci_info, bus_id));
}
