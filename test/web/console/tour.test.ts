import { expect, test } from 'vitest';
import { recordAction } from '../../../src/accounts/use-cases/operators.ts';
import { hasBrowser, useBrowser } from '../../support/browser.ts';
import { operatorTab, signInOperator, startConsole } from '../../support/console.ts';
import { laneOn } from '../../support/credit.ts';
import { registeredConsole, startTour } from '../../support/tour.ts';

const chromium = useBrowser();

/** Opened by the tests of the sign-in, if they lead somewhere. */
const ofSignIn = ['/console/sign-in', '/console/second-factor', '/console/invitation'];

/** Toured by the tests of these sections, which have paid for jobs and opened accounts. */
const ofSections = /^\/console\/(?:payments|calls|jobs|chat)/;

/** Of one run, break or refund: toured by the tests of the books, which have some. */
const ofBooks = /^\/console\/books\/(?:reconciliations\/|refunds|periods\/|money|exports)/;

test.skipIf(!hasBrowser)(
  'every page of the console is accessible in light and dark, fits a phone, and sends no request to another origin',
  async () => {
    const gateway = await startConsole();
    const ada = await signInOperator(gateway);
    await signInOperator(gateway, { name: 'grace.hopper-of-the-night-shift', role: 'viewer' });
    const ledger = { lane: laneOn(gateway.database) };
    const payment = `0x${'ab'.repeat(32)}`;
    for (let count = 0; count < 15; count++) {
      await recordAction(ledger, ada, 'requeue_call', String(42 + count));
      await recordAction(ledger, ada, 'start_refund', payment);
      await recordAction(ledger, ada, 'explain_break', payment);
      await recordAction(ledger, ada, 'pause_runner', 'runner-1');
    }
    const tab = await operatorTab(chromium, gateway, ada);
    const tour = startTour(tab);
    await tour.open('/console', 'console-overview');
    await tour.open('/console/activity', 'console-activity');
    await tour.open('/console/activity?before=20', 'console-activity-earlier');
    await tab.page.getByRole('heading', { name: 'Earlier activity' }).waitFor();
    await tour.open('/console/operators', 'console-operators');
    await tour.open('/console/factors', 'console-factors');
    await tour.open('/console/books', 'console-books-empty');
    await tour.open('/console/books/periods', 'console-periods-empty');
    await tour.open('/console/books/log', 'console-log-empty');
    // events, not a page: test/web/console/overview.test.ts
    const live = '/console/live';
    const known = (path: string): boolean =>
      path === live || ofSignIn.includes(path) || ofSections.test(path) || ofBooks.test(path);
    expect(tour.unseen(await registeredConsole('GET')).filter((path) => !known(path))).toEqual([]);
  },
);

test.skipIf(!hasBrowser)(
  'on a phone the navigation is one row, in which the section that is open can be seen, and which fades where it goes on',
  async () => {
    const gateway = await startConsole();
    const { page } = await operatorTab(chromium, gateway, await signInOperator(gateway), {
      viewport: { width: 390, height: 844 },
    });
    const fades = () =>
      page
        .locator('.top nav ul')
        .evaluate((row) => ['data-hidden-before', 'data-hidden-after'].map((name) => row.hasAttribute(name)));
    for (const path of ['/console', '/console/books/log', '/console/operators']) {
      await page.goto(path);
      expect(await page.locator('.who').innerText()).toMatch(/ada.*admin/s);
      for (const row of await page.locator('nav').all()) {
        const links = await row.getByRole('link').all();
        const tops = await Promise.all(links.map(async (link) => (await link.boundingBox())?.y));
        expect(new Set(tops).size, `${path}: rows`).toBe(1);
        const { x = -1, width = 0 } = (await row.locator('[aria-current="page"]').boundingBox()) ?? {};
        expect([x >= 0, x + width <= 390], `${path}: the open section ends at ${x + width}`).toEqual([
          true,
          true,
        ]);
      }
    }
    // so narrow that not all sections are seen at the same time
    await page.setViewportSize({ width: 240, height: 844 });
    for (const [path, fading] of [
      ['/console', [false, true]],
      ['/console/operators', [true, false]],
    ] as const) {
      await page.goto(path);
      expect([path, await fades()]).toEqual([path, fading]);
    }
  },
);
