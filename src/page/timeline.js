// The last hour: what the daemon remembers, and after its end what came since. Power is booked some seconds after it was
// drawn; it is shown when it was drawn, so that it lies below what the meters said then.

import { OWNERS, keyOf, measuredWatts, nodeWatts, settledTime, titleOf, unownedWatts } from './node.js';

const HOUR_S = 3600;
const BRIDGE_S = 12; // between points; more is a gap
const LEAST_W = 0.05; // of a layer, at any time
const LARGER = 1.2; // than the least, who gets its layer
export const LAYERS_MAX = 12; // workloads with a layer of their own; the others share one
const KEPT_MAX = 2 * LAYERS_MAX; // workloads of each sample, as they may get a layer later

const isNumber = (value) => typeof value === 'number';

export class Timeline {
    #history; // undefined: the daemon has none
    #past = new Map(); // its series by key
    #booked = []; // since then: { t, watts: Map by key, others, booked, unowned }
    #measured = []; // { t, watts }
    #order = []; // keys of workloads with a layer, from the bottom
    #names = new Map(); // of those
    #means = new Map(); // watts in the last hour, by key
    #now = new Map(); // watts, by key

    setHistory(history) {
        this.#history = history?.count > 0 ? history : undefined;
        const series = this.#history?.series ?? [];
        this.#past = new Map(series.map((each) => [keyOf(each), each.watts]));
        this.#means = new Map(series.map((each) => [keyOf(each), mean(each.watts)]));
        for (const each of series) this.#addLayer(keyOf(each), titleOf(each), 0);
    }

    // Of another daemon, or after a pause: nothing is known of the time between.
    forgetSamples() {
        this.#booked = [];
        this.#measured = [];
        this.#means.clear();
    }

    keys() {
        return this.#order;
    }

    add(node) {
        const drawing = node.workloads.filter(({ watts }) => watts > 0).sort((a, b) => b.watts - a.watts);
        this.#now = new Map(drawing.slice(0, KEPT_MAX).map((workload) => [keyOf(workload), workload.watts]));
        for (const workload of drawing.slice(0, LAYERS_MAX))
            this.#addLayer(keyOf(workload), titleOf(workload), workload.watts);
        const watts = new Map();
        let others = 0;
        for (const [at, workload] of drawing.entries()) {
            const key = keyOf(workload);
            if (at < KEPT_MAX || this.#names.has(key)) watts.set(key, workload.watts);
            else others += workload.watts;
        }
        append(this.#booked, {
            t: settledTime(node),
            watts,
            others,
            booked: nodeWatts(node),
            unowned: Object.fromEntries(OWNERS.map((owner) => [owner, unownedWatts(node, owner)])),
        });
        const measured = measuredWatts(node);
        if (measured !== undefined) append(this.#measured, { t: node.time, watts: measured });
    }

    // What draws much now counts like what drew much in the hour.
    #weightOf(key) {
        return Math.max(this.#means.get(key) ?? 0, this.#now.get(key) ?? 0);
    }

    #addLayer(key, name, watts) {
        if (!this.#names.has(key)) {
            if (this.#order.length >= LAYERS_MAX && !this.#freeLayer(Math.max(watts, this.#weightOf(key)))) return;
            this.#order.push(key);
            this.#order.sort(); // the same on each visit
        }
        this.#names.set(key, name);
    }

    // Takes the layer of the least, if it is clearly less than these watts, so that layers do not come and go.
    #freeLayer(watts) {
        const least = this.#order.reduce((a, b) => (this.#weightOf(b) < this.#weightOf(a) ? b : a));
        if (watts <= LARGER * this.#weightOf(least)) return false;
        this.#order.splice(this.#order.indexOf(least), 1);
        this.#names.delete(least);
        return true;
    }

    // What is known of each time, in order: { t, index of the history or sample, measured }.
    #points() {
        const {
            start_time: start = 0,
            interval_seconds: interval = 0,
            count = 0,
            booked = [],
            measured = [],
        } = this.#history ?? {};
        const timeOf = (index) => start + (index + 0.5) * interval;
        const points = [];
        let bookedEnd = -Infinity;
        let measuredEnd = -Infinity;
        for (let index = 0; index < count; index++) {
            const t = timeOf(index);
            const isBooked = isNumber(booked[index]);
            const isMeasured = isNumber(measured[index]);
            points.push({ t, index: isBooked ? index : undefined, measured: isMeasured ? measured[index] : undefined });
            if (isBooked) bookedEnd = t;
            if (isMeasured) measuredEnd = t;
        }
        for (const sample of this.#booked)
            if (sample.t > bookedEnd + interval / 2) points.push({ t: sample.t, sample });
        for (const { t, watts } of this.#measured)
            if (t > measuredEnd + interval / 2) points.push({ t, measured: watts });
        return points.sort((a, b) => a.t - b.t);
    }

    #othersOf({ watts, others }) {
        let total = others;
        for (const [key, value] of watts) if (!this.#names.has(key)) total += value;
        return total;
    }

    // { x, layers: [{ key, name, values }] from the bottom, booked, measured }, of the last seconds.
    build(seconds) {
        const all = this.#points();
        const from = (all.at(-1)?.t ?? 0) - seconds;
        const points = all.filter(({ t }) => t >= from);
        const x = points.map(({ t }) => t);
        const history = this.#history;
        const values = (past, now) =>
            bridge(
                x,
                points.map(({ index, sample }) => {
                    if (sample) return now(sample) ?? 0;
                    return index === undefined ? null : (past?.[index] ?? 0);
                }),
            );
        const layers = OWNERS.map((owner) => ({
            key: owner,
            values: values(history?.unowned?.[owner], ({ unowned }) => unowned[owner]),
        }));
        for (const key of this.#order) {
            layers.push({
                key,
                name: this.#names.get(key),
                values: values(this.#past.get(key), ({ watts }) => watts.get(key)),
            });
        }
        // A series of the history without a layer, as there may be more of them than we have layers.
        const rest = [
            history?.others,
            ...[...this.#past].filter(([key]) => !this.#names.has(key)).map(([, series]) => series),
        ];
        layers.push({
            key: 'others',
            values: values(history && sumSeries(rest, history.count), (sample) => this.#othersOf(sample)),
        });
        return {
            x,
            layers: layers.filter((layer) => layer.values.some((value) => value >= LEAST_W)),
            booked: values(history?.booked, ({ booked }) => booked),
            measured: bridge(
                x,
                points.map(({ measured }) => measured ?? null),
            ),
        };
    }
}

function append(samples, sample) {
    const last = samples.at(-1);
    if (last && sample.t <= last.t) return; // nothing was settled since
    samples.push(sample);
    while (samples[0].t < sample.t - HOUR_S) samples.shift();
}

// Between two values that are near each other, on the line between them.
function bridge(x, values) {
    let last = -1;
    values.forEach((value, i) => {
        if (value === null) return;
        if (last >= 0 && i - last > 1 && x[i] - x[last] <= BRIDGE_S) {
            for (let j = last + 1; j < i; j++) {
                values[j] = values[last] + ((value - values[last]) * (x[j] - x[last])) / (x[i] - x[last]);
            }
        }
        last = i;
    });
    return values;
}

function mean(values) {
    const known = values.filter(isNumber);
    return known.length > 0 ? known.reduce((a, b) => a + b, 0) / known.length : 0;
}

function sumSeries(series, count) {
    return Array.from({ length: count }, (_, i) => series.reduce((total, values) => total + (values?.[i] ?? 0), 0));
}
