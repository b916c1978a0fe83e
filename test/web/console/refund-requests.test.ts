import { expect, test } from 'vitest';
import { readConsoleEvents } from '../../../src/accounts/use-cases/operators.ts';
import type { Hex } from '../../../src/base/values/primitives.ts';
import { decideRequest } from '../../../src/finance/use-cases/refunds/decide-request.ts';
import { readStream } from '../../../src/ledger/store/streams.ts';
import { hasBrowser, useBrowser } from '../../support/browser.ts';
import { browserOf, operatorTab, signInOperator } from '../../support/console.ts';
import { laneOn } from '../../support/credit.ts';
import { useChain } from '../../support/devnet.ts';
import { hostile, startJobsSite } from '../../support/jobs-site.ts';
import { payFor } from '../../support/payer.ts';
import { askForRefund } from '../../support/refund-request.ts';
import { formsIn, postForm, sendForm } from '../../support/site.ts';
import { startTour } from '../../support/tour.ts';
import { eventually } from '../../support/wait.ts';

const chain = useChain();
const chromium = useBrowser();
const reason = `It never came ${hostile}`;

/** A gateway with calls whose first attempt has failed, and whose payers ask for their money. */
async function startWithRequests(count: number) {
  const site = await startJobsSite(chain, () => ({ status: 500, body: 'later' }), {
    tables: '[console]\n',
    constants: { delivery: { backoffBaseMs: 1_800_000, backoffCapMs: 3_600_000 } },
  });
  const eventsOf = async (digest: string) => (await readStream(site.database.pool, digest)).events;
  const digests: Hex[] = [];
  const tokens: string[] = [];
  for (let n = 0; n < count; n++) {
    const { json } = await payFor(site, '/x402/jobs/1/1', 'hello');
    const digest = json.quote_digest as Hex;
    await eventually(async () =>
      expect((await eventsOf(digest)).map(({ type }) => type)).toContain('delivery_failed'),
    );
    expect((await askForRefund(site, digest, reason)).status).toBe(200);
    digests.push(digest);
    tokens.push(json.receipt_token as string);
  }
  return { site, digests, tokens, eventsOf };
}

test('an operator reads on the overview and the payment what its payer wrote, as text, and grants or declines it', async () => {
  const { site, digests, eventsOf } = await startWithRequests(2);
  const [first, second] = digests as [Hex, Hex];
  const ada = browserOf(site, await signInOperator(site, { role: 'finance' }));
  await eventually(async () =>
    expect((await ada.get('/console')).text.match(/It never came/g)).toHaveLength(2),
  );
  const page = `/console/payments/${first}`;
  for (const path of ['/console', page]) {
    const { text } = await ada.get(path);
    expect(text).not.toContain('<img src=x');
    expect(text).toContain('&#60;img src=x');
    expect(text).not.toContain('\u202e');
  }
  const formOf = async (browser: typeof ada, digest: string, end: string) =>
    formsIn((await browser.get(`/console/payments/${digest}`)).text).find(({ action }) =>
      action.endsWith(end),
    );
  expect((await ada.get(page)).text).toMatch(
    /data-story>.*: 1 attempt failed \(status 500\), and the next is on .*The payer asks for the money back.*Next attempt</s,
  );
  const grant = await formOf(ada, first, '/grant-refund');
  const viewer = browserOf(site, await signInOperator(site, { name: 'vic', role: 'viewer' }));
  expect(await formOf(viewer, first, '/grant-refund')).toBeUndefined();
  expect((await postForm(viewer, `${page}/grant-refund`, grant!.fields)).status).toBe(403);
  expect((await postForm(ada, `${page}/grant-refund`, grant!.fields)).status).toBe(303);
  const again = await postForm(ada, `${page}/grant-refund`, grant!.fields);
  expect([again.status, again.text]).toEqual([
    409,
    expect.stringContaining('no request of its payer waits for a decision'),
  ]);
  const decline = await formOf(ada, second, '/decline-refund');
  const to = `/console/payments/${second}/decline-refund`;
  const mistaken = await postForm(ada, to, { ...decline!.fields, why: 'ask x@example.org' });
  expect([mistaken.status, mistaken.text]).toEqual([409, expect.stringContaining('kept for ever')]);
  expect((await postForm(ada, to, { ...decline!.fields, why: 'It is tried again' })).status).toBe(303);
  expect((await eventsOf(first)).slice(-3).map(({ type }) => type)).toEqual([
    'dead_lettered',
    'operator_discarded',
    'refund_request_granted',
  ]);
  expect((await eventsOf(second)).at(-1)).toMatchObject({
    type: 'refund_request_declined',
    data: { why: 'It is tried again', operator: 'ada' },
  });
  const { text: granted } = await ada.get(page);
  expect(granted).toContain('It was granted: the refund is due.');
  expect(granted).toMatch(/Refund the payer/);
  await eventually(async () =>
    expect((await ada.get('/console/books/refunds')).text).toMatch(/the payer: <q dir="auto">It never came/),
  );
  const acted = (await readConsoleEvents(site.database, undefined, 10)).flatMap((event) =>
    event.type === 'operator_acted' ? [[event.data.action, event.data.operator]] : [],
  );
  expect(acted).toContainEqual(['grant_refund', 'ada']);
  expect(acted).toContainEqual(['decline_refund', 'ada']);
});

test('a receipt says first what became of a request for its money, shows the words of both only to who has its token, and asks for no token before there is a result', async () => {
  const { site, digests, tokens } = await startWithRequests(1);
  const path = `/jobs/receipts/${digests[0]}`;
  const [payer, another] = [site.browser(), site.browser('203.0.113.9')];
  const form = { action: '/jobs/receipts' };
  expect((await another.get(path)).text).not.toContain('name="token"');
  await sendForm(payer, '/jobs/receipts', { digest: digests[0]!, token: tokens[0]! }, form);
  const headOf = async (browser: typeof payer) => /<h1>.*?<\/p>/s.exec((await browser.get(path)).text)?.[0];
  for (const browser of [payer, another])
    expect(await headOf(browser)).toMatch(
      /Refund asked for, not decided yet.*One attempt failed, and the next is on /s,
    );
  const noticeFor = async (browser: typeof payer) =>
    /<b>(?:You|The payer) asked for (?:your|the) money back<\/b>.*?<\/div>/s.exec(
      (await browser.get(path)).text,
    )?.[0];
  expect(await noticeFor(payer)).toMatch(/You asked.*It never came .*&#60;img.*has not decided yet/s);
  expect(await noticeFor(another)).toMatch(/The payer asked.*has not decided yet/s);
  const ada = { quoteDigest: digests[0]!, operator: 'ada' };
  await decideRequest(
    { ...site.database, lane: laneOn(site.database) },
    { ...ada, kind: 'decline', why: 'It is tried again' },
  );
  expect(await noticeFor(payer)).toMatch(/The operator declined.*It is tried again/s);
  expect(await headOf(another)).toMatch(/Refund declined.*One attempt failed/s);
  const shown = await noticeFor(another);
  expect(shown).toContain('The operator declined');
  expect(shown).not.toMatch(/It never came|tried again/);
});

test.skipIf(!hasBrowser)('a refund is granted on the page of its payment', async () => {
  const { site, digests } = await startWithRequests(1);
  const tab = await operatorTab(chromium, site, await signInOperator(site, { role: 'finance' }));
  const { page } = tab;
  const tour = startTour(tab);
  await tour.open(`/jobs/receipts/${digests[0]}`, 'jobs-receipt-refund-requested');
  await tour.open(`/console/payments/${digests[0]}`, 'console-refund-request');
  await page.getByRole('button', { name: 'Grant the refund' }).click();
  await page.getByRole('button', { name: /^Press again/ }).click();
  await page.getByText('The refund is granted: it is due.').waitFor();
  expect(await page.getByRole('link', { name: 'Refund the payer' }).count()).toBe(1);
  await tour.open(`/jobs/receipts/${digests[0]}`, 'jobs-receipt-refund-granted');
});
