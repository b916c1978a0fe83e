import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { Bookkeeper } from '../../../src/audit/rules/bookkeeping/bookkeeper.ts';
import { projectToHead } from '../../../src/audit/use-cases/projections/project.ts';
import { verifyDatabase } from '../../../src/audit/use-cases/verify/verify-database.ts';
import { Balances } from '../../../src/base/values/entry.ts';
import { devnetKeys } from '../../../src/devnet/accounts.ts';
import { approvePermit2 } from '../../../src/devnet/token.ts';
import { closePeriod } from '../../../src/finance/use-cases/periods/close-period.ts';
import { ledgerInDatabase } from '../../../src/finance/use-cases/reconcile/ledger-source.ts';
import { reconcile } from '../../../src/finance/use-cases/reconcile/reconcile.ts';
import { listRefundsDue } from '../../../src/finance/use-cases/refunds/list-refunds-due.ts';
import { recordRefund } from '../../../src/finance/use-cases/refunds/record-refund.ts';
import type { RecordedEvent } from '../../../src/ledger/rules/event.ts';
import { createScanner } from '../../../src/payments/peers/chain/transfer-scan.ts';
import type { Hex } from '../../../src/base/values/primitives.ts';
import { startApi, startRouteGateway, weather } from '../../jobs/http/routes/support.ts';
import { backUp } from '../../support/backup.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';
import { useChain } from '../../support/devnet.ts';
import { payTo } from '../../support/gateway.ts';
import { expectIndependent, verifyIndependently } from '../../support/independent.ts';
import { expectSound } from '../../support/invariants.ts';
import { sealAll, testVerifier } from '../../support/log.ts';
import { transferToken } from '../../support/onchain.ts';
import { header, offerOf, signOffer } from '../../support/payer.ts';
import { euroByPermit2, signPermit } from '../../support/permit2.ts';
import { endOfPeriod, exceptionsIn, exportSealed, itemsOf } from '../../support/reconcile.ts';
import { moveUpto, signUpto, type UptoPayment } from '../../support/upto.ts';
import { soon } from '../../payments/use-cases/settlement-support.ts';
import { recoverIn } from './recovery/support.ts';
import { chainsAt, network, openLedger, payerAddress } from './refunds/support.ts';

const chain = useChain();
beforeAll(async () => {
  for (const token of [chain.token, chain.secondToken])
    await approvePermit2(chain.chain, token, devnetKeys.payer);
});

const price = 10_000n;
const used = 3_000n;
const change = (text: string) =>
  euroByPermit2(text).replace('symbol = "EURC"', 'symbol = "EURC"\npeg = "USD"');

/** A gateway that sells one path for exactly a cent, in two tokens by their own methods, and one for at most a cent by upto. */
async function start(database: TestDatabase) {
  const api = await startApi(({ url }, response) => {
    response.setHeader('x-price', '0.003 USD').end(`answer of ${url}`);
  });
  const metered = weather(api.url, 'charge_header = "x-price"').replace('job_index = 0', 'job_index = 1');
  const routes = `${weather(api.url)}${metered.replace('/weather/', '/history/')}`;
  const gateway = await startRouteGateway({ chain, upstream: api.url, database, routes, change });
  const { paid } = gateway;
  const offered = async (path: string) => offerOf(await paid.get(path));
  const pay = async (path: string, payment: unknown) =>
    expect(await paid.get(path, header(payment))).toMatchObject({ status: 200, text: `answer of ${path}` });
  const payExactly = async () => {
    await pay('/weather/paris', await signOffer(await offered('/weather/paris')));
    await pay('/weather/paris', await signPermit(await offered('/weather/paris')));
  };
  const signed = async () => signUpto(await offered('/history/paris'));
  const payUsed = async () => pay('/history/paris', await signed());
  /** Its facilitator moves an atom more than its answer will use. */
  const payTooMuch = async (): Promise<UptoPayment> => {
    const payment = await signed();
    api.answering = async (_, response) => {
      await moveUpto(chain.rpcUrl, payment, used + 1n);
      response.setHeader('x-price', '0.003 USD').end('never given');
    };
    expect((await paid.get('/history/paris', header(payment))).status).toBe(503);
    const digest = payment.accepted.extra['quoteDigest'];
    await soon(database, async () =>
      expect((await gateway.get(`/x402/receipts/${digest}`)).json).toMatchObject({ state: 'settled' }),
    );
    return payment;
  };
  return { gateway, payExactly, payUsed, payTooMuch };
}

/** The books of all events: what each account has of each commodity. */
function booksOf(events: readonly RecordedEvent[]) {
  const keeper = new Bookkeeper(() => true);
  const balances = new Balances();
  for (const event of events) for (const move of keeper.post(event)?.moves ?? []) balances.post(move);
  const held = balances.list();
  /** The atoms of all accounts below one, in the dollar token. */
  return (root: string): bigint =>
    held.reduce(
      (sum, { account, atoms, commodity }) =>
        account.startsWith(root) && JSON.stringify(commodity).includes('USDC') ? sum + atoms : sum,
      0n,
    );
}

// the first one: those of other tests on this chain would be found as lost as well
test('payments by three methods that a restored database has lost are found on the chain with what was moved, and are to be refunded', async () => {
  const database = await createDatabase();
  const kept = await start(database);
  await kept.payExactly();
  await kept.gateway.stop();
  await endOfPeriod(chain.rpcUrl);
  await sealAll(database);
  const restore = await backUp(database);
  const lost = await start(database);
  await lost.payExactly();
  await lost.payUsed();
  await lost.gateway.stop();
  await endOfPeriod(chain.rpcUrl);
  await restore();
  await recoverIn(openLedger(database), { database, chain, change });
  const recovered = (await expectSound(database)).flatMap((event) =>
    event.type === 'payment_recovered' ? [event.data] : [],
  );
  expect(
    recovered
      .map(({ transfer_method, symbol, amount }) => `${transfer_method} ${symbol} ${amount}`)
      .toSorted(),
  ).toEqual([`eip3009 USDC ${price}`, `permit2 EURC ${price}`, `upto USDC ${used}`]);
  await projectToHead(openLedger(database));
  const { rows } = await listRefundsDue(database.pool, 0, 10);
  expect(rows.map(({ amount, why }) => `${why} ${amount}`).toSorted()).toEqual([
    `recovered ${price}`,
    `recovered ${price}`,
    `recovered ${used}`,
  ]);
  const { file } = await exportSealed(database);
  expectIndependent(await verifyIndependently(file, []), true);
});

test('payments by three methods are reconciled, what a facilitator moved too much is refunded as a whole, and the period is closed', async () => {
  const database = await createDatabase();
  const fromMs = Date.now() - 2_000;
  const before = await chain.balance(payTo);
  const { payExactly, payUsed, payTooMuch, gateway } = await start(database);
  await payExactly();
  await payUsed();
  const withheld = await payTooMuch();
  await gateway.stop();
  const ledger = openLedger(database);
  const scanner = createScanner({ network, chainId: 84_532, rpcUrl: chain.rpcUrl, timeoutMs: 30_000 });
  onTestFinished(() => scanner.close());

  const reconciled = async () => {
    const period = { fromMs, toMs: Date.parse(await endOfPeriod(chain.rpcUrl)) };
    await sealAll(database);
    const source = await ledgerInDatabase(database.pool, testVerifier, undefined);
    const chains = new Map([[network, scanner]] as const);
    const asked = { period, source, chains, accepted: [], pinned: new Map(), twice: true };
    return { period, report: await reconcile({ ...asked, resumeFile: undefined, onProgress() {} }) };
  };
  const { report: first } = await reconciled();
  expect(first).toMatchObject({ result: 'open_items', breaks: 0 });
  expect(first.classes.matched?.count).toBe(3);
  const quoteDigest = withheld.accepted.extra['quoteDigest'] as Hex;
  expect(itemsOf(first, 'refund_due')).toMatchObject([
    { quote_digest: quoteDigest, ledger_amount: String(used + 1n) },
  ]);
  expect(booksOf(await expectSound(database))('Assets:')).toBe((await chain.balance(payTo)) - before);

  await projectToHead(ledger);
  // a payment without a call may be about to get one: it is listed after a minute
  await database.moveClock(61);
  const { rows: due } = await listRefundsDue(database.pool, 0, 10);
  await database.moveClock(0);
  expect(due).toMatchObject([
    { quote_digest: quoteDigest, payer: payerAddress, amount: String(used + 1n), why: 'never_enqueued' },
  ]);
  const transaction = await transferToken(chain.rpcUrl, {
    key: devnetKeys.payTo,
    asset: chain.token,
    to: payerAddress,
    amount: used + 1n,
  });
  await endOfPeriod(chain.rpcUrl);
  const order = { quoteDigest, transaction, paymentNonce: undefined, operator: 'ada', isGoodwill: false };
  const chains = chainsAt(chain.rpcUrl);
  expect(await recordRefund(ledger, { ...order, amount: price }, chains)).toMatchObject({
    kind: 'refused',
    code: 'too_much',
    detail: `${price} atoms, and ${used + 1n} of ${used + 1n} are left`,
  });
  expect(await recordRefund(ledger, order, chains)).toMatchObject({ kind: 'recorded', remaining: 0n });

  const { period, report: second } = await reconciled();
  expect(exceptionsIn(second)).toEqual([`refund ${quoteDigest}`]);
  expect(itemsOf(second, 'refund_due')).toEqual([]);
  const balanceOf = booksOf(await expectSound(database));
  expect(balanceOf('Liabilities:')).toBe(0n);
  expect(balanceOf('Income:')).toBe(-(price + used));
  expect(balanceOf('Assets:')).toBe((await chain.balance(payTo)) - before);
  expect(
    await closePeriod(ledger, { period, report: second, operator: 'ada', despite: undefined }),
  ).toMatchObject({
    kind: 'closed',
  });
  await sealAll(database);
  expect((await verifyDatabase(database.pool, [], testVerifier)).isSound).toBe(true);
  const { file, checkpoint } = await exportSealed(database);
  expectIndependent(await verifyIndependently(file, [checkpoint]), true);
});
