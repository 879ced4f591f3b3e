// The columns of the table of workloads.

import * as format from './format.js';
import { nodeWatts, titleOf } from './node.js';

// `value` is what is sorted by, `format` how it is written. A column that no workload has a value for is not shown;
// `rank` tells from which width on it is (page.css).
export const COLUMNS = [
    { id: 'name', label: 'Workload', value: titleOf, rank: 0 },
    { id: 'watts', label: 'Power', value: (w) => w.watts, format: format.watts, rank: 0 },
    {
        id: 'share',
        label: 'Share',
        value: (w, node) => (w.watts === undefined || !(nodeWatts(node) > 0) ? undefined : w.watts / nodeWatts(node)),
        format: format.percent,
        rank: 1,
    },
    { id: 'energy', label: 'Energy', value: (w) => w.energy_joules, format: format.joules, rank: 0 },
    {
        id: 'uncertainty',
        label: '± Error',
        value: (w) => w.uncertainty_joules,
        format: (v) => (v === undefined ? '' : `± ${format.joules(v)}`),
        rank: 1,
    },
    { id: 'gpu-memory', label: 'GPU memory', value: (w) => w.gpu_memory_bytes, format: format.bytes, rank: 2 },
    { id: 'cpu', label: 'CPU time', value: (w) => w.cpu_seconds, format: format.duration, rank: 2 },
    { id: 'memory', label: 'Memory', value: (w) => w.memory_bytes, format: format.bytes, rank: 2 },
    { id: 'grams', label: 'CO₂e', value: (w) => w.emissions_grams, format: format.grams, rank: 2 },
    { id: 'cost', label: 'Cost', value: (w) => w.cost, format: (v, node) => format.money(v, node.currency), rank: 2 },
];

export const textOf = (column, workload, node) => {
    const value = column.value(workload, node);
    return column.format ? column.format(value, node) : value;
};
