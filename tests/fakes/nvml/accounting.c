/* Accounting of processes, from the directives `accounting` and `account`. */
#include "call.h"

/* Off by default (measured); off and not changeable under MIG (reference page, 9.8). */
static bool is_on(const struct call *call)
{
    return call_directive(call, DIRECTIVE_ACCOUNTING, 0) && !call_is_mig(call);
}

/* The next entry of this GPU that is valid now; a later one of the same process replaces it. */
static const struct directive *next_account(const struct call *call, size_t *at)
{
    const struct directives *all = &call->fake->scenario->directives;

    while (*at < all->count && all->items[*at].t_us <= call->play.t_us) {
        const struct directive *item = &all->items[(*at)++];
        bool replaced = false;

        if (item->sort != DIRECTIVE_ACCOUNT ||
            (item->gpu != DIRECTIVE_ALL && item->gpu != call->gpu))
            continue;
        for (size_t i = *at; i < all->count && all->items[i].t_us <= call->play.t_us; i++)
            replaced |= all->items[i].sort == DIRECTIVE_ACCOUNT && all->items[i].gpu == item->gpu &&
                        all->items[i].values[0] == item->values[0];
        if (!replaced)
            return item;
    }
    return NULL;
}

int nvmlDeviceGetAccountingMode(void *dev, unsigned *mode)
{
    _call_ struct call call = call_begin_device(SYMBOL_nvmlDeviceGetAccountingMode, dev);

    if (call.code)
        return call.code;
    if (!mode)
        return NVML_INVALID_ARGUMENT;
    *mode = is_on(&call);
    return NVML_SUCCESS;
}

int nvmlDeviceGetAccountingPids(void *dev, unsigned *count, unsigned *ret_pids)
{
    _call_ struct call call = call_begin_device(SYMBOL_nvmlDeviceGetAccountingPids, dev);
    const struct directive *account;
    const struct pids *pids;
    unsigned needed = 0;
    size_t at = 0;

    if (call.code)
        return call.code;
    if (!count)
        return NVML_INVALID_ARGUMENT;
    if (!is_on(&call))
        return NVML_NOT_SUPPORTED;
    while (next_account(&call, &at))
        needed++;
    if (*count < needed) {
        *count = needed;
        return NVML_INSUFFICIENT_SIZE;
    }
    if (needed > 0 && !ret_pids)
        return NVML_INVALID_ARGUMENT;
    *count = needed;
    pids = call_pids(&call);
    at = 0;
    while ((account = next_account(&call, &at)))
        *ret_pids++ = pids_map(pids, account->values[0]);
    return NVML_SUCCESS;
}

int nvmlDeviceGetAccountingStats(void *dev, unsigned pid, struct nvml_accounting_stats *stats)
{
    _call_ struct call call = call_begin_device(SYMBOL_nvmlDeviceGetAccountingStats, dev);
    const struct directive *account;
    const struct pids *pids;
    size_t at = 0;

    if (call.code)
        return call.code;
    if (!stats)
        return NVML_INVALID_ARGUMENT;
    if (!is_on(&call))
        return NVML_NOT_SUPPORTED;
    pids = call_pids(&call);
    while ((account = next_account(&call, &at)))
        if (pids_map(pids, account->values[0]) == pid)
            break;
    if (!account)
        return NVML_NOT_FOUND;
    /* The time stays 0 while the process runs. */
    *stats = (struct nvml_accounting_stats){
        .gpu_utilization = (uint32_t)account->values[3],
        .max_memory_usage = NVML_NOT_AVAILABLE,
        .time = account->values[2],
        .start_time = call_stamp_us(
            &call, play_elapsed_us(call.fake->scenario, call.play.round, account->values[1])),
        .is_running = account->values[2] == 0,
    };
    return NVML_SUCCESS;
}
