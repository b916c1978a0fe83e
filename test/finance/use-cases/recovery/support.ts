import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, vi } from 'vitest';
import { run } from '../../../../src/finance/commands/recover.ts';
import { sha256 } from '../../../../src/base/values/sha256.ts';
import { redeliveryTypedData } from '../../../../src/payments/rules/payer-signatures.ts';
import type { Address, Hex } from '../../../../src/base/values/primitives.ts';
import { paymentKey } from '../../../../src/payments/store/claims.ts';
import { createScanner } from '../../../../src/payments/peers/chain/transfer-scan.ts';
import {
  beginRecovery,
  recordSearch,
  searchNetworks,
} from '../../../../src/finance/use-cases/recovery/recover.ts';
import { readExportEnd } from '../../../../src/ledger/store/export.ts';
import { readTimeOf } from '../../../../src/ledger/store/recovery.ts';
import { network, type openLedger } from '../refunds/support.ts';
import { backUp } from '../../../support/backup.ts';
import { createDatabase } from '../../../support/database.ts';
import type { TestChain } from '../../../support/devnet.ts';
import {
  type Answer,
  configText,
  receiptKey,
  runnerSecret,
  startTestGateway,
  testConfig,
  type TestGateway,
  type TestGatewayOptions,
} from '../../../support/gateway.ts';
import { testSeed, testSigner } from '../../../support/log.ts';
import { header, offerOf, payer, type Payment } from '../../../support/payer.ts';
import {
  isPermit,
  type Permit,
  signedTransfer,
  signOption,
  withEuroByPermit2,
} from '../../../support/permit2.ts';
import { endOfPeriod } from '../../../support/reconcile.ts';
import { type Ended, temporaryFolder, tollbook } from '../../../support/program.ts';
import { startTestRunner } from '../../../support/runner.ts';
import { askNode } from '../../../support/tokens.ts';
import { eventually } from '../../../support/wait.ts';

export const job = '/x402/jobs/1/0';

/** A payment that the gateway took, with the request that it paid for. */
export interface TakenPayment {
  readonly payment: Payment | Permit;
  readonly body: string;
  readonly digest: string;
}

/**
 * A gateway with an anchored log took one payment, a backup was made, and it took more, in two tokens: every second one by Permit2. Then the database was
 * restored from the backup: those are lost, and were delivered.
 */
export async function lossyRestore(
  chain: TestChain,
  bodies: readonly string[] = ['lost', 'lost too'],
  { top = '', env: moreEnv = {} }: Pick<TestGatewayOptions, 'top' | 'env'> = {},
) {
  const database = await createDatabase();
  const runner = await startTestRunner(() => ({ status: 200, body: 'done' }));
  const tables = `[log]\norigin = "${testSigner.name}"\nkey = "env:LOG_KEY"
[[log.anchors]]\nkind = "folder"\nlocation = "${temporaryFolder()}"\nevery_ms = 20`;
  const env = { LOG_KEY: testSeed.toString('hex'), ...moreEnv };
  const { change } = await withEuroByPermit2(chain);
  const options = { database, chain, runnerUrl: runner.url, tables, env, top, change };
  const file = path.join(temporaryFolder(), 'tollbook.toml');
  writeFileSync(file, change(configText(options)));

  const start = (): Promise<TestGateway> => startTestGateway(options);
  const first = await start();
  const kept = await take(first, 'kept');
  await first.stop();
  const restore = await backUp(database);
  const second = await start();
  const lost = await Promise.all(bodies.map((body, n) => take(second, body, n % 2)));
  await second.stop();
  await endOfPeriod(chain.rpcUrl);
  await restore();
  const deliveries = runner.deliveries.length;
  return {
    database,
    runner,
    kept,
    lost,
    start,
    /** A gateway that knows no anchors, and so starts on what was restored. */
    startUnanchored: (): Promise<TestGateway> =>
      startTestGateway({ database, chain, runnerUrl: runner.url, env, top, change }),
    /** The runner's deliveries since the restore. */
    delivered: () => runner.deliveries.slice(deliveries),
    recover: (...args: string[]) =>
      recoverWith(['--config', file, '--by', 'ada', ...args], {
        ...env,
        RUNNER_TOKEN: runnerSecret,
        RECEIPT_KEY: receiptKey,
        DATABASE_URL: database.url,
      }),
    run: (...args: string[]): Promise<Ended> =>
      tollbook(args, {
        ...env,
        RUNNER_TOKEN: runnerSecret,
        RECEIPT_KEY: receiptKey,
        DATABASE_URL: database.url,
      }),
    config: file,
    /** The same recovery in this process; finds what is final by now. */
    recoverHere: (ledger: ReturnType<typeof openLedger>) => recoverIn(ledger, options),
  };
}

/** Recovers a ledger that has lost its last events from a chain, as the command does. */
export async function recoverIn(
  ledger: ReturnType<typeof openLedger>,
  options: TestGatewayOptions,
): Promise<void> {
  const { last: keptSeq } = await readExportEnd(ledger.pool);
  const unknown = { anchored: undefined, lostFrom: undefined, lostTo: undefined };
  const sinceSecs = (await readTimeOf(ledger.pool, keptSeq)) ?? 0;
  const loss = { ...unknown, sinceSecs, reason: 'forced', keptSeq };
  const recovery = await beginRecovery(ledger, {
    loss,
    sinceSecs,
    operator: 'ada',
    signer: testSigner,
    after: 1,
  });
  const untilSecs = Math.ceil(Date.now() / 1_000) + 600;
  const { rpcUrl } = options.chain;
  const scanner = createScanner({ network, chainId: 84_532, rpcUrl, timeoutMs: 30_000 });
  const { acceptedTokens: accepted = [] } = (await testConfig(options)).jobs ?? {};
  const search = {
    chains: new Map([[network, scanner]]),
    accepted,
    sinceSecs,
    untilSecs,
    onProgress() {},
  };
  for await (const found of searchNetworks(ledger, search, new Set())) {
    if (found.kind === 'failed') throw new Error(found.words);
    // as two commands at once do
    await Promise.all([1, 2].map(() => recordSearch(ledger, recovery!, network, found.search)));
  }
  await scanner.close();
}

/** Runs the command in this process: one process for each run would take most of the test's time. */
async function recoverWith(args: readonly string[], env: Readonly<Record<string, string>>) {
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
  const printed = (['stdout', 'stderr'] as const).map((name) => {
    let text = '';
    const spy = vi.spyOn(process[name], 'write').mockImplementation((line) => {
      text += String(line);
      return true;
    });
    return { text: () => text, restore: () => spy.mockRestore() };
  });
  try {
    const code = await run(args);
    const [stdout = '', stderr = ''] = printed.map(({ text }) => text());
    return { code, stdout, stderr };
  } finally {
    for (const { restore } of printed) restore();
    vi.unstubAllEnvs();
  }
}

async function take(gateway: TestGateway, body: string, option = 0): Promise<TakenPayment> {
  const payment = await signOption(offerOf(await gateway.post(job, { body })), option);
  const answer = await send(gateway, payment, body);
  expect(answer).toMatchObject({ status: 202 });
  const digest = String(answer.json.quote_digest);
  await eventually(async () => {
    const { json } = await gateway.get(`/x402/receipts/${digest}`);
    expect(json.state).toBe('completed');
  });
  return { payment, body, digest };
}

export function send(
  gateway: TestGateway,
  payment: Payment | Permit,
  body: string,
  headers: Record<string, string> = {},
): Promise<Answer> {
  return gateway.post(job, { body, headers: { ...header(payment), ...headers } });
}

/** Lets the chain's time pass, so that no authorization of the lost events is valid any more. */
export async function passValidity(chain: TestChain): Promise<void> {
  await askNode(chain.rpcUrl, 'evm_increaseTime', [600]);
  await askNode(chain.rpcUrl, 'anvil_mine', ['0x5']);
}

/** The stream of a payment once it is recovered. */
export function streamOf({ payment }: TakenPayment): Hex {
  const { from, nonce } = signedTransfer(payment);
  return paymentKey({
    network: 'eip155:84532',
    transferMethod: isPermit(payment) ? 'permit2' : 'eip3009',
    asset: payment.accepted.asset.toLowerCase() as Hex,
    payer: from.toLowerCase() as Hex,
    nonce,
  });
}

/** The header with which a payer asks for delivery. */
export async function redelivery({ payment }: TakenPayment, body: string, account = payer) {
  const { accepted } = payment;
  const typedData = redeliveryTypedData({
    network,
    asset: accepted.asset.toLowerCase() as Address,
    nonce: signedTransfer(payment).nonce,
    quoteDigest: accepted.extra['quoteDigest'] as Hex,
    method: 'POST',
    path: job,
    bodySha256: sha256(body),
  });
  return { 'x-net-redelivery-sig': await account.signTypedData(typedData) };
}
