// Elements from texts. Names come from strangers, so that nothing here parses HTML.

// An element: its properties, then its children, which are nodes or texts.
export function element(tag, properties, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(properties ?? {})) {
        if (name in made) made[name] = value;
        else made.setAttribute(name, value);
    }
    made.append(...children.filter((child) => child !== undefined && child !== null));
    return made;
}

export const byId = (id) => document.getElementById(id);

// Each of these writes only what differs: what stays keeps its layout and its selection.
export function setText(node, text) {
    if (node.textContent !== text) node.textContent = text;
}

export function setHidden(node, hidden) {
    if (node.hidden !== hidden) node.hidden = hidden;
}

export function setAttribute(node, name, value) {
    if (node.getAttribute(name) !== value) node.setAttribute(name, value);
}

// As many children as items: `make` makes one, `update(child, item, index)` fills it.
export function fill(parent, items, make, update) {
    while (parent.children.length > items.length) parent.lastElementChild.remove();
    items.forEach((item, index) => {
        let child = parent.children[index];
        if (!child) {
            child = make(item);
            parent.append(child);
        }
        update(child, item, index);
    });
}

// Rows of texts; the first cell of each is its header.
export function fillRows(body, rows) {
    fill(
        body,
        rows,
        () => element('tr'),
        (row, texts) => {
            fill(
                row,
                texts,
                () => {
                    const isHeader = row.children.length === 0;
                    return isHeader ? element('th', { scope: 'row' }) : element('td');
                },
                (cell, text) => setText(cell, text),
            );
        },
    );
}

// A table with a heading, without columns that are empty. `keep` is what it was the last time, if anything.
export function smallTable(keep, title, columns, rows) {
    const table =
        keep ??
        element(
            'table',
            { className: 'small' },
            element('caption', {}, title),
            element('thead', {}, element('tr')),
            element('tbody'),
        );
    const isShown = columns.map((_, i) => rows.some((row) => row[i] !== ''));
    const shown = (texts) => texts.filter((_, i) => isShown[i]);
    fill(
        table.tHead.rows[0],
        shown(columns),
        () => element('th', { scope: 'col' }),
        (cell, text) => setText(cell, text),
    );
    fillRows(table.tBodies[0], rows.map(shown));
    setHidden(table, rows.length === 0);
    return table;
}
