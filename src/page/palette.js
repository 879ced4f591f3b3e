// Colours of owners. The hues are those of Okabe and Ito, which people with any colour vision tell apart
// (Color Universal Design, 2008); beyond them, and for what no workload owns, textures differ.

const HUES = ['#0072b2', '#e69f00', '#009e73', '#cc79a7', '#56b4e9', '#d55e00', '#d8c21d', '#7f6bb3'];
const TEXTURES = ['plain', 'rising', 'dots'];
const UNOWNED = {
    idle: ['--idle', 'plain'],
    system: ['--system', 'rising'],
    unattributed: ['--unattributed', 'falling'],
    gap: ['--gap', 'dots'],
    others: ['--others', 'rising'],
};

// Calls back when the colours of the style sheet are others: dark or light, and on paper.
export function onColours(repaint) {
    for (const media of ['(prefers-color-scheme: dark)', 'print']) matchMedia(media).addEventListener('change', repaint);
}

const variables = new Map(); // of the style sheet, as each look costs a layout
onColours(() => variables.clear());

export function variable(name) {
    if (!variables.has(name))
        variables.set(name, getComputedStyle(document.documentElement).getPropertyValue(name).trim());
    return variables.get(name);
}

const places = new Map(); // in the palette, of workloads with a layer of the chart, by key

function hash(text) {
    let h = 2166136261; // FNV-1a
    for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 16777619);
    return h >>> 0;
}

const COUNT = HUES.length * TEXTURES.length;

// The place of a workload's hash, or the next that is free. In the order of keys, so that the same workloads have the
// same colours on each visit.
export function reserve(keys) {
    for (const key of [...keys].filter((each) => !places.has(each)).sort()) {
        const taken = new Set(places.values());
        let place = hash(key) % HUES.length;
        for (let i = 0; i < COUNT && taken.has(place); i++) place = (place + 1) % COUNT;
        places.set(key, place);
    }
}

export function styleOf(key) {
    const unowned = UNOWNED[/^(retired|other)\//.test(key) ? 'others' : key];
    if (unowned) {
        return { color: variable(unowned[0]), texture: unowned[1] };
    }
    const place = places.get(key) ?? hash(key) % COUNT;
    return { color: HUES[place % HUES.length], texture: TEXTURES[Math.floor(place / HUES.length)] };
}

export function inkOn(color) {
    const [r, g, b] = [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16) / 255);
    return 0.299 * r + 0.587 * g + 0.114 * b > 0.55 ? '#111418' : '#ffffff';
}

const TILE = 8;
const draw = {
    plain() {},
    rising(c) {
        for (const shift of [-TILE, 0, TILE]) {
            c.moveTo(shift - 2, TILE + 2);
            c.lineTo(shift + TILE + 2, -2);
        }
    },
    falling(c) {
        for (const shift of [-TILE, 0, TILE]) {
            c.moveTo(shift - 2, -2);
            c.lineTo(shift + TILE + 2, TILE + 2);
        }
    },
    dots(c) {
        for (const at of [2, 6]) {
            c.moveTo(at + 1, at);
            c.arc(at, at, 1, 0, 2 * Math.PI);
        }
    },
};

// What a canvas fills with.
export function fillOf({ color, texture }, scale) {
    if (texture === 'plain') return color;
    const tile = document.createElement('canvas');
    tile.width = tile.height = TILE * scale;
    const c = tile.getContext('2d');
    c.scale(scale, scale);
    c.fillStyle = color;
    c.fillRect(0, 0, TILE, TILE);
    c.strokeStyle = inkOn(color) === '#ffffff' ? 'rgba(255,255,255,0.45)' : 'rgba(0,0,0,0.4)';
    c.lineWidth = 1.25;
    c.beginPath();
    draw[texture](c);
    c.stroke();
    return c.createPattern(tile, 'repeat');
}

// Beside a name.
export function paintSwatch(node, key) {
    const style = styleOf(key);
    const wanted = `${style.color} ${style.texture}`;
    if (node.dataset.style === wanted) return;
    node.dataset.style = wanted;
    node.dataset.texture = style.texture;
    node.style.backgroundColor = style.color;
}
