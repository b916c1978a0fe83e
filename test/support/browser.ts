import chromium from '@sparticuz/chromium';
import { type Browser, chromium as playwright } from 'playwright-core';
import { afterAll, beforeAll } from 'vitest';

/** The npm package has a browser for this platform only. */
export const hasBrowser = process.platform === 'linux' && process.arch === 'x64';

/** A headless browser for all tests of one file. It sends no requests of its own. */
export function useBrowser(): { readonly browser: Browser } {
  let browser: Browser | undefined;
  beforeAll(async () => {
    if (!hasBrowser) return;
    const quiet = ['--disable-background-networking', '--disable-component-update', '--disable-sync'];
    browser = await playwright.launch({
      executablePath: await chromium.executablePath(),
      // not the package's own flags: they disable the same-origin policy. No sandbox: containers run this as root
      args: [...quiet, '--no-first-run', '--no-sandbox'],
    });
  });
  afterAll(() => browser?.close());
  return {
    get browser() {
      if (!browser) throw new Error('no browser here');
      return browser;
    },
  };
}
