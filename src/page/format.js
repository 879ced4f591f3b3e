// Figures in the units that people read.

const formats = new Map();

function number(value, decimals) {
    if (!formats.has(decimals)) {
        formats.set(
            decimals,
            new Intl.NumberFormat('en', {
                minimumFractionDigits: decimals,
                maximumFractionDigits: decimals,
            }),
        );
    }
    return formats.get(decimals).format(value);
}

// In the last unit that the value reaches, with three digits: 1.24 kW, 12.4 kW, 124 kW. Units are [from, name, size],
// where the size is left out if it is `from`.
function scaled(value, units) {
    const [from, unit, size = from] = units.findLast(([least]) => Math.abs(value) >= least * 0.9995) ?? units[0];
    const shown = value / size;
    const decimals = Math.abs(shown) >= 99.95 ? 0 : Math.abs(shown) >= 9.995 ? 1 : 2;
    return `${number(shown, value === 0 ? 0 : decimals)} ${unit}`;
}

const isKnown = (value) => typeof value === 'number' && Number.isFinite(value);
const known = (format) => (value) => (isKnown(value) ? format(value) : '');

export const watts = known((value) => {
    if (Math.abs(value) >= 999.95)
        return scaled(value, [
            [1e3, 'kW'],
            [1e6, 'MW'],
        ]);
    return `${number(value, 1)} W`;
});

export const joules = known((value) =>
    scaled(value, [
        [1, 'J'],
        [1e3, 'kJ'],
        [1e6, 'kWh', 3.6e6],
        [3.6e9, 'MWh'],
    ]),
);

export const exactJoules = known((value) => `${number(value, 6)} J`);

export const grams = known((value) =>
    scaled(value, [
        [1e-3, 'mg'],
        [1, 'g'],
        [1e3, 'kg'],
        [1e6, 't'],
    ]),
);

export const bytes = known((value) =>
    scaled(value, [
        [1, 'B'],
        [2 ** 10, 'KiB'],
        [2 ** 20, 'MiB'],
        [2 ** 30, 'GiB'],
        [2 ** 40, 'TiB'],
    ]),
);

export const percent = known((value) => `${number(value * 100, Math.abs(value) >= 0.0995 || value === 0 ? 0 : 1)} %`);

export const celsius = known((value) => `${number(value, 0)} °C`);

export const ratio = known((value) => number(value, 2));

export const duration = known((seconds) => {
    if (seconds < 60) return `${number(seconds, seconds < 10 ? 1 : 0)} s`;
    if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`;
    if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
    return `${Math.floor(seconds / 86400)} d ${Math.floor((seconds % 86400) / 3600)} h`;
});

// Small amounts have more decimals: an hour of a workload costs less than a cent.
export function money(value, currency) {
    if (!isKnown(value)) return '';
    const decimals = value === 0 || Math.abs(value) >= 1 ? 2 : Math.min(6, 2 - Math.floor(Math.log10(Math.abs(value))));
    return `${number(value, decimals)} ${currency ?? ''}`.trimEnd();
}

const times = new Intl.DateTimeFormat('en-GB', { timeStyle: 'medium' });
const dates = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'medium' });
export const clock = known((seconds) => times.format(seconds * 1000));
export const date = known((seconds) => dates.format(seconds * 1000));
