import path from 'node:path';
import fastify, { type FastifyInstance } from 'fastify';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { processEnvironment } from '../../src/base/config/environment.ts';
import { consoleRoutes } from '../../src/web/console/console.ts';
import { sections } from '../../src/web/console/sections.ts';
import type { ConsoleSite } from '../../src/web/console/visit.ts';
import { createLostPages } from '../../src/web/pages/lost.ts';
import { pagesRoutes } from '../../src/web/pages/routes.ts';
import type { Site } from '../../src/web/pages/visit.ts';
import type { Tab } from './site.ts';

/**
 * With a directory in SCREENSHOTS, each page whose name contains SCREENSHOTS_OF is kept there as a picture: desktop and phone, light and dark;
 * a page with folded parts also with these unfolded.
 */
const { SCREENSHOTS: pictures, SCREENSHOTS_OF: pictured = '' } = processEnvironment();

const viewports = { phone: { width: 390, height: 844 }, desktop: { width: 1_180, height: 800 } };

/** Whether a cell of a table ends beyond the sheet that the table is on, which the width of the window does not show. */
const leavesSheet = `[...document.querySelectorAll('td')].some((cell) =>
  cell.getBoundingClientRect().right > cell.closest('.sheet, main').getBoundingClientRect().right - 1)`;

export interface Tour {
  /** Opens a page and looks at it; its picture has this name. */
  open(where: string, name: string): Promise<void>;
  /** Checks the page that is open. */
  look(name: string): Promise<void>;
  /** The pages that were registered and not opened. */
  unseen(registered: readonly string[]): readonly string[];
}

const unfold = `for (const part of document.querySelectorAll('details:not([open])')) {
  part.dataset.wasFolded = '';
  part.open = true;
}`;
const fold = `document.querySelectorAll('[data-was-folded]').forEach((part) => (part.open = false))`;
/** Not what is folded within a folded part: a person opens one at a time. */
const unfoldFirst = `document.querySelectorAll('[data-was-folded]:not([data-was-folded] *)').forEach((part) => (part.open = true))`;

/** Looks at pages in one tab: each is checked, also for its width on a phone, and kept as a picture if one is asked for. */
export function startTour({ open, page, check }: Tab): Tour {
  const seen: string[] = [];
  const look = async (name: string): Promise<void> => {
    // what is folded is part of the page
    await page.evaluate(unfold);
    await check();
    if (pictures !== undefined && name.includes(pictured)) {
      await page.evaluate(fold);
      await takePictures(page, name);
      await page.evaluate(unfoldFirst);
      if ((await page.locator('[data-was-folded][open]').count()) > 0)
        await takePictures(page, `${name}-unfolded`);
      await page.evaluate(unfold);
    }
    for (const [size, viewport] of Object.entries(viewports)) {
      await page.setViewportSize(viewport);
      const isTooWide = await page.evaluate('document.documentElement.scrollWidth > innerWidth');
      expect(isTooWide, `${name} scrolls sideways on a ${size}`).toBe(false);
      expect(await page.evaluate(leavesSheet), `${name}: a table is wider than its sheet on a ${size}`).toBe(
        false,
      );
    }
  };
  return {
    look,
    async open(where, name) {
      await open(where);
      const { pathname } = new URL(page.url());
      expect(pathname, `${where} leads elsewhere`).toBe(where.split('?', 1)[0]);
      seen.push(pathname);
      await look(name);
    },
    unseen: (registered) =>
      registered.filter((route) => !seen.some((pathname) => patternOf(route).test(pathname))),
  };
}

/** Of the page as it is, in each look. */
async function takePictures(page: Page, name: string): Promise<void> {
  for (const [size, viewport] of Object.entries(viewports)) {
    await page.setViewportSize(viewport);
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
      const file = path.join(pictures ?? '', `${name}-${size}-${colorScheme}.png`);
      await page.screenshot({ path: file, fullPage: true });
    }
  }
  await page.emulateMedia({ colorScheme: 'light' });
}

function patternOf(route: string): RegExp {
  return new RegExp(`^${route.replaceAll(/:\w+/g, '[^/]+')}$`);
}

const none = (): never => {
  throw new Error('nothing is served here');
};

const bodies = { read: none, shrink: none, release: none };

/** The addresses of pages, or of forms, that a gateway serves, as its router knows them. */
export function registeredPages(
  method: 'GET' | 'POST',
  { hasJobs = false }: { readonly hasJobs?: boolean } = {},
): Promise<string[]> {
  // registering needs nothing of a site but to know which parts it has
  const site = { chat: none, completions: none, ...(hasJobs && { jobs: none }) } as unknown as Site;
  return routesOf(method, pagesRoutes(site, bodies, createLostPages(site)));
}

/** The same of the console, with every section. */
export function registeredConsole(method: 'GET' | 'POST'): Promise<string[]> {
  const site = { sections, hasCustomerPages: true, jobs: none, chat: none } as unknown as ConsoleSite;
  return routesOf(method, consoleRoutes(site, bodies));
}

async function routesOf(
  method: 'GET' | 'POST',
  routes: (app: FastifyInstance) => Promise<void>,
): Promise<string[]> {
  const found: string[] = [];
  const app = fastify();
  app.addHook('onRoute', (route) => {
    if (route.method === method) found.push(route.url);
  });
  await app.register(routes);
  await app.close();
  return found;
}
