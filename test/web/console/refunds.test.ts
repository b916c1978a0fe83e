import { privateKeyToAccount } from 'viem/accounts';
import { createWalletClient, http } from 'viem';
import { expect, test } from 'vitest';
import { devnetKeys } from '../../../src/devnet/accounts.ts';
import { payForOneJob } from '../../../src/devnet/client.ts';
import type { Caip2, Hex } from '../../../src/base/values/primitives.ts';
import { readConsoleEvents } from '../../../src/accounts/use-cases/operators.ts';
import { planBatch } from '../../../src/finance/use-cases/refunds/make-batch.ts';
import { findDue } from '../../../src/finance/use-cases/refunds/send-refund.ts';
import { listRefundsDue } from '../../../src/finance/use-cases/refunds/list-refunds-due.ts';
import { readStream } from '../../../src/ledger/store/streams.ts';
import { hasBrowser, useBrowser } from '../../support/browser.ts';
import { requeueCall } from '../../../src/calls/use-cases/requeue-call.ts';
import { browserOf, operatorTab, signInOperator } from '../../support/console.ts';
import { laneOn } from '../../support/credit.ts';
import { chainsAt } from '../../finance/use-cases/refunds/support.ts';
import { useChain } from '../../support/devnet.ts';
import { sealAll } from '../../support/log.ts';
import { transferToken } from '../../support/onchain.ts';
import { startJobsSite } from '../../support/jobs-site.ts';
import { formsIn, postForm, sendForm } from '../../support/site.ts';
import { startTour } from '../../support/tour.ts';
import { tamper } from '../../support/verify.ts';
import { eventually } from '../../support/wait.ts';
import { injectWallet, WalletError } from '../../support/wallet.ts';

const chain = useChain();
const chromium = useBrowser();
const network: Caip2 = 'eip155:84532';

/** A gateway with a payment whose call is a dead letter, and which is proven on the chain. */
async function startWithRefundDue() {
  const site = await startJobsSite(chain, () => ({ status: 422, body: 'no' }), { tables: '[console]\n' });
  const { database } = site;
  await payForOneJob({
    gatewayUrl: site.url,
    privateKey: devnetKeys.payer,
    serviceId: 1,
    jobIndex: 1,
    body: 'hello',
    onStep: () => {},
  }).catch(() => undefined);
  const due = await eventually(async () => {
    const { rows } = await listRefundsDue(database.pool, 0, 10);
    if (rows[0]?.block_number == null) throw new Error('not due, or not proven yet');
    return rows[0];
  });
  const path = `/console/books/refunds/${due.quote_digest}/${due.payment_nonce}`;
  const eventsOf = async (stream: string) =>
    (await readStream(database.pool, stream)).events.map(({ type, data }) => ({ type, data }));
  const steps = async () =>
    (await eventsOf(due.quote_digest)).map(({ type }) => type).filter((type) => type.startsWith('refund'));
  // a refund is offered once the payment is final
  const at = chainsAt(chain.rpcUrl);
  const of = { quoteDigest: due.quote_digest as Hex, paymentNonce: due.payment_nonce as Hex };
  await eventually(async () => expect(await findDue(database.pool, of, at)).toMatchObject({ kind: 'due' }));
  return { site, database, due, path, eventsOf, steps };
}

/** Sends what a page asks a wallet to send. */
function send({ to, data }: { readonly to: Hex; readonly data: Hex }): Promise<Hex> {
  const account = privateKeyToAccount(devnetKeys.spare);
  const wallet = createWalletClient({ account, transport: http(chain.rpcUrl) });
  return wallet.sendTransaction({ to, data, chain: null });
}

test.skipIf(!hasBrowser)(
  'a payment is refunded with a wallet once, under the operator’s name, and a page that is loaded again halfway continues and asks no wallet',
  async () => {
    const { site, database, due, path, eventsOf, steps } = await startWithRefundDue();
    const account = privateKeyToAccount(devnetKeys.spare);
    await chain.mint(account.address, BigInt(due.amount));
    const ada = await signInOperator(site, { role: 'finance' });
    const tab = await operatorTab(chromium, site, ada);
    const { page, context } = tab;
    const wallet = await injectWallet(context, { account, rpcUrl: chain.rpcUrl, chainId: 1 });
    const tour = startTour(tab);
    await tour.open('/console/books/refunds', 'console-refunds');
    await page.goto(`/console/payments/${due.quote_digest}`);
    await page.getByRole('link', { name: 'Refund the payer' }).click();
    const button = page.getByRole('button', { name: /^Send / });
    await button.waitFor();
    await tour.look('console-refund');

    // what its user refuses was not sent: it stays started, and this page may ask again
    wallet.otherwise.set('eth_sendTransaction', () => {
      throw new WalletError(4001, 'User rejected the request.');
    });
    await button.click();
    await page.getByText('You have refused the transfer in your wallet. Nothing was sent.').waitFor();
    expect(wallet.asked.indexOf('wallet_switchEthereumChain')).toBeLessThan(
      wallet.asked.indexOf('eth_sendTransaction'),
    );
    expect(await steps()).toEqual(['refund_started']);

    // the page is gone before the wallet has answered
    let sent: Hex | undefined;
    wallet.otherwise.set('eth_sendTransaction', async ([call]) => {
      sent = await send(call as { to: Hex; data: Hex });
      await page.goto('about:blank');
      return sent;
    });
    await button.click();
    await page.waitForURL('about:blank');
    await page.goto(path);
    await page.getByText('it is not known whether the wallet has sent it').waitFor();
    await page.getByRole('heading', { name: 'What the wallet sent' }).waitFor({ state: 'hidden' });
    expect(await button.count()).toBe(0);
    await tour.look('console-refund-unknown');
    expect(await planBatch(database.pool, { network, max: 10 }, chainsAt(chain.rpcUrl))).toMatchObject({
      refunds: [],
      leftOut: [{ quoteDigest: due.quote_digest, code: 'under_way', detail: 'ada' }],
    });
    await eventually(async () => {
      await page.getByLabel('Transaction').fill(sent ?? '');
      await Promise.all([
        page.waitForEvent('load'),
        page.getByRole('button', { name: 'Record the refund' }).click(),
      ]);
      expect(await page.getByText('The refund is recorded.').count()).toBe(1);
    });
    const [refunded] = (await eventsOf(due.quote_digest)).filter(({ type }) => type === 'refunded');
    expect(refunded?.data).toMatchObject({ transaction: sent, amount: due.amount, operator: 'ada' });
    expect(await steps()).toEqual(['refund_started', 'refunded']);
    const acted = await readConsoleEvents(database, undefined, 20);
    expect(acted.flatMap(({ data }) => ('action' in data ? [data.action] : []))).toContain('record_refund');
    await tour.look('console-refund-done');

    // nothing can be done about the dead letter but to give it up
    const olga = browserOf(site, await signInOperator(site, { name: 'olga', role: 'operator' }));
    const { text } = await olga.get(`/console/payments/${due.quote_digest}`);
    expect(text).toContain('The call cannot be requeued: its payment was refunded');
    expect(text).toMatch(/data-story>Paid .*, not delivered, and refunded on/s);
    const letters = formsIn((await olga.get('/console/calls/dead')).text).map(({ action }) => action);
    expect(letters).toContain('/console/calls/dead/give-up');
    expect(letters).not.toContain(`/console/calls/${due.call_id}/requeue`);
    await eventually(async () => expect((await olga.get('/console')).text).toContain('Nothing needs you'));
  },
);

test.skipIf(!hasBrowser)(
  'the page follows the transaction that the wallet names, and records the refund when it is final',
  async () => {
    const { site, due, path, eventsOf, steps } = await startWithRefundDue();
    const account = privateKeyToAccount(devnetKeys.spare);
    await chain.mint(account.address, BigInt(due.amount));
    const ada = await signInOperator(site, { role: 'finance' });
    const { page, context, complaints } = await operatorTab(chromium, site, ada);
    const wallet = await injectWallet(context, { account, rpcUrl: chain.rpcUrl });
    wallet.otherwise.set('eth_sendTransaction', ([call]) => send(call as { to: Hex; data: Hex }));
    await page.goto(path);
    await page.getByRole('button', { name: /^Send / }).click();
    await page.getByText('The refund is recorded.').waitFor();
    expect((await eventsOf(due.quote_digest)).at(-1)).toMatchObject({
      type: 'refunded',
      data: { refunded_to: due.payer, operator: 'ada' },
    });
    expect(await steps()).toEqual(['refund_started', 'refund_sent', 'refunded']);
    expect(complaints).toEqual([]);
  },
);

test('a refund whose events are not those that were sealed is not shown, the page says why, and none is begun', async () => {
  const { site, database, due, path, steps } = await startWithRefundDue();
  const ada = browserOf(site, await signInOperator(site, { role: 'finance' }));
  const begin =
    formsIn((await ada.get(path)).text).find(({ action }) => action.endsWith('/start'))?.fields ?? {};
  await sealAll(database);
  await tamper(database, {
    what: 'the time of a quote',
    words: /./,
    change: (owner) =>
      owner.query(
        `update tollbook.event set at = at - interval '1 millisecond'
          where version = 1 and stream = tollbook.stream_key($1)`,
        [due.quote_digest],
      ),
  });
  const { text } = await ada.get('/console/books/refunds');
  expect(text).toMatch(/The events \d+ are not those that the log has sealed: somebody has changed them/);
  expect(text).not.toContain(due.payment_nonce);
  const refused = await postForm(ada, `${path}/start`, begin, { accept: 'application/json' });
  expect(refused).toMatchObject({
    status: 409,
    text: expect.stringContaining('not all those that the log has sealed'),
  });
  expect(await steps()).toEqual([]);
});

test('a transfer to a payer to whom as much is due is recorded as a sweep only by who says that it is not the refund, which the form asks then alone', async () => {
  const { site, due } = await startWithRefundDue();
  const ada = browserOf(site, await signInOperator(site, { role: 'finance' }));
  const { payer, amount } = due;
  const sent = { key: devnetKeys.payTo, asset: chain.token, to: payer as Hex, amount: BigInt(amount) };
  const transaction = await transferToken(chain.rpcUrl, sent);
  const page = '/console/books/money';
  const record = (more: Record<string, string>) =>
    sendForm(ada, page, { what: 'sweep', network, transaction, ...more }, { action: `${page}/record` });
  expect((await ada.get(page)).text).not.toContain('no_refund');
  await eventually(async () => expect((await record({})).text).toContain('name="no_refund"'));
  const recorded = await record({ no_refund: 'yes' });
  expect(recorded.headers.get('location')).toBe(`${page}?notice=transfer_recorded`);
});

test('of two operators who begin at the same moment one is asked for money, and what has moved money is not dropped', async () => {
  const { site, due, path, steps } = await startWithRefundDue();
  const ada = browserOf(site, await signInOperator(site, { role: 'finance' }));
  const bob = browserOf(site, await signInOperator(site, { name: 'bob', role: 'finance' }));
  const tokenOf = async (browser: typeof ada) =>
    formsIn((await browser.get(path)).text).find(({ action }) => action.endsWith('/start'))?.fields ?? {};
  const [one, other] = [await tokenOf(ada), await tokenOf(bob)];
  const json = { accept: 'application/json' };
  const answers = await Promise.all([
    postForm(ada, `${path}/start`, one, json),
    postForm(bob, `${path}/start`, other, json),
  ]);
  expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 409]);
  const begun = answers.find(({ status }) => status === 200)?.json;
  expect(begun).toMatchObject({ network, call: { to: due.asset, value: '0' } });
  await chain.mint(privateKeyToAccount(devnetKeys.spare).address, BigInt(due.amount));
  const transaction = await send((begun as { call: { to: Hex; data: Hex } }).call);
  expect((await postForm(ada, `${path}/sent`, { ...one, transaction }, json)).status).toBe(200);
  const dropped = await postForm(bob, `${path}/drop`, { ...other, why: 'I did not see it' });
  expect([dropped.status, dropped.text]).toEqual([409, expect.stringContaining('it has moved money')]);
  expect(await steps()).toEqual(['refund_started', 'refund_sent']);
});

test('a dead letter whose refund is being sent is not queued again, and is once two operators have said that nothing was sent', async () => {
  const { site, database, due, path, steps } = await startWithRefundDue();
  const ada = browserOf(site, await signInOperator(site, { role: 'finance' }));
  const fieldsOf = async (end: string) =>
    formsIn((await ada.get(path)).text).find(({ action }) => action.endsWith(end))?.fields ?? {};
  const context = { ...database, lane: laneOn(database) };
  const callId = (await readStream(database.pool, due.quote_digest)).events.flatMap((event) =>
    event.type === 'dead_lettered' ? [event.data.call_id] : [],
  )[0];
  const started = await postForm(ada, `${path}/start`, await fieldsOf('/start'), {
    accept: 'application/json',
  });
  expect(started.status).toBe(200);
  expect(await requeueCall(context, callId ?? 0)).toEqual({ kind: 'refund_under_way' });
  const fields = { ...(await fieldsOf('/drop')), why: 'The wallet was closed' };
  expect((await postForm(ada, `${path}/drop`, fields)).status).toBe(303);
  expect(await steps()).toEqual(['refund_started', 'refund_not_sent']);
  const again = await postForm(ada, `${path}/drop`, fields);
  expect([again.status, again.text]).toEqual([
    409,
    expect.stringContaining('another operator has to say so too'),
  ]);
  expect(await requeueCall(context, callId ?? 0)).toEqual({ kind: 'refund_under_way' });
  const bob = browserOf(site, await signInOperator(site, { name: 'bob', role: 'finance' }));
  const form = formsIn((await bob.get(path)).text).find(({ action }) => action.endsWith('/drop'));
  expect((await postForm(bob, `${path}/drop`, { ...form?.fields, why: 'I asked ada' })).status).toBe(303);
  expect(await steps()).toEqual(['refund_started', 'refund_not_sent', 'refund_abandoned']);
  expect(await requeueCall(context, callId ?? 0)).toEqual({ kind: 'requeued' });
});
