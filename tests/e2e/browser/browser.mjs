// Drives Chromium for tests/e2e/servers/browser.py: each line of stdin is {"code", "argument"}, the body of an async
// function of `tools` and `argument`; each line of stdout is {"value"} or {"error"}. Ends with its stdin.
import { createRequire } from 'node:module';
import readline from 'node:readline';

const [modules, executablePath] = process.argv.slice(2);
const require = createRequire(`${modules}/package.json`);
const { chromium } = require('playwright-core');
const axe = require('axe-core').source;

const browser = await chromium.launch({
    executablePath,
    args: [
        '--headless',
        '--no-sandbox',
        '--disable-gpu',
        '--disable-quic',
        '--no-first-run',
        '--disable-background-networking',
        '--disable-component-update',
        '--disable-sync',
        '--force-color-profile=srgb',
    ],
});

// A page, with what went wrong on it: its errors, and requests to anybody else.
async function open(url, options = {}) {
    const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
    const page = await context.newPage();
    page.problems = [];
    page.requested = [];
    page.on('console', (message) => {
        if (['error', 'warning'].includes(message.type())) page.problems.push(message.text());
    });
    page.on('pageerror', (error) => page.problems.push(String(error)));
    page.on('request', (request) => {
        page.requested.push(request.url());
        if (!request.url().startsWith('data:') && new URL(request.url()).origin !== new URL(url).origin)
            page.problems.push(`asks ${request.url()}`);
    });
    await page.goto(url);
    return page;
}

// Findings of axe that are serious. It is run as the page's own, which its policy forbids a script from elsewhere.
async function audit(page) {
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() => axe.run(document, { resultTypes: ['violations'] }));
    return violations
        .filter(({ impact }) => ['serious', 'critical'].includes(impact))
        .map(
            ({ id, help, nodes }) =>
                `${id}: ${help}: ${nodes
                    .slice(0, 3)
                    .map(({ html, failureSummary }) => `${html} ${failureSummary}`)
                    .join('; ')}`,
        );
}

const tools = { browser, open, audit, pages: {} };
const AsyncFunction = Object.getPrototypeOf(async () => {}).constructor;
for await (const line of readline.createInterface({ input: process.stdin })) {
    const { code, argument } = JSON.parse(line);
    let answer;
    try {
        answer = { value: (await new AsyncFunction('tools', 'argument', code)(tools, argument)) ?? null };
    } catch (error) {
        answer = { error: String(error?.stack ?? error) };
    }
    process.stdout.write(`${JSON.stringify(answer)}\n`);
}
await browser.close();
