import { expect, test } from 'vitest';
import { readStream } from '../../../src/ledger/store/streams.ts';
import { hasBrowser, useBrowser } from '../../support/browser.ts';
import { browserOf, operatorTab, signInOperator } from '../../support/console.ts';
import { type TestChain, useChain } from '../../support/devnet.ts';
import { startFacilitatorProxy } from '../../support/facilitator-proxy.ts';
import { echo, type JobsSite, startJobsSite } from '../../support/jobs-site.ts';
import { landPayment } from '../../support/onchain.ts';
import { header, payer, quoteAndSign } from '../../support/payer.ts';
import { startRpcProxy } from '../../support/rpc-proxy.ts';
import { formsIn, sendForm } from '../../support/site.ts';
import { startTour } from '../../support/tour.ts';
import { eventually } from '../../support/wait.ts';
import { payForOneJob } from '../../../src/devnet/client.ts';
import { devnetKeys } from '../../../src/devnet/accounts.ts';
import { listLatestPayments } from '../../../src/ledger/store/payments.ts';

const chromium = useBrowser();
const chain = useChain();

/** A gateway whose runner refuses one job, with a payment whose call is a dead letter and whose events are sealed. */
async function startWithDeadLetter() {
  const site = await startJobsSite(
    chain,
    () => ({
      status: 422,
      headers: { 'content-type': 'text/plain' },
      body: Buffer.from('the model said <b>no</b>'),
    }),
    { tables: '[console]\n' },
  );
  await payForOneJob({
    gatewayUrl: site.url,
    privateKey: devnetKeys.payer,
    serviceId: 1,
    jobIndex: 1,
    body: 'hello',
    onStep: () => {},
  }).catch(() => undefined);
  const payment = await eventually(async () => {
    const { rows } = await listLatestPayments(site.database.pool, {}, undefined, 1);
    if (rows[0]?.state !== 'dead_lettered') throw new Error(`${rows[0]?.state}`);
    return rows[0];
  });
  return { site, payment };
}

async function lastEvents({ database }: JobsSite, stream: string) {
  return (await readStream(database.pool, stream)).events.map(({ type, data }) => ({ type, data }));
}

test.skipIf(!hasBrowser)(
  'an operator finds a payment by a part of its transaction, checks its proof in the browser, and requeues its dead letter under their name',
  async () => {
    const { site, payment } = await startWithDeadLetter();
    const ada = await signInOperator(site, { role: 'operator' });
    const tab = await operatorTab(chromium, site, ada);
    const { page } = tab;
    const tour = startTour(tab);
    await tour.open('/console/payments', 'console-payments');
    await page.keyboard.press('/');
    await page.keyboard.type((payment.transaction ?? '').slice(0, 12));
    await page.keyboard.press('Enter');
    await page.locator('tbody a').first().click();
    await eventually(async () => {
      await page.reload();
      expect(await page.locator('[data-event]:not([data-sealed=yes])').count()).toBe(0);
    });
    await page.getByText('events were proven in this browser').waitFor();
    expect(await page.getByText('wait for the next head').count()).toBe(0);
    await page.getByText('The head is signed by the log’s key').waitFor();
    await page.getByText('the model said <b>no</b>').waitFor();
    await page
      .getByText(
        /^Paid 0.000001 USDC on Base Sepolia on .+, not delivered: a refund of 0.000001 USDC is due\.$/,
      )
      .waitFor();
    // what events say is written for people: no smallest units, no seconds since 1970, no numbers of jobs alone
    const said = (await page.locator('.timeline dl').allTextContents()).join(' ').replaceAll(/\s+/g, ' ');
    expect(said).toMatch(/amount 0\.000001 USDC/);
    expect(said).toMatch(/options 0\.000001 USDC on Base Sepolia/);
    expect(said).toMatch(/job Echo 1\/1/);
    expect(said).not.toMatch(/price wei|eip155|\b1[78]\d{8}\b/);
    await tour.look('console-payment');
    await page.getByRole('button', { name: 'Requeue the call' }).click();
    await page.getByText('The call is in the queue again').waitFor();
    expect(await lastEvents(site, payment.quote_digest)).toContainEqual({
      type: 'operator_requeued',
      data: { call_id: payment.call_id, operator: 'ada' },
    });

    // what somebody has changed on its way to the page
    const tamper = async (what: RegExp, by: string): Promise<void> => {
      const where = `**/console/payments/${payment.quote_digest}`;
      await page.unroute(where);
      await page.route(where, async (route) => {
        const response = await route.fetch();
        await route.fulfill({ response, body: (await response.text()).replace(what, by) });
      });
      await page.goto(`/console/payments/${payment.quote_digest}`);
    };
    const alert = page.getByRole('alert');
    await tamper(/(data-checkpoint>[^\n]*\n\d+)/, '$10');
    await alert.filter({ hasText: 'The head is NOT signed by the log’s key' }).waitFor();
    await tamper(/(data-leaf>[^<]*settlement_started)/, '$1 ');
    await alert
      .filter({ hasText: /1 of \d+ events do not lead to the signed head.*The head is signed by/ })
      .waitFor();
    await page.getByText('NOT the leaf of the log').first().waitFor({ state: 'attached' });
  },
);

test('a viewer sees a payment without its actions', async () => {
  const { site, payment } = await startWithDeadLetter();
  const viewer = browserOf(site, await signInOperator(site, { name: 'vera', role: 'viewer' }));
  const path = `/console/payments/${payment.quote_digest}`;
  const { text } = await viewer.get(path);
  expect(text).toContain('The runner’s words');
  expect(formsIn(text).map(({ action }) => action)).toEqual(['/console/sign-out']);
});

test('a payment is found by quote, call, payer and the beginning of each; what is shown can be kept as a file', async () => {
  const { site, payment } = await startWithDeadLetter();
  const ada = browserOf(site, await signInOperator(site));
  const page = `/console/payments/${payment.quote_digest}`;
  const search = (q: string) => ada.get(`/console/payments?q=${encodeURIComponent(q)}`);
  for (const whole of [
    payment.quote_digest,
    String(payment.call_id),
    payment.quote_digest.toUpperCase().replace('0X', '0x'),
  ])
    expect((await search(whole)).headers.get('location')).toBe(page);
  for (const part of [
    payment.payer,
    payment.payer.slice(0, 9),
    payment.quote_digest.slice(0, 11),
    payment.transaction?.slice(2, 9) ?? '',
    // from a middle and the end, with an even and an odd number of digits
    payment.transaction?.slice(21, 29) ?? '',
    payment.transaction?.slice(24, 31) ?? '',
    payment.transaction?.slice(-11) ?? '',
  ])
    expect([part, (await search(part)).text.includes(page)]).toEqual([part, true]);
  expect((await search('0xdeadbeefdeadbeef')).text).toContain('No such payment');
  expect((await ada.get('/console/payments?state=completed')).text).not.toContain(page);
  const csv = (await ada.get('/console/payments.csv')).text.split('\r\n');
  expect(csv).toHaveLength(3);
  expect(csv[1]).toContain(payment.quote_digest);
});

test('an operator gives a call up with a reason, under their name', async () => {
  const { site, payment } = await startWithDeadLetter();
  const ada = browserOf(site, await signInOperator(site, { role: 'operator' }));
  const path = `/console/payments/${payment.quote_digest}`;
  const action = `${path}/give-up`;
  const refused = await sendForm(ada, path, { why: '' }, { action });
  expect([refused.status, refused.text]).toEqual([409, expect.stringContaining('Nothing was changed')]);
  const done = await sendForm(ada, path, { why: 'the model is gone' }, { action });
  expect(done.headers.get('location')).toBe(`${path}?notice=call_given_up`);
  expect((await lastEvents(site, payment.quote_digest)).at(-1)).toEqual({
    type: 'operator_discarded',
    data: { call_id: payment.call_id, why: 'the model is gone', operator: 'ada' },
  });
});

test('an operator resolves an unknown settlement by its transaction; one that does not carry it is refused', async () => {
  const rpc = await startRpcProxy(chain.rpcUrl);
  const proxy = await startFacilitatorProxy(chain.facilitatorUrl);
  const behind = { ...chain, rpcUrl: rpc.url, facilitatorUrl: proxy.url } as TestChain;
  const site = await startJobsSite(behind, echo, { tables: '[console]\n' });
  const paid = await quoteAndSign(site, '/x402/jobs/1/1', 'x');
  proxy.faults.settle = 'server_error';
  // what the gateway would find by itself
  rpc.lie = ({ method, params }) =>
    method === 'eth_call' || JSON.stringify(params).includes('fromBlock')
      ? { error: { code: -32_000, message: 'not now' } }
      : undefined;
  const sent = await site.post('/x402/jobs/1/1', { body: 'x', headers: header(paid) });
  expect([sent.status, sent.json.code]).toEqual([503, 'settlement_pending']);
  const transaction = await landPayment(chain.rpcUrl, paid);
  const ada = browserOf(site, await signInOperator(site, { role: 'operator' }));
  const digest = paid.accepted.extra['quoteDigest'] ?? '';
  const path = `/console/payments/${digest}`;
  const resolve = (typed: Record<string, string>) =>
    sendForm(ada, path, { evidence: 'seen in the explorer', ...typed }, { action: `${path}/resolve` });
  expect((await resolve({ result: 'unpaid', transaction: '' })).text).toContain('can still move');
  expect((await resolve({ result: 'paid', transaction: '0x12' })).status).toBe(409);
  const done = await resolve({ result: 'paid', transaction });
  expect(done.headers.get('location')).toBe(`${path}?notice=settlement_resolved`);
  const events = await lastEvents(site, digest);
  expect(events.find(({ type }) => type === 'operator_settlement_resolved')?.data).toMatchObject({
    operator: 'ada',
    evidence: 'seen in the explorer',
  });
  expect(events.map(({ type }) => type)).toContain('payment_settled');
});

test('a payment is found by its payer and their payment id', async () => {
  const site = await startJobsSite(chain, echo, { tables: '[console]\n' });
  const paid = await quoteAndSign(site, '/x402/jobs/1/1', 'x');
  const id = 'pay_7d5d747be160e280504c099d984bcfe0';
  const named = { ...paid, extensions: { 'payment-identifier': { info: { required: false, id } } } };
  expect((await site.post('/x402/jobs/1/1', { body: 'x', headers: header(named) })).status).toBe(202);
  const ada = browserOf(site, await signInOperator(site));
  const found = await ada.get(`/console/payments?q=${encodeURIComponent(`${payer.address} ${id}`)}`);
  const page = `/console/payments/${paid.accepted.extra['quoteDigest']}`;
  expect(found.headers.get('location')).toBe(page);
  await eventually(async () =>
    expect((await ada.get(page)).text).toMatch(/data-story>Paid .*delivered after \d[\d.]* m?s\./s),
  );
});
