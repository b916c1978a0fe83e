import { expect, test } from 'vitest';
import { devnetKeys } from '../../../src/devnet/accounts.ts';
import { readConsoleEvents, recordAction } from '../../../src/accounts/use-cases/operators.ts';
import { readStream } from '../../../src/ledger/store/streams.ts';
import { hasBrowser, useBrowser } from '../../support/browser.ts';
import { browserOf, operatorTab, signInOperator } from '../../support/console.ts';
import { storeReport } from '../../support/console-books.ts';
import { laneOn } from '../../support/credit.ts';
import { useChain } from '../../support/devnet.ts';
import { payTo } from '../../support/gateway.ts';
import { echo, startJobsSite } from '../../support/jobs-site.ts';
import { transferToken } from '../../support/onchain.ts';
import { endOfPeriod, itemsOf } from '../../support/reconcile.ts';
import { formsIn, postForm, sendForm } from '../../support/site.ts';
import { sealAll } from '../../support/log.ts';
import { eventually } from '../../support/wait.ts';
import { startTour } from '../../support/tour.ts';

const chain = useChain();
const chromium = useBrowser();

/** A gateway whose payee got money that no event explains, and a stored reconciliation that says so. */
async function startWithBreak() {
  const site = await startJobsSite(chain, echo, { tables: '[console]\n' });
  const { database } = site;
  // other tests have other transfers on this chain
  const fromMs = Date.parse(await endOfPeriod(chain.rpcUrl));
  const money = { key: devnetKeys.payer, asset: chain.token, to: payTo, amount: 1_500_000n } as const;
  const transaction = await transferToken(chain.rpcUrl, money);
  const period = { fromMs, toMs: Date.parse(await endOfPeriod(chain.rpcUrl)) };
  const { id, report } = await storeReport(database, chain, period);
  const item = itemsOf(report, 'on_chain_without_event').find((one) => one.transaction === transaction);
  const breakId = item?.break_id ?? '';
  const path = `/console/books/reconciliations/${id}/breaks/${breakId}`;
  const said = async () =>
    (await readStream(database.pool, `break:${breakId}`)).events.map(({ data }) => data);
  return { site, database, id, path, breakId, transaction, period, said };
}

test.skipIf(!hasBrowser)(
  'an operator explains a break of a reconciliation under their name, and the next report carries it',
  async () => {
    const { site, database, id, breakId, transaction, period, said } = await startWithBreak();
    const ada = await signInOperator(site, { role: 'finance' });
    const tab = await operatorTab(chromium, site, ada);
    const { page } = tab;
    const tour = startTour(tab);
    await tour.open('/console/books', 'console-books');
    expect((await browserOf(site, ada).get('/console')).text).toContain('1 in the last reconciliation');
    await page.locator('tbody a').first().click();
    await page.getByRole('heading', { name: `Reconciliation ${id}` }).waitFor();
    await page.getByText(/Ledger and chains differ from .+: 1 break is not explained\./).waitFor();
    expect(await page.getByText('It ties out').count()).toBe(0);
    await tour.look('console-reconciliation');
    await page.getByRole('link', { name: 'Explain it' }).click();
    await page.getByText('Not explained: Money came on the chain').waitFor();
    await page.getByLabel('Category').selectOption('known_transfer');
    await page.getByLabel('Note').fill('Our own deposit, of 24 November');
    await page.getByRole('button', { name: 'Record it' }).click();
    await page.getByText('Explained by ada as known transfer: “Our own deposit, of 24 November”.').waitFor();
    expect((await browserOf(site, ada).get('/console')).text).not.toContain('in the last reconciliation');
    await tour.look('console-break');
    expect(await said()).toMatchObject([
      { as: 'known_transfer', operator: 'ada', note: 'Our own deposit, of 24 November', transaction },
    ]);
    const [acted] = await readConsoleEvents(database, undefined, 1);
    expect(acted?.data).toMatchObject({ operator: 'ada', action: 'explain_break', subject: breakId });
    const next = await storeReport(database, chain, period);
    expect(itemsOf(next.report, 'on_chain_without_event')[0]?.explained).toMatchObject({ operator: 'ada' });
    await page.goto(`/console/books/reconciliations/${next.id}`);
    await page.getByText('breaks, all explained').waitFor();
    await page.getByText('It ties out').waitFor();
  },
);

test('finance records what a break is on its page and reconciles the period again there, which ends the break', async () => {
  const { site, path } = await startWithBreak();
  const ada = browserOf(site, await signInOperator(site, { role: 'finance' }));
  const record = (typed: Record<string, string>) => sendForm(ada, path, typed, { action: `${path}/record` });
  const refused = await record({ what: 'returned', by: '0x12' });
  expect([refused.status, refused.text]).toEqual([409, expect.stringContaining('Nothing was recorded')]);
  const transfers = async () => (await ada.get('/console/books/money')).text;
  expect(await transfers()).toMatch(/1\.5 .+came in and is not\s+recorded/s);
  expect(await transfers()).toContain(`<a href="${path}">record it</a>`);
  await eventually(async () => {
    const done = await record({ what: 'income' });
    expect(done.headers.get('location')).toBe(`${path}?notice=transfer_recorded`);
  });
  expect(await transfers()).not.toContain('record it</a>');
  await sealAll(site.database);
  const again = await sendForm(ada, path, {}, { action: '/console/books/reconcile' });
  const made = again.headers.get('location') ?? '';
  expect(made).toMatch(/^\/console\/books\/reconciliations\/\d+\?notice=reconciled$/);
  const { text } = await ada.get(made);
  expect(text).toContain('Ledger and chains agree');
  expect(text).toContain('It ties out');
  expect((await ada.get('/console')).text).not.toContain('in the last reconciliation');
  expect((await ada.get('/console/books/money')).text).toContain('<span>income</span>');
  // what the command would refuse is refused
  const books = '/console/books';
  const action = `${books}/reconcile`;
  const late = await sendForm(ada, books, { from: '2026-11-01', to: '2999-01-01' }, { action });
  expect([late.status, late.text]).toEqual([409, expect.stringContaining('The period is not over')]);
  const money = { what: 'sweep', network: 'eip155:84532', transaction: `0x${'12'.repeat(32)}` };
  const none = await sendForm(ada, `${books}/money`, money, { action: `${books}/money/record` });
  expect([none.status, none.text]).toEqual([409, expect.stringContaining('The chain does not know')]);
  const events = await readConsoleEvents(site.database, undefined, 20);
  expect(events.map(({ data }) => 'action' in data && data.action)).toEqual(
    expect.arrayContaining(['record_transfer', 'reconcile', 'reconcile_stored', 'reconcile_refused']),
  );
  const viewer = browserOf(site, await signInOperator(site, { name: 'vera', role: 'viewer' }));
  for (const page of [books, `${books}/money`, path])
    expect(formsIn((await viewer.get(page)).text).map((form) => form.action)).toEqual(['/console/sign-out']);
});

test('a reconciliation whose end is not recorded is said to be lost or made elsewhere, until its end or a newer report is stored', async () => {
  const { site, period } = await startWithBreak();
  const ada = await signInOperator(site, { role: 'finance' });
  const ledger = { lane: laneOn(site.database) };
  const shown = async () => (await browserOf(site, ada).get('/console/books')).text;
  const lost = 'the process that made it was stopped';
  const act = (action: string, subject: string) => recordAction(ledger, ada, action, subject);
  // by another process of the gateway
  await act('reconcile', '2026-10-01 to 2026-11-01');
  expect(await shown()).toContain(lost);
  await act('reconcile_failed', '2026-10-01 to 2026-11-01: The node is away.');
  expect(await shown()).toMatch(/Reconciliation not made .*2026-10-01 to 2026-11-01: The node is away\./s);
  await act('reconcile', '2026-10-01 to 2026-11-01');
  await storeReport(site.database, chain, period);
  const after = await shown();
  expect([after.includes(lost), after.includes('not made')]).toEqual([false, false]);
});

test('an explanation without a note, or of an unknown category or break, is not recorded', async () => {
  const { site, path, said } = await startWithBreak();
  const ada = browserOf(site, await signInOperator(site, { role: 'finance' }));
  const { fields = {} } =
    formsIn((await ada.get(path)).text).find(({ action }) => action.endsWith('/explain')) ?? {};
  const send = (change: object, to = `${path}/explain`) => postForm(ada, to, { ...fields, ...change });
  expect((await send({ as: 'other', note: 'mail@example.org' })).status).toBe(409);
  expect((await send({ as: 'other', note: ' ' })).text).toContain('Nothing was recorded');
  expect((await send({ as: 'weather', note: 'x' })).status).toBe(409);
  const other = `${path.slice(0, -64)}${'0'.repeat(64)}/explain`;
  expect((await send({ as: 'other', note: 'x' }, other)).status).toBe(404);
  const old = await send({ form: 'x', as: 'other', note: 'kept' });
  expect(old.headers.get('location')).toBe(`${path}?note=kept&as=other&notice=form_too_old`);
  expect(await said()).toEqual([]);
});
