// What `wattribute check` says of the node; asked for when somebody opens that section, as it costs the node work.

import { byId, element, fill, setHidden, setText } from './dom.js';
import { ask } from './feed.js';

const AGAIN_MS = 1500; // while it runs
const ORDER = ['failed', 'missing', 'limited', 'ok']; // what needs a hand first

export function watchCheck() {
    const section = byId('check');
    section.addEventListener('toggle', () => {
        if (section.open) load();
    });
}

async function load() {
    const state = byId('check-state');
    setHidden(state, false);
    setText(state, 'Checking …');
    while (byId('check').open) {
        try {
            const { status, body } = await ask('api/v1/check');
            if (status === 200 && body) {
                show(body, state);
                return;
            }
            if (status !== 202) {
                setText(
                    state,
                    body?.error ?? `The check failed with status ${status}: run wattribute check on the node`,
                );
                return;
            }
        } catch {
            setText(state, 'Nobody answers: run wattribute check on the node');
            return;
        }
        await new Promise((done) => setTimeout(done, AGAIN_MS));
    }
}

function show(check, state) {
    const findings = [...(check.findings ?? [])].sort((a, b) => ORDER.indexOf(a.verdict) - ORDER.indexOf(b.verdict));
    setText(state, summaryOf(check.summary ?? {}));
    fill(
        byId('check-list'),
        findings,
        () =>
            element(
                'li',
                {},
                element('span', { className: 'state' }),
                element('span', { className: 'name' }),
                element('span', { className: 'text' }),
                element('span', { className: 'remedy' }),
            ),
        (item, finding) => {
            const [verdict, what, detail, remedy] = item.children;
            verdict.dataset.state = finding.verdict;
            setText(verdict, finding.verdict);
            setText(what, finding.what);
            setText(detail, finding.detail ?? '');
            setText(remedy, finding.remedy ?? '');
            setHidden(remedy, !finding.remedy);
        },
    );
}

function summaryOf({ gpus = 0, meters = 0, workloads = 0, ...counts }) {
    const found = ORDER.filter((verdict) => counts[verdict] > 0).map((verdict) => `${counts[verdict]} ${verdict}`);
    const many = (count, what) => `${count} ${what}${count === 1 ? '' : 's'}`;
    return `${many(gpus, 'GPU')}, ${many(meters, 'other meter')}, ${many(workloads, 'workload')}${found.length > 0 ? `; ${found.join(', ')}` : ''}`;
}
