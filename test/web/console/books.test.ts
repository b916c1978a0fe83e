import { expect, test } from 'vitest';
import { devnetKeys } from '../../../src/devnet/accounts.ts';
import { readConsoleEvents } from '../../../src/accounts/use-cases/operators.ts';
import { readStream } from '../../../src/ledger/store/streams.ts';
import { hasBrowser, useBrowser } from '../../support/browser.ts';
import { browserOf, operatorTab, signInOperator } from '../../support/console.ts';
import { storeReport } from '../../support/console-books.ts';
import { useChain } from '../../support/devnet.ts';
import { payTo } from '../../support/gateway.ts';
import { echo, startJobsSite } from '../../support/jobs-site.ts';
import { transferToken } from '../../support/onchain.ts';
import { endOfPeriod, itemsOf } from '../../support/reconcile.ts';
import { formsIn, postForm } from '../../support/site.ts';
import { startTour } from '../../support/tour.ts';

const chain = useChain();
const chromium = useBrowser();

/** A gateway whose payee got money that no event explains, and a stored reconciliation that says so. */
async function startWithBreak() {
  const site = await startJobsSite(chain, echo, { tables: '[console]\n' });
  const { database } = site;
  const fromMs = Date.now() - 3_600_000;
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
    const { site, database, id, path, breakId, transaction, period, said } = await startWithBreak();
    const ada = await signInOperator(site, { role: 'finance' });
    const tab = await operatorTab(chromium, site, ada);
    const { page } = tab;
    const tour = startTour(tab);
    await tour.open('/console/books', 'console-books');
    expect((await browserOf(site, ada).get('/console')).text).toContain('1 in the last reconciliation');
    await page.locator('tbody a').first().click();
    await page.getByRole('heading', { name: `Reconciliation ${id}` }).waitFor();
    await tour.look('console-reconciliation');
    await page.locator(`a[href="${path}"]`).click();
    await page.getByText('Nothing yet.').waitFor();
    await page.getByLabel('Category').selectOption('known_transfer');
    await page.getByLabel('Note').fill('Our own deposit, of 24 November');
    await page.getByRole('button', { name: 'Record it' }).click();
    await page.getByText('Your explanation is recorded').waitFor();
    expect((await browserOf(site, ada).get('/console')).text).not.toContain('in the last reconciliation');
    await page.getByText('Our own deposit, of 24 November').waitFor();
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
  },
);

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
