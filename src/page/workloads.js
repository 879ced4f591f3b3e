// The table of workloads, and below it, in the same columns, what no workload owns: the sum is the meters.

import { COLUMNS, textOf } from './columns.js';
import { fillDetails } from './details.js';
import { byId, element, fill, setAttribute, setHidden, setText } from './dom.js';
import * as format from './format.js';
import { OWNERS, OWNER_NAMES, keyOf, nodeWatts, subtitleOf, sum, titleOf, totalJoules } from './node.js';
import { unownedJoules, unownedWatts } from './node.js';
import { paintSwatch } from './palette.js';

const ROWS_STEP = 100; // shown at once
const LEAST_JOULES = 0.01; // larger than what doubles lose
const SORT_AGAIN_MS = 5000; // so that rows do not jump about while somebody reads

const matches = (workload, words) => {
    const text = [
        titleOf(workload),
        subtitleOf(workload),
        workload.kind,
        workload.id,
        workload.pod,
        ...Object.values(workload.details ?? {}),
        ...(workload.processes ?? []).map(({ name, pid }) => `${name} ${pid}`),
    ]
        .join(' ')
        .toLowerCase();
    return words.every((word) => text.includes(word));
};

export class Workloads {
    #table = byId('workload-table');
    #on;
    #node;
    #sort = { id: 'watts', descending: true };
    #words = [];
    #limit = ROWS_STEP;
    #order = []; // keys, as last sorted
    #sortedAt = -Infinity;
    #rows = new Map(); // by key: { row, cells, button, swatch, details }
    #open = new Set();

    // on.announce(text), on.highlight(key or undefined)
    constructor(on) {
        this.#on = on;
        this.#makeHead();
        const filter = byId('filter');
        filter.addEventListener('input', () => this.#filter(filter.value));
        document.addEventListener('keydown', (event) => {
            if (event.key !== '/' || event.ctrlKey || event.metaKey || event.target.closest('input')) return;
            event.preventDefault();
            filter.focus();
        });
        byId('more').firstElementChild.addEventListener('click', () => {
            this.#limit += ROWS_STEP;
            this.show(this.#node);
        });
    }

    show(node) {
        this.#node = node;
        this.#arrange();
        const byKey = new Map(node.workloads.map((workload) => [keyOf(workload), workload]));
        const shown = this.#order.slice(0, this.#limit);
        this.#showColumns();
        this.#place(shown);
        for (const key of shown) this.#fillRow(this.#rows.get(key), byKey.get(key));
        this.#showSums();
        const left = this.#order.length - shown.length;
        setHidden(byId('more'), left <= 0);
        setText(byId('more').firstElementChild, `Show ${Math.min(left, ROWS_STEP)} more of ${left}`);
        setText(
            byId('count'),
            this.#words.length > 0 ? `${this.#order.length} of ${node.workloads.length}` : `${node.workloads.length}`,
        );
    }

    #makeHead() {
        const row = element('tr');
        for (const column of COLUMNS) {
            const button = element('button', { type: 'button' }, column.label);
            button.addEventListener('click', () => this.#sortBy(column));
            row.append(element('th', { scope: 'col', className: `rank-${column.rank} of-${column.id}` }, button));
        }
        this.#table.tHead.append(row);
        this.#markSorted();
    }

    #sortBy(column) {
        const isSame = this.#sort.id === column.id;
        this.#sort = { id: column.id, descending: isSame ? !this.#sort.descending : column.id !== 'name' };
        this.#markSorted();
        this.#again();
        this.#on.announce(`Sorted by ${column.label}, ${this.#sort.descending ? 'descending' : 'ascending'}`);
    }

    #markSorted() {
        COLUMNS.forEach((column, i) => {
            const order = this.#sort.descending ? 'descending' : 'ascending';
            setAttribute(this.#table.tHead.rows[0].cells[i], 'aria-sort', this.#sort.id === column.id ? order : 'none');
        });
    }

    #filter(text) {
        this.#words = text.toLowerCase().split(/\s+/).filter(Boolean);
        this.#again();
        if (this.#words.length > 0) this.#on.announce(`${this.#order.length} workloads match`);
    }

    #again() {
        this.#sortedAt = -Infinity;
        this.#limit = ROWS_STEP;
        if (this.#node) this.show(this.#node);
    }

    // New ones come at the end until it is time to sort again; never under the pointer or the focus.
    #arrange() {
        const { workloads } = this.#node;
        const now = performance.now();
        const isWatched = this.#table.tBodies[0].matches(':hover, :focus-within');
        const wanted =
            this.#words.length > 0 ? workloads.filter((workload) => matches(workload, this.#words)) : workloads;
        const keys = new Set(wanted.map(keyOf));
        if (this.#sortedAt === -Infinity || (now - this.#sortedAt >= SORT_AGAIN_MS && !isWatched)) {
            this.#order = this.#sorted(wanted).map(keyOf);
            this.#sortedAt = now;
        } else {
            const known = new Set(this.#order);
            this.#order = [
                ...this.#order.filter((key) => keys.has(key)),
                ...[...keys].filter((key) => !known.has(key)),
            ];
        }
    }

    #sorted(workloads) {
        const { value } = COLUMNS.find(({ id }) => id === this.#sort.id);
        const sign = this.#sort.descending ? -1 : 1;
        const pairs = workloads.map((workload) => [value(workload, this.#node), workload]);
        return pairs
            .sort(([a, first], [b, second]) => {
                if (a === undefined || b === undefined)
                    return (a === undefined) - (b === undefined) || titleOf(first).localeCompare(titleOf(second));
                return sign * (typeof a === 'string' ? a.localeCompare(b, 'en', { numeric: true }) : a - b);
            })
            .map(([, workload]) => workload);
    }

    #showColumns() {
        for (const column of COLUMNS) {
            const isKnown = this.#node.workloads.some((workload) => column.value(workload, this.#node) !== undefined);
            this.#table.classList.toggle(`no-${column.id}`, !isKnown);
        }
    }

    // These rows, in this order, with as few moves as possible.
    #place(keys) {
        const body = this.#table.tBodies[0];
        const wanted = new Set(keys);
        for (const [key, made] of this.#rows) {
            if (wanted.has(key)) continue;
            made.row.remove();
            made.details?.remove();
            this.#rows.delete(key);
        }
        let next = body.firstElementChild;
        for (const key of keys) {
            const made = this.#rows.get(key) ?? this.#makeRow(key);
            if (made.row === next) next = next.nextElementSibling;
            else body.insertBefore(made.row, next);
            if (!made.details) continue;
            if (made.details === next) next = next.nextElementSibling;
            else body.insertBefore(made.details, next);
        }
    }

    #makeRow(key) {
        const swatch = element('span', { className: 'swatch', ariaHidden: 'true' });
        const title = element('span', { className: 'title' });
        const subtitle = element('span', { className: 'subtitle' });
        const button = element('button', { type: 'button', ariaExpanded: 'false' }, title);
        const row = element('tr', {}, element('th', { scope: 'row' }, element('div', {}, swatch, button, subtitle)));
        const cells = COLUMNS.slice(1).map((column) => {
            const cell = element('td', { className: `rank-${column.rank} of-${column.id}` });
            row.append(cell);
            return cell;
        });
        const made = { row, swatch, title, subtitle, button, cells };
        button.addEventListener('click', () => this.#toggle(key));
        row.addEventListener('pointerenter', () => this.#on.highlight(key));
        row.addEventListener('pointerleave', () => this.#on.highlight());
        this.#rows.set(key, made);
        if (this.#open.has(key)) this.#makeDetails(made);
        return made;
    }

    #toggle(key) {
        const made = this.#rows.get(key);
        if (this.#open.delete(key)) {
            made.details.remove();
            made.details = undefined;
        } else {
            this.#open.add(key);
            this.#makeDetails(made);
            made.row.after(made.details);
            this.#fillRow(
                made,
                this.#node.workloads.find((workload) => keyOf(workload) === key),
            );
        }
        setAttribute(made.button, 'aria-expanded', String(this.#open.has(key)));
    }

    #makeDetails(made) {
        made.details = element(
            'tr',
            { className: 'details' },
            element(
                'td',
                { colSpan: COLUMNS.length },
                element('dl'),
                element('div', { tabIndex: 0, role: 'region', ariaLabel: 'Meters, processes and GPUs' }),
            ),
        );
        setAttribute(made.button, 'aria-expanded', 'true');
    }

    #fillRow(made, workload) {
        paintSwatch(made.swatch, keyOf(workload));
        setText(made.title, titleOf(workload));
        setText(made.subtitle, subtitleOf(workload));
        COLUMNS.slice(1).forEach((column, i) => setText(made.cells[i], textOf(column, workload, this.#node)));
        showShare(made.cells[1], COLUMNS[2].value(workload, this.#node), made.swatch);
        setAttribute(made.cells[2], 'title', format.exactJoules(workload.energy_joules));
        if (made.details) fillDetails(made.details.firstElementChild, workload, this.#node);
    }

    // Of workloads that --expose leaves out.
    #hiddenJoules(rows) {
        const shown = sum([...this.#node.workloads, ...rows.map(({ energy }) => ({ energy_joules: energy }))].map((row) => row.energy_joules));
        return (totalJoules(this.#node) ?? 0) - (shown ?? 0);
    }

    #showSums() {
        const node = this.#node;
        const rows = OWNERS.map((owner) => ({
            key: owner,
            name: OWNER_NAMES[owner],
            watts: unownedWatts(node, owner),
            energy: unownedJoules(node, owner),
        })).filter(({ energy, key }) => energy > 0 || key === 'idle');
        const hidden = this.#hiddenJoules(rows);
        if (hidden >= LEAST_JOULES) rows.push({ key: 'others', name: 'Not exposed', energy: hidden });
        rows.push({ name: 'All meters', watts: nodeWatts(node), energy: totalJoules(node) });
        fill(
            this.#table.tFoot,
            rows,
            () => {
                const row = element(
                    'tr',
                    {},
                    element(
                        'th',
                        { scope: 'row' },
                        element('span', { className: 'swatch', ariaHidden: 'true' }),
                        element('span'),
                    ),
                );
                for (const column of COLUMNS.slice(1))
                    row.append(element('td', { className: `rank-${column.rank} of-${column.id}` }));
                return row;
            },
            (row, { key, name, watts, energy }) => {
                const [swatch, label] = row.cells[0].children;
                const sums = { watts, energy_joules: energy };
                row.className = key ? '' : 'total';
                setHidden(swatch, !key);
                if (key) paintSwatch(swatch, key);
                setText(label, name);
                COLUMNS.slice(1).forEach((column, i) => setText(row.cells[i + 1], textOf(column, sums, node)));
                showShare(row.cells[2], COLUMNS[2].value(sums, node), swatch);
                setAttribute(row.cells[3], 'title', format.exactJoules(energy));
            },
        );
    }
}

// A bar in the colour of the owner, in steps that can be seen.
function showShare(cell, share, swatch) {
    const bar = (share ?? 0).toFixed(3);
    if (cell.dataset.share === bar) return;
    cell.dataset.share = bar;
    cell.style.setProperty('--share', bar);
    cell.style.setProperty('--color', swatch.style.backgroundColor);
}
