import type { Locator } from 'playwright-core';
import { expect, test } from 'vitest';
import type { GatewayOptions } from '../../../src/app/start.ts';
import { listDeadCalls } from '../../../src/calls/store/calls.ts';
import { discardCall } from '../../../src/calls/use-cases/discard-call.ts';
import { devnetKeys } from '../../../src/devnet/accounts.ts';
import { storeReconciliation } from '../../../src/audit/store/reconciliations.ts';
import { hasBrowser, useBrowser } from '../../support/browser.ts';
import { browserOf, operatorTab, signInOperator } from '../../support/console.ts';
import { storeReport } from '../../support/console-books.ts';
import { laneOn } from '../../support/credit.ts';
import { useChain } from '../../support/devnet.ts';
import { payTo, testConfig } from '../../support/gateway.ts';
import { type JobsSite, startJobsSite } from '../../support/jobs-site.ts';
import { sealAll } from '../../support/log.ts';
import { transferToken } from '../../support/onchain.ts';
import { payFor } from '../../support/payer.ts';
import { endOfPeriod } from '../../support/reconcile.ts';
import { startTour } from '../../support/tour.ts';
import { eventually } from '../../support/wait.ts';

const chain = useChain();
const chromium = useBrowser();
const job = '/x402/jobs/1/1';

async function start(status = 200, readConfig?: GatewayOptions['readConfig']) {
  const behave = () => ({ status, body: 'no model' });
  return startJobsSite(chain, behave, { tables: '[console]\n', ...(readConfig && { readConfig }) });
}

/** Deeds of an operator, each with how often they pressed something and how long it took. */
function startMorning() {
  const deeds: string[] = [];
  let [presses, all, fromMs] = [0, 0, performance.now()];
  return {
    async press(what: Locator) {
      await what.click();
      presses += 1;
    },
    did(what: string) {
      deeds.push(`${what} ${presses} (${((performance.now() - fromMs) / 1_000).toFixed(1)} s)`);
      all += presses;
      [presses, fromMs] = [0, performance.now()];
    },
    /** What was measured, in one line. */
    told: () => `An operator's morning in ${all} clicks: ${deeds.join(', ')}`,
    clicks: () => all,
  };
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

test.skipIf(!hasBrowser)(
  'each thing that needs a person is done from the overview in a few clicks, without a terminal',
  async () => {
    const site: JobsSite = await start(422, () =>
      testConfig({ ...site.options, change: (text) => text.replace('6 = "1.5 USD"', '6 = "2.25 USD"') }),
    );
    const { database } = site;
    for (let paid = 0; paid < 2; paid++) expect((await payFor(site, job)).status).toBe(202);
    const [given] = await eventually(async () => {
      const dead = await listDeadCalls(database.db, 10);
      expect(dead).toHaveLength(2);
      return dead;
    });
    const by = { why: 'the model is gone', operator: 'ada' };
    await discardCall({ ...database, lane: laneOn(database) }, given?.call_id ?? 0, by);
    const fromMs = Date.parse(await endOfPeriod(chain.rpcUrl));
    const money = { key: devnetKeys.payer, asset: chain.token, to: payTo, amount: 1_500_000n } as const;
    await transferToken(chain.rpcUrl, money);
    await storeReport(database, chain, { fromMs, toMs: Date.parse(await endOfPeriod(chain.rpcUrl)) });
    const { page } = await operatorTab(chromium, site, await signInOperator(site));
    await eventually(async () => {
      await page.goto('/console');
      expect(await page.getByText('3 things need you').count()).toBe(1);
    });
    const morning = startMorning();
    const { press } = morning;
    const link = (name: string | RegExp) => page.getByRole('link', { name });
    const button = (name: string | RegExp) => page.getByRole('button', { name });
    await page.goto('/console');
    await page.getByText('3 things need you').waitFor();
    morning.did('overview');
    await press(link('1 call was not delivered'));
    await press(button('Requeue call'));
    await page.getByText('The call is in the queue again').waitFor();
    morning.did('dead letter');
    await press(link('Overview'));
    await press(link('1 payment is owed back'));
    await press(page.locator('tbody a').first());
    await page.getByText('are due to the payer: its call was not delivered').waitFor();
    morning.did('refund');
    await press(link('Overview'));
    await press(link('1 in the last reconciliation'));
    await press(link('money that no event explains'));
    await page.getByLabel('What it is').selectOption('income');
    await press(button('Record the transfer'));
    await press(button('Press again: record it'));
    await page.getByText('The transfer is recorded').waitFor();
    await sealAll(database);
    await press(button('Reconcile this period again'));
    await page.getByText('Ledger and chains agree').waitFor();
    morning.did('break');
    await press(link('Jobs'));
    await page.getByText('A reload would change these prices').waitFor();
    morning.did('price');
    process.stdout.write(`${morning.told()}\n`);
    expect(morning.clicks()).toBeLessThanOrEqual(12);
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
