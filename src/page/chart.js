/* global uPlot */
// The stacked chart: a layer for each owner, and on top of them the line of the meters themselves.

import { byId, element, fill, fillRows, setAttribute, setHidden, setText } from './dom.js';
import * as format from './format.js';
import { OWNER_NAMES } from './node.js';
import { fillOf, inkOn, onColours, paintSwatch, styleOf, variable } from './palette.js';

const PADDING = [14, 26, 0, 0];
const SPAN_MIN_S = 60;
const LABEL_PLACES = 20; // that are tried
const LABEL_FONT = '600 12px Inter, system-ui, sans-serif';

const nameOf = (layer) => layer.name ?? OWNER_NAMES[layer.key];
const height = () => (innerWidth < 640 ? 240 : 320);

const isNumber = (value) => typeof value === 'number';
const newest = (values) => values.findLast(isNumber);

// With seconds where there are several ticks in a minute.
function timesOf(ticks) {
    const isFine = ticks[1] - ticks[0] < 60;
    return ticks.map((t) => (isFine ? format.clock(t) : format.clock(t).slice(0, -3)));
}

// Each layer on top of those below; null where none is known.
function stack(layers, length) {
    const below = new Array(length).fill(0);
    return layers.map(({ values }) =>
        values.map((value, i) => {
            if (layers.every((layer) => layer.values[i] === null)) return null;
            below[i] += value ?? 0;
            return below[i];
        }),
    );
}

export class Chart {
    #box = byId('chart');
    #plot;
    #signature; // of the layers that the plot was made for
    #model;
    #stacked;
    #highlighted;

    constructor() {
        new ResizeObserver(() => this.#plot?.setSize({ width: this.#box.clientWidth, height: height() })).observe(
            this.#box,
        );
        onColours(() => this.#rebuild());
        byId('chart-data').addEventListener('toggle', () => this.#model && this.#showTable());
    }

    show(model, seconds) {
        const signature = JSON.stringify([
            model.layers.map(({ key }) => key),
            model.measured.some((value) => value !== null),
        ]);
        this.#model = { ...model, seconds };
        this.#stacked = stack(model.layers, model.x.length);
        if (signature !== this.#signature || !this.#plot) {
            this.#signature = signature;
            this.#rebuild();
        } else {
            this.#plot.setData(this.#data());
        }
        this.#showLegend();
        this.#showTable();
        setAttribute(this.#box, 'aria-label', this.#summary());
    }

    // Dims all layers but this one; undefined: none.
    highlight(key) {
        if (this.#highlighted === key) return;
        this.#highlighted = key;
        this.#plot?.redraw(false);
    }

    #data() {
        return [this.#model.x, ...this.#stacked, this.#model.measured];
    }

    #rebuild() {
        if (!this.#model) return;
        this.#plot?.destroy();
        this.#plot = new uPlot(this.#options(), this.#data(), this.#box);
    }

    #options() {
        const { layers } = this.#model;
        const [ink, dim, line, paper] = ['--ink', '--dim', '--line', '--card'].map(variable);
        const fills = layers.map(({ key }) => fillOf(styleOf(key), devicePixelRatio));
        const faded = (index) => this.#highlighted !== undefined && layers[index].key !== this.#highlighted;
        const paint = (index) => (faded(index) ? `${styleOf(layers[index].key).color}40` : fills[index]);
        const axis = {
            stroke: dim,
            font: '12px Inter, system-ui, sans-serif',
            grid: { stroke: line, width: 1 },
            ticks: { show: false },
        };
        return {
            width: this.#box.clientWidth,
            height: height(),
            padding: PADDING,
            legend: { show: false },
            cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
            scales: {
                x: { time: true, range: (_, least, most) => this.#spanOf(least, most) },
                y: { range: (_, least, most) => [0, Math.max(most * 1.08, 1)] },
            },
            axes: [
                {
                    ...axis,
                    size: 32,
                    grid: { show: false },
                    space: 64,
                    values: (_, ticks) => timesOf(ticks),
                },
                {
                    ...axis,
                    size: 58,
                    space: 44,
                    values: (_, ticks) => ticks.map((value) => format.watts(value).replace('.0 ', ' ')),
                },
            ],
            series: [
                {},
                ...layers.map((layer, i) => ({
                    label: nameOf(layer),
                    stroke: paper,
                    width: 1,
                    points: { show: false },
                    fill: i === 0 ? () => paint(0) : undefined,
                })),
                { label: 'Meters', stroke: ink, width: 2, points: { show: false } },
            ],
            bands: layers.slice(1).map((_, i) => ({ series: [i + 2, i + 1], fill: () => paint(i + 1) })),
            hooks: { setCursor: [() => this.#showLegend()], draw: [(plot) => this.#drawNames(plot)] },
        };
    }

    #spanOf(least, most) {
        const span = Math.min(Math.max(most - least, SPAN_MIN_S), this.#model.seconds);
        return [most - span, most];
    }

    // In each layer, as far to the right as it is thick enough.
    #drawNames(plot) {
        const { layers } = this.#model;
        const scale = devicePixelRatio;
        const c = plot.ctx;
        c.save();
        c.font = LABEL_FONT.replace('12px', `${12 * scale}px`);
        c.textAlign = 'right';
        c.textBaseline = 'middle';
        layers.forEach((layer, i) => {
            const text = nameOf(layer);
            const place = this.#roomFor(plot, i, c.measureText(text).width + 16 * scale, 17 * scale);
            if (!place) return;
            const style = styleOf(layer.key);
            c.globalAlpha = this.#highlighted !== undefined && this.#highlighted !== layer.key ? 0.3 : 1;
            c.lineWidth = 3 * scale;
            c.lineJoin = 'round';
            c.strokeStyle = style.color;
            c.fillStyle = inkOn(style.color);
            if (style.texture !== 'plain') c.strokeText(text, place.right - 8 * scale, place.middle);
            c.fillText(text, place.right - 8 * scale, place.middle);
        });
        c.restore();
    }

    #roomFor(plot, layer, width, height) {
        const upper = this.#stacked[layer];
        const lower = this.#stacked[layer - 1];
        const { left, width: all } = plot.bbox;
        for (let step = 0; step < LABEL_PLACES; step++) {
            const right = left + all * (1 - step / LABEL_PLACES);
            if (right - width < left) return undefined;
            const first = plot.posToIdx((right - width) / devicePixelRatio - left / devicePixelRatio);
            const last = plot.posToIdx((right - left) / devicePixelRatio);
            let top = -Infinity;
            let bottom = Infinity;
            for (let at = first; at <= last; at++) {
                if (upper[at] === null) top = Infinity;
                top = Math.max(top, plot.valToPos(upper[at], 'y', true));
                bottom = Math.min(bottom, plot.valToPos(lower?.[at] ?? 0, 'y', true));
            }
            if (bottom - top >= height) return { right, middle: (top + bottom) / 2 };
        }
        return undefined;
    }

    // Values under the cursor, or the newest.
    #showLegend() {
        const { layers, measured, booked } = this.#model;
        const at = this.#plot?.cursor.idx; // null: it is elsewhere
        const valueOf = (values) => (isNumber(at) ? values[at] : newest(values));
        const items = [
            ...layers.map((layer) => ({ key: layer.key, name: nameOf(layer), value: valueOf(layer.values) })).reverse(),
        ];
        items.unshift({ key: 'booked', name: 'Booked', value: valueOf(booked) });
        if (measured.some((value) => value !== null))
            items.unshift({ key: 'measured', name: 'Meters', value: valueOf(measured) });
        fill(
            byId('legend'),
            items,
            () => {
                const item = element(
                    'li',
                    {},
                    element('span', { className: 'swatch', ariaHidden: 'true' }),
                    element('span', { className: 'name' }),
                    element('span', { className: 'value' }),
                );
                item.addEventListener('pointerenter', () => this.highlight(item.dataset.layer || undefined));
                item.addEventListener('pointerleave', () => this.highlight());
                return item;
            },
            (item, { key, name, value }) => {
                const isLayer = key !== 'measured' && key !== 'booked';
                const [swatch, label, number] = item.children;
                item.dataset.layer = isLayer ? key : '';
                setAttribute(item, 'class', isLayer ? '' : key);
                setHidden(swatch, key === 'booked');
                if (isLayer) paintSwatch(swatch, key);
                setText(label, name);
                setText(number, format.watts(value) || '–');
            },
        );
    }

    #summary() {
        const { layers, booked, x } = this.#model;
        if (x.length === 0) return 'Power by workload: nothing yet';
        const largest = layers
            .map((layer) => [nameOf(layer), newest(layer.values) ?? 0])
            .sort((a, b) => b[1] - a[1])
            .slice(0, 3);
        return (
            `Power by workload, stacked, ${format.duration(x.at(-1) - x[0])}. Now ${format.watts(newest(booked))}: ` +
            `${largest.map(([name, value]) => `${name} ${format.watts(value)}`).join(', ')}. The table below has all owners.`
        );
    }

    #showTable() {
        if (!byId('chart-data').open) return;
        const { layers, x } = this.#model;
        const means = layers.map((layer) => mean(layer.values, x));
        const total = means.reduce((a, b) => a + b, 0);
        fillRows(
            byId('chart-data').querySelector('tbody'),
            layers
                .map((layer, i) => [
                    nameOf(layer),
                    format.watts(newest(layer.values)),
                    format.watts(means[i]),
                    format.watts(Math.max(...layer.values.map((value) => value ?? 0))),
                    total > 0 ? format.percent(means[i] / total) : '',
                ])
                .reverse(),
        );
    }
}

// Over time, as the points of the past are farther apart than those that came since.
function mean(values, x) {
    let energy = 0;
    let time = 0;
    for (let i = 1; i < x.length; i++) {
        if (values[i] === null && values[i - 1] === null) continue;
        energy += (values[i] ?? 0) * (x[i] - x[i - 1]);
        time += x[i] - x[i - 1];
    }
    return time > 0 ? energy / time : (newest(values) ?? 0);
}
