import http from 'node:http';
import type { AddressInfo } from 'node:net';
import chromium from '@sparticuz/chromium';
import { type BrowserServer, chromium as playwright } from 'playwright-core';
import type { TestProject } from 'vitest/node';
import { noteCosts } from './service-costs.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** GET answers with the address of the browser that all tests share, and starts it first where nobody has asked yet. */
    browserServerUrl: string;
  }
}

/** One browser for all page tests, in which each test has contexts of its own. A run without page tests starts none. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  let browser: Promise<BrowserServer> | undefined;
  const server = http.createServer((_, response) => {
    browser ??= launch();
    browser.then(
      (started) => response.end(started.wsEndpoint()),
      (error: unknown) => response.writeHead(500).end(String(error)),
    );
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  project.provide('browserServerUrl', `http://127.0.0.1:${port}`);
  return async () => {
    server.close();
    noteCosts('the browser', 'chromium');
    await (await browser)?.close();
  };
}

async function launch(): Promise<BrowserServer> {
  const quiet = ['--disable-background-networking', '--disable-component-update', '--disable-sync'];
  return playwright.launchServer({
    executablePath: await chromium.executablePath(),
    // not the package's own flags: they disable the same-origin policy. No sandbox: containers run this as root
    args: [...quiet, '--no-first-run', '--no-sandbox'],
  });
}
