// The headline, the GPUs, the meters and the sources.

import { byId, element, fill, fillRows, setAttribute, setHidden, setText, smallTable } from './dom.js';
import * as format from './format.js';
import {
    OWNERS,
    imbalance,
    measuredWatts,
    meterName,
    meterOfGpu,
    nodeWatts,
    ownersOf,
    settledTime,
    sharingName,
    sum,
    totalJoules,
    unownedWatts,
} from './node.js';
import { paintSwatch } from './palette.js';

const GPU_OWNERS_MAX = 8; // workloads by name

export function showHeadline(node) {
    const watts = nodeWatts(node);
    const measured = measuredWatts(node);
    const wrong = imbalance(node);
    const balance = byId('balance');
    setText(byId('watts'), format.watts(watts) || '–');
    balance.className = wrong > 0 ? 'wrong' : 'right';
    setText(
        balance,
        wrong > 0
            ? `The books are off by ${format.exactJoules(wrong)}. Please report this.`
            : node.meters.length === 0
              ? 'No meter is booked on this node'
              : `The books balance to the microjoule${lagOf(node)}`,
    );

    const facts = [
        ['Meters say', format.watts(measured)],
        [
            'Workloads',
            watts === undefined ? '' : format.watts(sum(node.workloads.map((workload) => workload.watts)) ?? 0),
        ],
        ['Idle', format.watts(unownedWatts(node, 'idle'))],
        [
            'Unattributed',
            unownedWatts(node, 'unattributed') >= 0.05 ? format.watts(unownedWatts(node, 'unattributed')) : '',
        ],
        ['Since the start', format.joules(totalJoules(node))],
        ['Emissions', perHour(watts, node.grams_per_kwh, (value) => `${format.grams(value)} CO₂e/h`)],
        ['Cost', perHour(watts, node.price_per_kwh, (value) => `${format.money(value, node.currency)}/h`)],
    ];
    fill(
        byId('facts'),
        facts.filter(([, value]) => value),
        () => element('div', {}, element('dt'), element('dd')),
        (pair, [name, value]) => {
            setText(pair.children[0], name);
            setText(pair.children[1], value);
        },
    );
}

// On a shared GPU energy is divided some time after it was drawn.
function lagOf(node) {
    const lag = node.time - settledTime(node);
    return lag >= 2 ? `, booked up to ${Math.round(lag)} s ago` : '';
}

function perHour(watts, perKwh, write) {
    return watts === undefined || perKwh === undefined ? '' : write((watts / 1000) * perKwh);
}

export function showGpus(node) {
    const gpus = node.gpus ?? [];
    setHidden(byId('gpus'), gpus.length === 0);
    fill(byId('gpu-cards'), gpus, makeGpu, (card, gpu) => fillGpu(card, gpu, node));
}

function makeGpu() {
    const gauge = (name) =>
        element(
            'div',
            { className: 'gauge' },
            element('dt', {}, name),
            element('dd', {}, element('span'), element('i', { ariaHidden: 'true' })),
        );
    return element(
        'article',
        { className: 'card gpu' },
        element(
            'div',
            { className: 'card-head' },
            element('h3'),
            element('span', { className: 'badge' }),
            element('span', { className: 'gpu-watts' }),
        ),
        element('div', { className: 'shares', ariaHidden: 'true' }),
        element('ul', { className: 'owners' }),
        element('dl', { className: 'gauges' }, gauge('Utilisation'), gauge('Memory'), gauge('Temperature')),
        element('div', { className: 'instances' }),
    );
}

function fillGpu(card, gpu, node) {
    const [head, shares, list, gauges, instances] = card.children;
    const [name, badge, power] = head.children;
    const meter = meterOfGpu(node, gpu);
    const owners = meter === undefined ? [] : merge(ownersOf(node, meter));
    const total = sum(owners.map(({ watts }) => watts)) ?? 0;

    setText(name, `GPU ${gpu.gpu} ${gpu.name ?? ''}`);
    setAttribute(name, 'title', [gpu.uuid, gpu.driver && `driver ${gpu.driver}`].filter(Boolean).join(', '));
    setText(badge, gpu.sharing ? sharingName(gpu.sharing) : '');
    setHidden(badge, !gpu.sharing);
    setText(power, format.watts(gpu.watts ?? (meter === undefined ? undefined : node.meters[meter].watts)));

    fill(
        shares,
        owners,
        () => element('i'),
        (part, owner) => {
            paintSwatch(part, owner.key);
            part.style.flexGrow = owner.watts / total;
        },
    );
    fill(
        list,
        owners,
        () =>
            element(
                'li',
                {},
                element('span', { className: 'swatch', ariaHidden: 'true' }),
                element('span', { className: 'name' }),
                element('span', { className: 'value' }),
            ),
        (item, owner) => {
            paintSwatch(item.children[0], owner.key);
            setText(item.children[1], owner.name);
            setText(item.children[2], format.watts(owner.watts));
        },
    );

    const { memory_used_bytes: used, memory_total_bytes: all } = gpu;
    showGauge(
        gauges.children[0],
        gpu.utilisation_percent === undefined ? '' : format.percent(gpu.utilisation_percent / 100),
        gpu.utilisation_percent / 100,
    );
    showGauge(
        gauges.children[1],
        used === undefined ? '' : `${format.bytes(used)}${all ? ` of ${format.bytes(all)}` : ''}`,
        used / all,
    );
    showGauge(gauges.children[2], format.celsius(gpu.temperature_celsius));
    const made = smallTable(
        instances.firstElementChild,
        'Instances',
        ['Instance', 'Profile', 'Power', 'Memory'],
        (gpu.instances ?? []).map((instance) => [
            String(instance.gpu_instance),
            instance.profile ?? '',
            format.watts(instance.watts),
            format.bytes(instance.memory_used_bytes),
        ]),
    );
    if (!instances.firstElementChild) instances.append(made);
}

// The smallest workloads as one.
function merge(owners) {
    const workloads = owners.filter(({ key }) => !OWNERS.includes(key));
    const rest = workloads.slice(GPU_OWNERS_MAX);
    if (rest.length < 2) return owners;
    const others = { key: 'others', name: `${rest.length} more`, watts: sum(rest.map(({ watts }) => watts)) };
    return [...workloads.slice(0, GPU_OWNERS_MAX), others, ...owners.slice(workloads.length)];
}

function showGauge(gauge, text, ratio) {
    const [shown, bar] = gauge.lastElementChild.children;
    setHidden(gauge, text === '');
    setText(shown, text);
    setHidden(bar, !(ratio >= 0));
    bar.style.setProperty('--share', Math.min(ratio, 1) || 0);
}

export function showMeters(node) {
    setHidden(byId('meters'), node.meters.length === 0);
    fillRows(
        byId('meters').querySelector('tbody'),
        node.meters.map((meter) => [
            meterName(meter),
            format.watts(meter.watts),
            format.watts(meter.measured_watts) || '–',
            ...OWNERS.map((owner) => format.watts(meter.unowned?.[owner]?.watts) || '–'),
            format.joules(meter.energy_joules),
            format.joules(meter.imbalance_joules ?? 0),
        ]),
    );
}

export function showSources(node) {
    const sources = node.sources ?? [];
    setHidden(byId('sources'), false);
    fill(
        byId('source-list'),
        sources,
        () =>
            element(
                'li',
                {},
                element('span', { className: 'state' }),
                element('span', { className: 'name' }),
                element('span', { className: 'value' }),
            ),
        (item, source) => {
            const [state, name, value] = item.children;
            state.dataset.state = source.up ? 'up' : 'down';
            setText(state, state.dataset.state);
            setText(name, source.name);
            setText(
                value,
                [
                    source.age_seconds === undefined ? '' : `read ${format.duration(source.age_seconds)} ago`,
                    source.errors > 0 ? `${source.errors} errors` : '',
                ]
                    .filter(Boolean)
                    .join(', '),
            );
        },
    );
}
