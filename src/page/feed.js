// The node's document, as long as somebody looks: server-sent events, or polls where there are none.

const POLL_MS = 2000;
const EVENTS_AGAIN_MS = 60000; // after polls, as connections for events are few
const SILENCE_MS = 30000; // of events, after which a poll tells whether the daemon is there

// Below the page, whatever proxy is before it. A password in the page's address would make fetch fail.
export function address(path) {
    const url = new URL(path, document.baseURI);
    url.username = url.password = url.hash = url.search = '';
    return url.href;
}

// { status, body }; throws where nobody answers.
export async function ask(path) {
    const response = await fetch(address(path), { cache: 'no-store', credentials: 'same-origin' });
    let body;
    try {
        body = await response.json();
    } catch {
        body = undefined; // a proxy's page
    }
    return { status: response.status, body };
}

// on.node(document), on.state(state), where state is connecting, live, polling, starting, denied, lost or paused.
export class Feed {
    #on;
    #events;
    #timer;
    #state;
    #run = 0; // what was asked before the last stop is not listened to

    constructor(on) {
        this.#on = on;
    }

    start() {
        this.stop();
        this.#set('connecting');
        this.#listen();
    }

    stop() {
        this.#run++;
        this.#events?.close();
        this.#events = undefined;
        clearTimeout(this.#timer);
    }

    pause() {
        this.stop();
        this.#set('paused');
    }

    #set(state) {
        if (state === this.#state) return;
        this.#state = state;
        this.#on.state(state);
    }

    #after(ms, what) {
        clearTimeout(this.#timer);
        this.#timer = setTimeout(what, ms);
    }

    #listen() {
        const events = new EventSource(address('api/v1/events'));
        this.#events = events;
        events.addEventListener('node', (event) => {
            this.#set('live');
            this.#watch();
            this.#on.node(JSON.parse(event.data));
        });
        events.addEventListener('open', () => this.#watch());
        events.addEventListener('error', () => {
            if (events !== this.#events) return;
            if (events.readyState === EventSource.CLOSED) this.#pollInstead();
            else this.#set('lost'); // it connects again by itself
        });
        this.#watch();
    }

    #watch() {
        this.#after(SILENCE_MS, async () => {
            if (await this.#poll()) this.#watch();
            else this.start();
        });
    }

    async #pollInstead() {
        const until = performance.now() + EVENTS_AGAIN_MS;
        const run = ++this.#run;
        this.#events.close();
        while (run === this.#run) {
            if (await this.#poll()) this.#set('polling');
            if (run !== this.#run) return;
            if (performance.now() > until) {
                this.#listen();
                return;
            }
            await new Promise((done) => this.#after(POLL_MS, done));
        }
    }

    // Was there a document?
    async #poll() {
        const run = this.#run;
        try {
            const { status, body } = await ask('api/v1/node');
            if (run !== this.#run) return false;
            if (status === 200 && body) {
                this.#on.node(body);
                return true;
            }
            this.#set(status === 401 ? 'denied' : status === 503 ? 'starting' : 'lost');
        } catch {
            if (run === this.#run) this.#set('lost');
        }
        return false;
    }
}
