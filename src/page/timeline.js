// The last hour: what the daemon remembers, and after its end what came since.

import { OWNERS, keyOf, measuredWatts, nodeWatts, titleOf, unownedWatts } from './node.js';

const HOUR_S = 3600;
export const LAYERS_MAX = 12; // workloads with a layer of their own; the others share one

const isNumber = (value) => typeof value === 'number';

export class Timeline {
  #history; // undefined: the daemon has none
  #samples = []; // { t, watts: Map by key, others, unowned, measured }
  #order = []; // keys of workloads with a layer, from the bottom
  #names = new Map();

  setHistory(history) {
    this.#history = history?.count > 0 ? history : undefined;
    for (const series of this.#history?.series ?? []) this.#add(keyOf(series), titleOf(series));
    const end = this.#end();
    this.#samples = this.#samples.filter(({ t }) => t > end);
  }

  // Of another daemon, or after a pause: nothing is known of the time between.
  forgetSamples() {
    this.#samples = [];
  }

  keys() {
    return this.#order;
  }

  // Is there a workload that has no layer and should?
  add(node) {
    const drawing = node.workloads.filter(({ watts }) => watts > 0).sort((a, b) => b.watts - a.watts);
    for (const workload of drawing.slice(0, LAYERS_MAX)) this.#add(keyOf(workload), titleOf(workload));
    const watts = new Map();
    let others = 0;
    for (const workload of drawing) {
      const key = keyOf(workload);
      if (this.#names.has(key)) watts.set(key, workload.watts);
      else others += workload.watts;
    }
    const last = this.#samples.at(-1);
    if (node.time <= Math.max(this.#end(), last?.t ?? 0)) return;
    this.#samples.push({
      t: node.time, watts, others, booked: nodeWatts(node), measured: measuredWatts(node),
      unowned: Object.fromEntries(OWNERS.map((owner) => [owner, unownedWatts(node, owner)])),
    });
    while (this.#samples[0].t < node.time - HOUR_S) this.#samples.shift();
  }

  #add(key, name) {
    if (!this.#names.has(key)) {
      if (this.#order.length >= LAYERS_MAX) return;
      this.#order.push(key);
    }
    this.#names.set(key, name);
  }

  #end() {
    const history = this.#history;
    return history ? history.start_time + history.count * history.interval_seconds : 0;
  }

  // { x, layers: [{ key, name, values }] from the bottom, measured }, of these last seconds.
  build(seconds) {
    const history = this.#history;
    const last = this.#samples.at(-1)?.t ?? this.#end();
    const from = last - seconds;
    const first = history ? Math.max(0, Math.ceil((from - history.start_time) / history.interval_seconds)) : 0;
    const count = history ? Math.max(0, history.count - first) : 0;
    const live = this.#samples.filter(({ t }) => t >= from);
    const middle = history ? history.start_time + history.interval_seconds / 2 : 0;
    const x = [];
    for (let i = 0; i < count; i++) x.push(middle + (first + i) * history.interval_seconds);
    for (const { t } of live) x.push(t);

    const join = (past, now) => {
      const values = past ? past.slice(first, first + count) : new Array(count).fill(null);
      for (const sample of live) values.push(now(sample) ?? null);
      return values;
    };
    const past = new Map((history?.series ?? []).map((series) => [keyOf(series), series.watts]));
    const layers = OWNERS.map((owner) => ({
      key: owner, values: join(history?.unowned?.[owner], ({ unowned }) => unowned[owner]),
    }));
    for (const key of this.#order) {
      layers.push({ key, name: this.#names.get(key), values: join(past.get(key), ({ watts }) => watts.get(key)) });
    }
    // A series of the history without a layer, as there may be more of them than we have layers.
    const rest = [history?.others, ...[...past].filter(([key]) => !this.#names.has(key)).map(([, values]) => values)];
    layers.push({
      key: 'others',
      values: join(history && sumSeries(rest.filter(Boolean), history.count), ({ others }) => others),
    });
    return {
      x, layers: layers.filter(({ values }) => values.some((value) => value > 0)),
      booked: join(history?.booked, ({ booked }) => booked),
      measured: join(history?.measured, ({ measured }) => measured),
    };
  }
}

function sumSeries(series, count) {
  return Array.from({ length: count }, (_, i) => {
    let total = null;
    for (const values of series) if (isNumber(values[i])) total = (total ?? 0) + values[i];
    return total;
  });
}
