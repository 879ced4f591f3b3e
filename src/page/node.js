// What the node's document means: sums and names that several parts of the page show.

export const OWNERS = ['idle', 'system', 'unattributed', 'gap'];

const KINDS = {
    pod: 'pod',
    container: 'container',
    slurm: 'Slurm job',
    lsf: 'LSF job',
    pbs: 'PBS job',
    vm: 'virtual machine',
    lxc: 'LXC container',
    nspawn: 'nspawn container',
    unit: 'unit',
    user: 'user',
    process: 'process',
    other: 'beyond the limits',
    retired: 'ended workloads',
};
export const OWNER_NAMES = {
    idle: 'Idle',
    system: 'System',
    unattributed: 'Unattributed',
    gap: 'Not observed',
    others: 'Other workloads',
};
const SHARING = {
    exclusive: 'exclusive',
    time_sliced: 'time-sliced',
    mps: 'MPS',
    mig: 'MIG',
    vgpu: 'vGPU',
    partitioned: 'partitioned',
};

export const keyOf = (workload) => `${workload.kind}/${workload.id ?? ''}`;
export const kindName = (kind) => KINDS[kind] ?? kind;
export const sharingName = (mode) => SHARING[mode] ?? mode;

// Anybody names a workload, also so that there is nothing to see or to click on.
const isVisible = (text) => /[^\p{C}\p{Z}]/u.test(text ?? '');

export function titleOf(workload) {
    if (workload.kind === 'retired' || workload.kind === 'other') return kindName(workload.kind);
    const job = workload.details?.job_name;
    const name = [workload.name, workload.id].find(isVisible) ?? 'no name';
    return job && job !== name ? `${name} ${job}` : name;
}

// What tells workloads of one name apart.
export function subtitleOf(workload) {
    const container = workload.container !== workload.name ? workload.container : undefined;
    const user = workload.details?.user !== workload.name ? workload.details?.user : undefined;
    return [kindName(workload.kind), workload.namespace, container, user].filter(Boolean).join(' · ');
}

// Sums what is known; undefined where nothing is.
export function sum(values) {
    let total;
    for (const value of values) if (typeof value === 'number') total = (total ?? 0) + value;
    return total;
}

export const unownedWatts = (node, owner) => sum(node.meters.map((meter) => meter.unowned?.[owner]?.watts));
export const unownedJoules = (node, owner) => sum(node.meters.map((meter) => meter.unowned?.[owner]?.energy_joules));
export const totalJoules = (node) => sum(node.meters.map((meter) => meter.energy_joules));
export const imbalance = (node) => sum(node.meters.map((meter) => Math.abs(meter.imbalance_joules ?? 0))) ?? 0;

// What the hardware says now. A meter that says nothing counts as booked; undefined if none says anything.
export function measuredWatts(node) {
    if (!node.meters.some((meter) => meter.measured_watts !== undefined)) return undefined;
    return sum(node.meters.map((meter) => meter.measured_watts ?? meter.watts));
}

// Up to when all meters are booked, but for those that are silent: a board that is lost is not waited for.
const SETTLED_STALE_S = 300; // the rest of the node takes that long
const isAwaited = (node, meter) =>
    meter.settled_time >= node.time - SETTLED_STALE_S && (meter.modelled || meter.measured_watts !== undefined);
export const settledTime = (node) =>
    Math.min(
        node.time,
        ...node.meters.filter((meter) => isAwaited(node, meter)).map(({ settled_time: settled }) => settled),
    );

export const nodeWatts = (node) => node.watts ?? sum(node.meters.map((meter) => meter.watts));

export function meterName(meter) {
    const gpu = meter.gpu === undefined ? '' : ` ${meter.gpu}`;
    return `${meter.meter === 'gpu' ? 'GPU' : meter.meter}${gpu}${meter.modelled ? ' (modelled)' : ''}`;
}

// Of the board's own meter; undefined: it has none.
export const meterOfGpu = (node, gpu) => {
    const index = node.meters.findIndex((meter) => meter.gpu === gpu.gpu && meter.meter === 'gpu');
    return index < 0 ? undefined : index;
};

// Who draws power from a meter, the largest first.
export function ownersOf(node, index) {
    const owners = [];
    for (const workload of node.workloads) {
        const share = workload.meters?.find(({ meter }) => meter === index);
        if (share?.watts > 0) owners.push({ key: keyOf(workload), name: titleOf(workload), watts: share.watts });
    }
    owners.sort((a, b) => b.watts - a.watts);
    for (const owner of OWNERS) {
        const watts = node.meters[index].unowned?.[owner]?.watts;
        if (watts > 0) owners.push({ key: owner, name: OWNER_NAMES[owner], watts });
    }
    return owners;
}
