import { expect, test } from 'vitest';
import { storeReconciliation } from '../../../src/audit/store/reconciliations.ts';
import { hasBrowser, useBrowser } from '../../support/browser.ts';
import { browserOf, operatorTab, signInOperator } from '../../support/console.ts';
import { useChain } from '../../support/devnet.ts';
import { startJobsSite } from '../../support/jobs-site.ts';
import { payFor } from '../../support/payer.ts';
import { startTour } from '../../support/tour.ts';
import { eventually } from '../../support/wait.ts';

const chain = useChain();
const chromium = useBrowser();
const job = '/x402/jobs/1/1';

async function start(status = 200) {
  const behave = () => ({ status, body: 'no model' });
  return startJobsSite(chain, behave, { tables: '[console]\n' });
}

test.skipIf(!hasBrowser)(
  'the overview leads to what needs a person, and its figures follow what happens without being opened again',
  async () => {
    const site = await start(422);
    const viewer = await signInOperator(site, { role: 'viewer' });
    const tab = await operatorTab(chromium, site, viewer);
    const { page } = tab;
    await page.goto('/console');
    await page.getByRole('heading', { name: 'Nothing needs you' }).waitFor();
    const paid = page.locator('[data-figure="paid"]');
    expect(await paid.textContent()).toBe('0');
    expect((await payFor(site, job)).status).toBe(202);
    await eventually(async () => expect(await paid.textContent()).toBe('1'));
    await page.getByText('What needs a person has changed').waitFor();
    await page.getByRole('link', { name: 'Show it' }).click();
    // the charts follow as the figures do
    const today = new Date().toISOString().slice(0, 10);
    await eventually(async () =>
      expect(await page.locator('svg title', { hasText: '1 paid, dead letters: 1' }).count()).toBe(1),
    );
    await page.getByText('The numbers of these charts').click();
    await page.locator(`a[href="/console/payments?from=${today}&to=${today}"]`).waitFor();
    await startTour(tab).open('/console', 'console-overview-jobs');
    expect(await page.getByText('What needs a person has changed').isHidden()).toBe(true);
    await page.getByRole('link', { name: '1 call was not delivered: status 422: no model' }).click();
    await page.getByRole('heading', { name: 'Dead letters' }).waitFor();
  },
);

test('a task for a person is shown with the page for it', async () => {
  const site = await start();
  const ada = browserOf(site, await signInOperator(site));
  const report = {
    period: { from: '2026-11-01T00:00:00.000Z', to: '2026-11-08T00:00:00.000Z' },
    ledger: { size: 7, root: 'x' },
    result: 'breaks',
    breaks: 2,
    open_items: 0,
  };
  await storeReconciliation(site.database.pool, JSON.stringify(report));
  await site.database.asOwner(async (owner) => {
    await owner.query(
      `insert into tollbook.alert (kind, subject, text, details, is_firing, since, seen_at, told_at)
       values ('facilitator_trouble', 'facilitator.example', 'It gives no useful answers.', '{}', true, now(), now(), now())`,
    );
  });
  const { text } = await ada.get('/console');
  expect(text).toContain('2 in the last reconciliation, of 1 Nov 2026 to 8 Nov 2026');
  expect(text).toContain('It gives no useful answers.');
});

test('figures are events only for signed-in operators', async () => {
  const site = await start();
  const ada = browserOf(site, await signInOperator(site));
  const accept = { accept: 'text/event-stream' };
  const anyone = await fetch(`${site.url}/console/live`, { headers: accept });
  expect([anyone.status, await anyone.json()]).toMatchObject([401, { error: 'session_required' }]);
  const cookie = [...ada.cookies].map((pair) => pair.join('=')).join('; ');
  const left = new AbortController();
  const { body, headers, status } = await fetch(`${site.url}/console/live`, {
    headers: { ...accept, cookie },
    signal: left.signal,
  });
  expect([status, headers.get('content-type')]).toEqual([200, 'text/event-stream']);
  let told = '';
  for await (const bytes of body ?? []) {
    told += Buffer.from(bytes).toString();
    if (told.includes('data: ')) break;
  }
  expect(told).toMatch(/^retry: 2000\n\ndata: \{"figures":\{"paid":"0"/);
});
