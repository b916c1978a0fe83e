import chromium from '@sparticuz/chromium';
import { type Browser, chromium as playwright } from 'playwright-core';
import { afterAll, beforeAll } from 'vitest';

/** The browser comes as a package for this platform alone. */
export const hasBrowser = process.platform === 'linux' && process.arch === 'x64';

/** A real browser without a window, for all tests of one file. It calls nobody by itself. */
export function useBrowser(): { readonly browser: Browser } {
  let browser: Browser | undefined;
  beforeAll(async () => {
    if (!hasBrowser) return;
    const quiet = ['--disable-background-networking', '--disable-component-update', '--disable-sync'];
    browser = await playwright.launch({
      executablePath: await chromium.executablePath(),
      // without the package's own flags: they switch the rules between origins off. No sandbox: containers run this as root
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
