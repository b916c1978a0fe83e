import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { recordRefund } from '../../../../src/finance/use-cases/refunds/record-refund.ts';
import { recordSweep } from '../../../../src/finance/use-cases/refunds/record-sweep.ts';
import { reconcile } from '../../../../src/finance/use-cases/reconcile/reconcile.ts';
import { ledgerInDatabase } from '../../../../src/finance/use-cases/reconcile/ledger-source.ts';
import { devnetAddress, devnetKeys } from '../../../../src/devnet/accounts.ts';
import type { Caip2, Hex } from '../../../../src/base/values/primitives.ts';
import type { AccountJson, ReportJson } from '../../../../src/finance/rules/reconcile/report.ts';
import { createChain } from '../../../../src/payments/peers/chain/chain.ts';
import { createScanner } from '../../../../src/payments/peers/chain/transfer-scan.ts';
import { openDatabase, writerRole } from '../../../../src/ledger/store/database.ts';
import { openLane } from '../../../../src/ledger/store/lane.ts';
import { createDatabase } from '../../../support/database.ts';
import type { TestChain } from '../../../support/devnet.ts';
import { startFacilitatorProxy } from '../../../support/facilitator-proxy.ts';
import { payTo, startTestGateway, type TestGateway } from '../../../support/gateway.ts';
import { allEvents } from '../../../support/invariants.ts';
import { testSigner, testVerifier } from '../../../support/log.ts';
import { header, quoteAndSign } from '../../../support/payer.ts';
import { temporaryFolder, tollbook, withoutProgress } from '../../../support/program.ts';
import { exceptionsIn, exportSealed } from '../../../support/reconcile.ts';
import { startRpcProxy } from '../../../support/rpc-proxy.ts';
import { startTestRunner } from '../../../support/runner.ts';
import { askNode, sendTokens } from '../../../support/tokens.ts';
import { eventually } from '../../../support/wait.ts';

const job = '/x402/jobs/1/0';
const network: Caip2 = 'eip155:84532';
const price = 3_264_000n;
const atOnce = 32;
const nowhere: Hex = `0x${'a'.repeat(64)}`;
const vault = devnetAddress('thirdSpare');

/** Pays for a job; the quote's digest. */
async function buy(gateway: TestGateway, body: string, option: number): Promise<string> {
  const payment = await quoteAndSign(gateway, job, body, { option });
  const { status, text } = await gateway.post(job, { body, headers: header(payment) });
  expect({ status, text }).toMatchObject({ status: 202 });
  return payment.accepted.extra['quoteDigest'] ?? '';
}

async function buyAll(gateway: TestGateway, bodies: readonly string[]): Promise<string[]> {
  const digests: string[] = [];
  const left = bodies.entries();
  const work = async (): Promise<void> => {
    for (const [n, body] of left) digests[n] = await buy(gateway, body, n % 2);
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  return digests;
}

async function blockOf(chain: TestChain, tag: string): Promise<{ number: string; timestamp: string }> {
  return (await askNode(chain.rpcUrl, 'eth_getBlockByNumber', [tag, false])) as never;
}

/** Waits until all that is in a block now is final. */
async function untilFinal(chain: TestChain): Promise<bigint> {
  const { number } = await blockOf(chain, 'latest');
  return eventually(async () => {
    const final = BigInt((await blockOf(chain, 'finalized')).number);
    expect(final >= BigInt(number)).toBe(true);
    return final;
  });
}

/** Makes a month of so many payments over two tokens, and reconciles it: what was planted in it, and what was found, each in its class. */
export async function reconcileMonth(
  chain: TestChain,
  payments: number,
): Promise<{ readonly planted: readonly string[]; readonly found: readonly string[] }> {
  const database = await createDatabase();
  const from = new Date(Date.now() - 2_000).toISOString();
  const runner = await startTestRunner(({ body }) => ({
    status: body.toString().startsWith('dead') ? 400 : 200,
  }));
  const proxy = await startFacilitatorProxy(chain.facilitatorUrl);
  const setup = { database, chain, runnerUrl: runner.url };

  // all but two are honest, and two of these end as dead letters
  const honest = await startTestGateway({ ...setup, top: 'confirm = "before"' });
  const completed = Array.from({ length: payments - 4 }, (_, n) => `body ${n}`);
  const bodies = [...completed, 'dead and due', 'dead and refunded'];
  const digests = await buyAll(honest, bodies);
  const [due = '', refunded = ''] = digests.slice(-2);
  await eventually(async () => {
    const { rows } = await database.pool.query('select count(*) from tollbook.call');
    expect(rows).toEqual([{ count: 2 }]);
  });
  await honest.stop();

  // money that bypasses the gateway: in, back and out
  const [outside = nowhere] = await sendTokens(chain.rpcUrl, devnetKeys.payer, chain.token, [
    { to: payTo, atoms: 77n },
  ]);
  const [back = nowhere, swept = nowhere] = await sendTokens(
    chain.rpcUrl,
    devnetKeys.payTo,
    chain.secondToken,
    [
      { to: devnetAddress('payer'), atoms: price },
      { to: vault, atoms: 10n * price },
    ],
  );
  await untilFinal(chain);
  const chains = new Map([
    [network, createChain({ chainId: 84_532, rpcUrl: chain.rpcUrl, timeoutMs: 30_000 })],
  ]);
  const lane = openLane({ url: database.url, role: writerRole });
  const ledger = { pool: database.pool, db: openDatabase(database.pool), lane };
  onTestFinished(async () => {
    for (const one of chains.values()) await one.close();
  });
  const refund = {
    quoteDigest: refunded as Hex,
    paymentNonce: undefined,
    transaction: back,
    operator: 'ada',
    isGoodwill: false,
  };
  expect(await recordRefund(ledger, refund, chains)).toMatchObject({ kind: 'recorded' });
  const sweep = { network, transaction: swept, operator: 'ada', isNoRefund: false };
  expect(await recordSweep(ledger, sweep, chains, [])).toMatchObject({ kind: 'recorded' });
  await lane.close();

  // a lie, and a payment whose block is never final
  const gullible = await startTestGateway({ ...setup, facilitatorUrl: proxy.url, top: 'confirm = "never"' });
  proxy.faults.settle = { answer: { success: true, transaction: nowhere, network } };
  const lied = await buy(gullible, 'a lie', 1);
  proxy.faults.settle = 'pass';
  const final = await untilFinal(chain);
  const unfinal = await buy(gullible, 'never final', 0);
  await gullible.stop();
  const rpc = await startRpcProxy(chain.rpcUrl);
  const finalBlock = await blockOf(chain, `0x${final.toString(16)}`);
  rpc.lie = ({ params }) => (params[0] === 'finalized' ? { result: finalBlock } : undefined);
  const to = new Date(Date.now()).toISOString();
  const events = await allEvents(database.db);
  expect(events.filter(({ type }) => type === 'payment_settled')).toHaveLength(payments);

  const planted = [
    `missing_on_chain ${lied}`,
    `not_final ${unfinal}`,
    `on_chain_without_event ${outside}`,
    `refund ${refunded}`,
    `refund_due ${due}`,
    `sweep ${swept}`,
  ];
  const { file, checkpoint } = await exportSealed(database);
  const scanner = createScanner({ network, chainId: 84_532, rpcUrl: rpc.url, timeoutMs: 30_000 });
  onTestFinished(() => scanner.close());
  const report = await reconcile({
    period: { fromMs: Date.parse(from), toMs: Date.parse(to) },
    source: await ledgerInDatabase(database.pool, testVerifier, undefined),
    chains: new Map([[network, scanner]]),
    accepted: [],
    pinned: new Map(),
    twice: false,
    resumeFile: undefined,
    onProgress: () => {},
  });
  expect(report).toMatchObject({ result: 'breaks', breaks: 2, open_items: 2, ledger: { fault: null } });
  expect(report.classes.matched?.count).toBe(payments - 3);
  expectBalanced(report);
  // beyond the ledger the chain has the stray 77 atoms, and lacks what the lie was about
  expect(beyondIn(report)).toEqual({ [chain.token]: 77n, [chain.secondToken]: -price });

  // the same from a copy in which one amount was edited: that too is found, and nothing else
  const [edited = ''] = digests;
  const lines = readFileSync(file, 'utf8').split('\n');
  const at = lines.findIndex((line) => line.includes(`"stream":"${edited}","type":"payment_settled"`));
  const forged = lines.with(at, lines[at]!.replace(`"amount":"${price}"`, `"amount":"${price + 1n}"`));
  writeFileSync(file, forged.join('\n'));
  const json = path.join(temporaryFolder(), 'report.json');
  const proof = ['--checkpoint', checkpoint, '--pubkey', testSigner.verifierKeys[0]];
  const args = ['--from', from, '--to', to, '--input', file, ...proof, '--rpc', `${network}=${rpc.url}`];
  const ended = await tollbook(['reconcile', ...args, '--json', json]);
  expect({ code: ended.code, stderr: withoutProgress(ended.stderr) }).toEqual({ code: 1, stderr: '' });
  const copy: ReportJson = JSON.parse(readFileSync(json, 'utf8'));
  expect(exceptionsIn(copy)).toEqual([`amount_mismatch ${edited}`, ...planted].toSorted());
  expect(copy).toMatchObject({ breaks: 4, ledger: { fault: { seq: at + 1 } } });
  expectBalanced(copy);
  expect(beyondIn(copy)).toEqual({ [chain.token]: 76n, [chain.secondToken]: -price });
  return { planted: planted.toSorted(), found: exceptionsIn(report) };
}

const atoms = (text: string | null): bigint => BigInt(text ?? 'not known');

/** Opening and movements are the closing, which is what the chain says, less what was swept. */
function expectBalanced({ accounts }: ReportJson): void {
  expect(accounts).toHaveLength(2);
  for (const { opening, movements, closing } of accounts) {
    const moved = movements.reduce((sum, one) => sum + atoms(one.in) - atoms(one.out), 0n);
    expect([opening.how, closing.how]).toEqual(['chain', 'chain']);
    expect(atoms(opening.atoms) + moved).toBe(atoms(closing.atoms));
  }
}

function grown({ ledger }: AccountJson): bigint {
  return atoms(ledger.difference_closing) - atoms(ledger.difference_opening);
}

/** What the chain came to have beyond the ledger within the period, by token. */
function beyondIn({ accounts }: ReportJson): Record<string, bigint> {
  return Object.fromEntries(accounts.map((account) => [account.asset, grown(account)]));
}
