// What a row of the table of workloads opens to: all that is known, also what has no column on a narrow screen.

import { COLUMNS, textOf } from './columns.js';
import { element, fill, setText, smallTable } from './dom.js';
import * as format from './format.js';
import { kindName, meterName } from './node.js';

const DETAIL_NAMES = {
    image: 'Image',
    user: 'User',
    account: 'Account',
    job_id: 'Job',
    job_name: 'Job name',
    uuid: 'UUID',
    pod_uid: 'Pod UID',
    container_id: 'Container',
    unverified: 'Unverified',
};

export function fillDetails(cell, workload, node) {
    const [list, tables] = cell.children;
    const facts = [
        ['Kind', kindName(workload.kind)],
        ['Id', workload.id],
        ['Namespace', workload.namespace],
        ['Pod', workload.pod],
        ['Container', workload.container],
        ...Object.entries(workload.details ?? {}).map(([name, value]) => [DETAIL_NAMES[name] ?? name, value]),
        ...COLUMNS.filter(({ rank }) => rank > 0).map((column) => [column.label, textOf(column, workload, node)]),
    ];
    fill(
        list,
        facts.filter(([, value]) => value),
        () => element('div', {}, element('dt'), element('dd')),
        (pair, [name, value]) => {
            setText(pair.children[0], name);
            setText(pair.children[1], value);
        },
    );
    const shown = [
        [
            'Meters',
            ['Meter', 'Power', 'Energy', '± Error', 'Confidence'],
            (workload.meters ?? []).map((part) => [
                node.meters[part.meter] ? meterName(node.meters[part.meter]) : String(part.meter),
                format.watts(part.watts),
                format.joules(part.energy_joules),
                format.joules(part.uncertainty_joules),
                format.ratio(part.confidence),
            ]),
        ],
        [
            'Processes',
            ['Process', 'Pid', 'GPU', 'Energy', '± Error', 'GPU memory', 'Started'],
            (workload.processes ?? []).map((process) => [
                process.name ?? '?',
                String(process.pid),
                String(process.gpu ?? ''),
                format.joules(process.energy_joules),
                format.joules(process.uncertainty_joules),
                format.bytes(process.gpu_memory_bytes),
                format.date(process.start_time),
            ]),
        ],
        [
            'GPUs that it was given',
            ['GPU', 'Instance', 'UUID', 'Evidence'],
            (workload.gpus ?? []).map((gpu) => [
                String(gpu.gpu ?? ''),
                String(gpu.gpu_instance ?? ''),
                gpu.uuid ?? '',
                `${gpu.source ?? ''}${gpu.unverified ? ' (unverified)' : ''}`,
            ]),
        ],
    ];
    shown.forEach(([title, columns, rows], i) => {
        const made = smallTable(tables.children[i], title, columns, rows);
        if (!tables.children[i]) tables.append(made);
    });
}
