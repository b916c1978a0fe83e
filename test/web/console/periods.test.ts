import { expect, test } from 'vitest';
import { openBooks } from '../../../src/finance/use-cases/books/books.ts';
import { writeBooks } from '../../../src/finance/use-cases/books/format.ts';
import { openDatabaseSource } from '../../../src/finance/use-cases/books/source.ts';
import { devnetKeys } from '../../../src/devnet/accounts.ts';
import { bookFormats } from '../../../src/base/values/format.ts';
import { readPeriods } from '../../../src/finance/use-cases/periods/read-periods.ts';
import { hasBrowser, useBrowser } from '../../support/browser.ts';
import { browserOf, operatorTab, signInOperator } from '../../support/console.ts';
import { storeReport } from '../../support/console-books.ts';
import { useChain } from '../../support/devnet.ts';
import { payTo } from '../../support/gateway.ts';
import { echo, startJobsSite } from '../../support/jobs-site.ts';
import { transferToken } from '../../support/onchain.ts';
import { endOfPeriod } from '../../support/reconcile.ts';
import { formsIn, postForm } from '../../support/site.ts';
import { startTour } from '../../support/tour.ts';

const chain = useChain();
const chromium = useBrowser();

/** A gateway with a stored reconciliation of a period that is over, in which a break is open. */
async function startWithReport() {
  const site = await startJobsSite(chain, echo, { tables: '[console]\n' });
  // other tests have other transfers on this chain
  const fromMs = Date.parse(await endOfPeriod(chain.rpcUrl));
  const ada = await signInOperator(site, { role: 'finance' });
  const bob = await signInOperator(site, { name: 'bob', role: 'finance' });
  const money = { key: devnetKeys.payer, asset: chain.token, to: payTo, amount: 1_500_000n } as const;
  await transferToken(chain.rpcUrl, money);
  const period = { fromMs, toMs: Date.parse(await endOfPeriod(chain.rpcUrl)) };
  const { id } = await storeReport(site.database, chain, period);
  const all = async () => (await readPeriods(site.database.pool)).periods.all;
  return { site, ada, bob, period, all, run: `/console/books/reconciliations/${id}` };
}

test.skipIf(!hasBrowser)(
  'a period is closed by one person and reviewed by another, each under their name, and its exports are those of the command',
  async () => {
    const { site, ada, bob, period, all, run } = await startWithReport();
    const tab = await operatorTab(chromium, site, ada);
    const { page } = tab;
    await page.goto(run);
    await page.getByText('Close this period with this report').click();
    const close = page.getByRole('button', { name: /Close the period|Press again/ });
    await page.getByLabel('Why it is closed').fill('The auditor knows of it');
    await close.click();
    await close.click();
    await page.getByText('The period is closed.').waitFor();
    const [closed] = await all();
    expect(closed?.close.data).toMatchObject({ operator: 'ada', despite: 'The auditor knows of it' });
    const path = `/console/books/periods/${closed?.close.seq}`;
    const tour = startTour(tab);
    await tour.open(path, 'console-period');
    await tour.open('/console/books/periods', 'console-periods');
    await tour.open('/console/books/money', 'console-money');
    await tour.open('/console/books/log', 'console-log');
    await page.goto('/console/books/periods');
    await page
      .getByText('waits for its review. You closed it, so another person has to review it.')
      .waitFor();
    await page.goto(path);
    expect(await page.getByRole('button', { name: /record the review/ }).count()).toBe(0);

    const second = await operatorTab(chromium, site, bob);
    await second.page.goto(path);
    await second.page.getByRole('button', { name: /record the review/ }).click();
    await second.page.getByText('Your review is recorded.').waitFor();
    expect((await all())[0]?.review?.data).toMatchObject({ operator: 'bob', reconciled: false });

    const browser = browserOf(site, ada);
    for (const format of bookFormats) {
      const query = `from=${period.fromMs}&to=${period.toMs}`;
      const answer = await browser.get(`/console/books/exports/${format}?${query}`);
      const books = await openBooks(await openDatabaseSource(site.database.pool), period);
      const written = Buffer.concat(await Array.fromAsync(writeBooks(books, format)));
      expect([format, answer.status, answer.text]).toEqual([format, 200, written.toString('utf8')]);
    }
  },
);

test('the one who closed a period does not review it, a later word opens it again, and a viewer does none of it', async () => {
  const { site, ada, all, run } = await startWithReport();
  const vera = browserOf(site, await signInOperator(site, { name: 'vera', role: 'viewer' }));
  const browser = browserOf(site, ada);
  const tokenOf = async (who: typeof browser, path: string) => {
    const { fields = {} } = formsIn((await who.get(path)).text)[0] ?? {};
    return { form: fields['form'] ?? '' };
  };
  const closing = { zone: 'UTC', despite: 'known' };
  expect((await postForm(vera, `${run}/close`, { ...(await tokenOf(vera, run)), ...closing })).status).toBe(
    403,
  );
  expect(
    (await postForm(browser, `${run}/close`, { ...(await tokenOf(browser, run)), zone: 'Moon' })).status,
  ).toBe(409);
  const unsaid = { ...closing, despite: ' ' };
  const early = await postForm(browser, `${run}/close`, { ...(await tokenOf(browser, run)), ...unsaid });
  expect(early.text).toContain('Not closed: 1 break is not explained');
  expect(await all()).toEqual([]);
  await postForm(browser, `${run}/close`, { ...(await tokenOf(browser, run)), ...closing });
  const [closed] = await all();
  const path = `/console/books/periods/${closed?.close.seq}`;
  const own = await postForm(browser, `${path}/review`, await tokenOf(browser, path));
  expect([own.status, own.text]).toEqual([409, expect.stringContaining('another person reviews it')]);
  for (const action of ['review', 'reopen'])
    expect(
      (await postForm(vera, `${path}/${action}`, { ...(await tokenOf(vera, path)), reason: 'x' })).status,
    ).toBe(403);
  expect((await vera.get('/console/books/exports/csv?from=0&to=1')).status).toBe(403);
  await postForm(browser, `${path}/reopen`, { ...(await tokenOf(browser, path)), reason: 'a late refund' });
  expect((await all())[0]).toMatchObject({ review: undefined, reopening: { data: { operator: 'ada' } } });
  const again = await postForm(browser, `${path}/review`, await tokenOf(browser, path));
  expect(again.text).toContain('its close does not hold');
});
