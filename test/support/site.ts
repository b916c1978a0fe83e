import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { AxeResults } from 'axe-core';
import type { BrowserContext, BrowserContextOptions, Page } from 'playwright-core';
import { expect, onTestFinished } from 'vitest';
import {
  type Browser,
  type IdentityGateway,
  type IdentityOptions,
  startIdentityGateway,
} from './identity.ts';
import type { useBrowser } from './browser.ts';
import { timeLimits } from './time-limits.ts';

/** A gateway with the customers' pages. */
export function startSite(options: IdentityOptions = {}): Promise<IdentityGateway> {
  return startIdentityGateway({
    ...options,
    tables: `${options.tables ?? ''}\n[pages]\nname = "Testbook"\n`,
  });
}

export interface Tab {
  readonly page: Page;
  readonly context: BrowserContext;
  /** What the console, the network and the policy complained of. */
  readonly complaints: string[];
  /** Every address that the browser asked for. */
  readonly asked: string[];
  /** Opens a path of the gateway. */
  open(path: string): Promise<Page>;
  /** Checks what must be true of every page: no request elsewhere, small, accessible in light and dark, no complaint. */
  check(options?: { readonly maxChars?: number }): Promise<void>;
}

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** Its own browser, with its own cookies. */
export async function openTab(
  { browser }: ReturnType<typeof useBrowser>,
  gateway: Pick<IdentityGateway, 'url'>,
  options: BrowserContextOptions = {},
): Promise<Tab> {
  const context = await browser.newContext({ baseURL: gateway.url, timezoneId: 'Asia/Tokyo', ...options });
  onTestFinished(() => context.close());
  context.setDefaultTimeout(timeLimits.conditionMs);
  const page = await context.newPage();
  const complaints: string[] = [];
  const asked: string[] = [];
  page.on('request', (request) => asked.push(request.url()));
  page.on('console', (message) => {
    // the browser's own line for an answer of status 4xx, which the page shows as well
    const isStatus = message.text().startsWith('Failed to load resource');
    if (!isStatus && ['error', 'warning'].includes(message.type())) complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(error.message));
  return {
    page,
    context,
    complaints,
    asked,
    async open(path) {
      await page.goto(path);
      return page;
    },
    async check({ maxChars = 100_000 } = {}) {
      expect(complaints).toEqual([]);
      for (const url of asked) expect(url).toMatch(new RegExp(`^(?:${gateway.url}/|data:|blob:)`));
      expect((await page.content()).length).toBeLessThan(maxChars);
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
        expect(await faultsIn(page, colorScheme), `${page.url()} in ${colorScheme}`).toEqual([]);
      }
      await page.emulateMedia({ colorScheme: 'light' });
      const scrolls = await page.evaluate('document.documentElement.scrollWidth > innerWidth');
      expect(scrolls, `${page.url()} is wider than its window`).toBe(false);
    },
  };
}

/** The rules for which the colours matter: what the others find in one scheme they find in both. */
const colorRules = { type: 'rule', values: ['color-contrast', 'link-in-text-block'] };

/** What axe finds; it runs beside the page, whose policy would not load it. */
async function faultsIn(page: Page, colorScheme: 'light' | 'dark'): Promise<string[]> {
  if (await page.evaluate("typeof axe === 'undefined'")) await page.evaluate(axe);
  const options = { resultTypes: ['violations'], ...(colorScheme === 'dark' && { runOnly: colorRules }) };
  const violations: AxeResults['violations'] = await page.evaluate(
    `axe.run(${JSON.stringify(options)}).then((results) => results.violations)`,
  );
  return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`));
}

/** Sends a form of a page as a browser without JavaScript does: what the page filled in, and what the person types. */
export async function sendForm(
  browser: Browser,
  pagePath: string,
  typed: Readonly<Record<string, string>>,
  {
    action = pagePath.split('?', 1)[0] ?? '',
    headers = {},
  }: { action?: string; headers?: Record<string, string> } = {},
): ReturnType<Browser['get']> {
  const { text } = await browser.get(pagePath);
  const form = formsIn(text).find((one) => one.action === action);
  if (!form) throw new Error(`no form for ${action} on ${pagePath}: ${text}`);
  return postForm(browser, action, { ...form.fields, ...typed }, headers);
}

export function postForm(
  browser: Browser,
  action: string,
  fields: Readonly<Record<string, string>>,
  headers: Record<string, string> = {},
): ReturnType<Browser['get']> {
  const type = { 'content-type': 'application/x-www-form-urlencoded' };
  return browser.post(action, new URLSearchParams(fields).toString(), { ...type, ...headers });
}

export function formsIn(
  text: string,
): { readonly action: string; readonly fields: Record<string, string> }[] {
  return [...text.matchAll(/<form [^>]*action="([^"]*)"[^>]*>([^]*?)<\/form>/g)].map(
    ([, action = '', body = '']) => ({ action, fields: Object.fromEntries(inputsIn(body)) }),
  );
}

function inputsIn(body: string): [string, string][] {
  return [...body.matchAll(/<input[^>]*>/g)].flatMap(([input]) => {
    const attribute = (name: string): string | undefined =>
      new RegExp(`\\s${name}="([^"]*)"`).exec(input)?.[1];
    const name = attribute('name');
    const isLeftOut = attribute('type') === 'checkbox' && !/\schecked/.test(input);
    return name === undefined || isLeftOut ? [] : [[name, unescaped(attribute('value') ?? '')]];
  });
}

function unescaped(text: string): string {
  return text.replaceAll(/&#(\d+);/g, (_, code: string) => String.fromCodePoint(Number(code)));
}
