// What `wattribute check` says of the node; asked for when somebody opens that section, as it costs the node work.

import { byId, element, fill, setHidden, setText } from './dom.js';
import { ask } from './feed.js';

const AGAIN_MS = 1500; // while it runs
const STATES = { missing: 0, limited: 1, ok: 2 }; // what needs a hand first

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
        setText(state, `The check failed: ${body?.error ?? `status ${status}`}. Run wattribute check on the node.`);
        return;
      }
    } catch {
      setText(state, 'Nobody answers. Run wattribute check on the node.');
      return;
    }
    await new Promise((done) => setTimeout(done, AGAIN_MS));
  }
}

function show(check, state) {
  const lines = [...(check.checks ?? [])].sort((a, b) => STATES[a.state] - STATES[b.state]);
  setText(state, check.summary ?? '');
  setHidden(state, !check.summary);
  fill(byId('check-list'), lines, () => element('li', {}, element('span', { className: 'state' }), element('span', { className: 'name' }),
    element('span', { className: 'text' }), element('code')), (item, line) => {
    const [word, name, text, hint] = item.children;
    word.dataset.state = line.state;
    setText(word, line.state);
    setText(name, line.name);
    setText(text, line.text ?? '');
    setText(hint, line.hint ?? '');
    setHidden(hint, !line.hint);
  });
}
