// The page: shows each document of the node once a frame, and nothing while nobody looks.

import { Chart } from './chart.js';
import { watchCheck } from './check.js';
import { byId, element, setHidden, setText } from './dom.js';
import { Feed, ask } from './feed.js';
import * as format from './format.js';
import { reserve } from './palette.js';
import { showGpus, showHeadline, showMeters, showSources } from './sections.js';
import { Timeline } from './timeline.js';
import { Workloads } from './workloads.js';

const HISTORY_AGAIN_MS = 15000; // the daemon's points replace what was added since
const SET_BACK_S = 10; // more than an answer may be late

const STATES = {
    connecting: 'connecting',
    live: 'live',
    polling: 'live, every 2 s',
    starting: 'nothing measured yet',
    denied: 'a password is needed: reload the page',
    lost: 'connection lost, trying again',
    paused: 'paused',
};

const timeline = new Timeline();
const chart = new Chart();
const workloads = new Workloads({
    announce: (text) => setText(byId('announcements'), text),
    highlight: (key) => chart.highlight(key),
});
const feed = new Feed({ node: onNode, state: onState });
let latest; // the document that is to be shown
let isDrawing = false;
let historyAt = -Infinity;
let startTime;
let wasLost = false;

// With the history first, so that layers and colours do not depend on who draws power at this moment.
async function begin() {
    await loadHistory();
    if (!document.hidden) feed.start();
}

async function loadHistory() {
    historyAt = performance.now();
    try {
        const { status, body } = await ask('api/v1/history');
        if (status === 200 && body) timeline.setHistory(body);
        if (status === 404) historyAt = Infinity; // switched off: --no-history
    } catch {
        // The feed tells that the connection is lost.
    }
}

function onNode(node) {
    const isSetBack = latest !== undefined && node.time < latest.time - SET_BACK_S; // the node's clock
    if (isSetBack || (startTime !== undefined && node.start_time !== startTime)) {
        timeline.forgetSamples();
        timeline.setHistory(undefined);
        historyAt = -Infinity;
    }
    startTime = node.start_time;
    latest = node;
    timeline.add(node);
    if (performance.now() - historyAt >= HISTORY_AGAIN_MS) loadHistory().then(draw);
    draw();
}

function draw() {
    if (isDrawing || !latest) return;
    isDrawing = true;
    requestAnimationFrame(() => {
        isDrawing = false;
        show(latest);
    });
}

function show(node) {
    document.title = `${format.watts(node.watts)} · ${node.node ?? 'wattribute'}`;
    setText(byId('node-name'), node.node ?? '');
    setHidden(byId('replay'), !node.replay);
    showUpgrade(node.version);
    reserve(timeline.keys());
    showHeadline(node);
    showChart();
    workloads.show(node);
    showGpus(node);
    showMeters(node);
    showSources(node);
    document.body.dataset.drawn = node.generation ?? node.time;
}

function showChart() {
    const seconds = Number(document.querySelector('#window input:checked').value);
    chart.show(timeline.build(seconds), seconds);
}

// The daemon may be another since this page was loaded; its files are asked for anew on each visit.
function showUpgrade(version) {
    const isOther = version !== undefined && version !== document.documentElement.dataset.version;
    const band = byId('upgraded');
    setHidden(band, !isOther);
    if (!isOther || band.childElementCount > 0) return;
    const button = element('button', { type: 'button' }, 'Reload');
    button.addEventListener('click', () => location.reload());
    band.append(`wattribute ${version} runs now. `, button);
}

function onState(state) {
    const isLost = state === 'lost' || state === 'denied';
    byId('connection').dataset.state = state;
    document.body.classList.toggle('stale', isLost);
    setText(byId('connection-text'), STATES[state]);
    if (isLost !== wasLost) setText(byId('announcements'), isLost ? 'Connection lost' : 'Connected again');
    wasLost = isLost;
}

document.addEventListener('visibilitychange', () => {
    if (document.hidden) {
        feed.pause();
    } else {
        timeline.forgetSamples();
        begin();
    }
});
byId('window').addEventListener('change', () => latest && showChart());
watchCheck();
if (!document.hidden) begin();
