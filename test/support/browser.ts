import { type Browser, chromium } from 'playwright-core';
import { beforeAll, inject } from 'vitest';

/** The npm package has a browser for this platform only. */
export const hasBrowser = process.platform === 'linux' && process.arch === 'x64';

let connected: Promise<Browser> | undefined;

/** The headless browser of the whole run. It sends no requests of its own. */
export function useBrowser(): { readonly browser: Browser } {
  let browser: Browser | undefined;
  beforeAll(async () => {
    if (!hasBrowser) return;
    connected ??= connect();
    browser = await connected;
  });
  return {
    get browser() {
      if (!browser) throw new Error('no browser here');
      return browser;
    },
  };
}

/** A process connects once, for all files of tests that it runs. */
async function connect(): Promise<Browser> {
  const response = await fetch(inject('browserServerUrl'));
  const answer = await response.text();
  if (!response.ok) throw new Error(`the browser did not start: ${answer}`);
  return chromium.connect(answer);
}
