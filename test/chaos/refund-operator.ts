import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createTestClient, createWalletClient, type Hex, http, publicActions } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { mint } from '../../src/devnet/token.ts';
import type { RecordedEvent } from '../../src/ledger/rules/event.ts';
import { type BatchedRefund, refundBatch } from '../../src/finance/rules/refund-batch.ts';
import { issueOperatorToken } from '../../src/accounts/use-cases/operator-tokens.ts';
import { keyOf } from './checks/payments.ts';
import type { RunParts } from './run-parts.ts';
import { type Ended, runTollbook } from './tollbook-command.ts';
import { readAll } from './turnovers.ts';
import { withLedger, withOwner } from './sql.ts';

/** A refund that is on the chain. */
export interface SentRefund {
  /** As `paymentKey` makes it. */
  readonly key: string;
  readonly transaction: Hex;
}

/** An operator who refunds what is due while faults happen, and another one who queues dead letters again. */
export interface RefundOperator {
  /** Refunds once more when the faults have ended. Resolves when each refund is on record or given up; what is still under way otherwise. */
  finish(): Promise<string[]>;
  /** The refunds that the chain has. */
  sent(): Promise<SentRefund[]>;
}

/** What becomes of a refund: it is sent at once or later, another transaction has its nonce, or it fails. */
const fates = ['sent', 'sent', 'late', 'replaced', 'reverted'] as const;

/** The only transaction of the sender with a nonce, which a reorg may remove: then it is sent again. */
interface Planned {
  readonly nonce: number;
  /** Undefined: it refunds nothing. */
  readonly refund: BatchedRefund | undefined;
  readonly fate: (typeof fates)[number];
  readonly dueAt: number;
  readonly transactions: Hex[];
}

const network = 'eip155:84532';
const pauseMs = 300;
/** A batch takes about a second, and a call is queued again meanwhile. */
const longestWaitMs = 1_500;
const longestFinishMs = 60_000;
/** More gas than a transfer takes: one that fails is sent as well. */
const gas = 200_000n;
const atoms = 10n ** 15n;
const operators = ['ada', 'bob'] as const;

export async function startRefundOperator(parts: RunParts, urls: readonly string[]): Promise<RefundOperator> {
  const { environment, database, gate, faults } = parts;
  const random = parts.random.fork('operator');
  const { chain, tokens } = environment;
  const url = parts.url();
  const wallet = createWalletClient({
    account: privateKeyToAccount(random.hex32()),
    transport: http(chain.url),
    pollingInterval: 20,
  }).extend(publicActions);
  const sender = wallet.account.address.toLowerCase();
  const planned: Planned[] = [];
  const batches: { readonly file: string; readonly refunds: readonly BatchedRefund[] }[] = [];
  const authorization = `Bearer ${await issueToken(url)}`;
  await createTestClient({ mode: 'anvil', transport: http(chain.url) }).setBalance({
    address: wallet.account.address,
    value: 10n ** 20n,
  });
  for (const token of tokens) await mint(chain, token, wallet.account.address, atoms);

  const command = (...args: readonly string[]): Promise<Ended> =>
    runTollbook(environment, url, [...args, '--rpc', `${network}=${chain.url}`]);

  /** The nonces of refunds that a command started before it failed are spent otherwise, because its file is lost. */
  const planUnlisted = async (): Promise<void> => {
    for (const { data } of await startedRefunds(url)) {
      const { sender: by, sender_nonce: last = -1 } = data;
      for (let nonce = planned.length; by === sender && nonce <= last; nonce++)
        planned.push({ nonce, refund: undefined, fate: 'replaced', dueAt: 0, transactions: [] });
    }
  };

  const makeBatch = async (): Promise<void> => {
    await planUnlisted();
    const file = path.join(environment.dir, `${database}-refunds-${batches.length}.json`);
    const nonces = random.chance(0.7) ? ['--from', sender, '--nonce', String(planned.length)] : [];
    const named = ['--network', network, '--out', file, '--by', operators[0], ...nonces];
    const { code, output } = await command('refunds', 'batch', ...named);
    if (!existsSync(file)) return faults.trace(`no batch of refunds, exit code ${code}: ${output.trim()}`);
    const { refunds } = refundBatch.parse(JSON.parse(readFileSync(file, 'utf8')));
    batches.push({ file, refunds });
    for (const refund of refunds) {
      const fate = random.pick(fates);
      faults.count(`refund: ${fate}`, refund.quote_digest.slice(0, 10));
      const dueAt = Date.now() + (fate === 'late' ? random.between(500, 3_000) : 0);
      planned.push({ nonce: planned.length, refund, fate, dueAt, transactions: [] });
    }
  };

  const requeueSome = async (afterMs = 0): Promise<void> => {
    await sleep(afterMs);
    const dead = await withOwner(url, async (owner) => {
      const { rows } = await owner.query<{ call_id: string }>(
        `select call_id from tollbook.call where status = 'dead'`,
      );
      return rows.map(({ call_id: id }) => id).filter(() => random.chance(0.3));
    });
    await Promise.all(
      dead.map(async (id) => {
        await sleep(random.between(0, longestWaitMs));
        const to = `${random.pick(urls)}/operator/dead-letters/${id}/requeue`;
        const answer = await fetch(to, { method: 'POST', headers: { authorization } }).catch(() => undefined);
        faults.count(`requeue: ${answer?.status ?? 'no answer'}`, id);
      }),
    );
  };

  /** Sends what is due in the order of its nonces; what waits holds up all that come after it. */
  const sendPlanned = async (isLast = false): Promise<void> => {
    const next = await wallet.getTransactionCount({ address: wallet.account.address, blockTag: 'latest' });
    for (const { nonce, refund, fate, dueAt, transactions } of planned.slice(next)) {
      if (dueAt > Date.now() && !isLast) return;
      const isRefund = refund !== undefined && fate !== 'replaced';
      const call = isRefund ? refund.call : { to: wallet.account.address, data: '0x' };
      // without its last byte the amount is none
      const data = (fate === 'reverted' ? call.data.slice(0, -2) : call.data) as Hex;
      await gate.send(async () => {
        const hash = await wallet.sendTransaction({ to: call.to, data, nonce, gas, chain: null });
        transactions.push(hash);
        await wallet.waitForTransactionReceipt({ hash });
      });
    }
  };

  const round = async (): Promise<void> => {
    // what fails, because the database is unreachable, is done in the next round
    const done = await Promise.allSettled([makeBatch(), requeueSome(), requeueSome(longestWaitMs)]);
    const sent = await Promise.allSettled([sendPlanned()]);
    for (const one of [...done, ...sent])
      if (one.status === 'rejected') faults.trace(`the operator failed: ${String(one.reason)}`);
  };

  const sent = async (): Promise<SentRefund[]> => {
    const found: SentRefund[] = [];
    for (const { refund, transactions } of planned)
      for (const transaction of refund ? new Set(transactions) : []) {
        const receipt = await wallet.getTransactionReceipt({ hash: transaction }).catch(() => undefined);
        if (!refund || receipt?.status !== 'success' || receipt.logs.length === 0) continue;
        const named = { asset: refund.asset, payer: refund.to, payment_nonce: refund.payment_nonce };
        found.push({ key: keyOf(named), transaction });
      }
    return found;
  };

  /** Records what the chain has, gives up what it cannot have any more, and what only operators know. */
  const endRefunds = async (open: ReadonlySet<string>): Promise<void> => {
    const isRecorded = await recordedRefunds(url);
    const landed = (await sent()).filter(({ transaction }) => !isRecorded.has(transaction));
    for (const { file, refunds } of batches) {
      const keys = refunds.map((one) => keyOf({ ...one, payer: one.to })).filter((key) => open.has(key));
      if (keys.length === 0) continue;
      const transactions = landed.filter(({ key }) => keys.includes(key)).map((one) => one.transaction);
      const named = ['--batch', file, '--by', operators[0]];
      if (transactions.length > 0)
        await command('refunds', 'record', ...named, ...transactions.flatMap((one) => ['--tx', one]));
      await command('refunds', 'abandon', ...named);
    }
    const notSent = new Map((await startedRefunds(url)).map((started) => [keyOf(started.data), started]));
    for (const { key } of landed) notSent.delete(key);
    for (const [key, { stream, data }] of notSent) {
      if (!open.has(key)) continue;
      const named = ['--quote-digest', stream, '--payment', data.payment_nonce];
      if (data.sender !== undefined) await command('refunds', 'abandon', ...named, '--by', operators[0]);
      else
        for (const operator of operators)
          await command('refunds', 'abandon', ...named, '--why', 'nobody has sent it', '--by', operator);
    }
  };

  const working = (async () => {
    while (!faults.over.aborted) {
      await round();
      await faults.pause(pauseMs);
    }
  })();
  return {
    sent,
    async finish() {
      await working;
      await round();
      await planUnlisted();
      const deadline = Date.now() + longestFinishMs;
      for (let open = await openRefunds(url); open.size > 0; open = await openRefunds(url)) {
        if (Date.now() > deadline) return [...open].map((key) => `the refund of ${key} is under way`);
        await sendPlanned(true);
        await endRefunds(open);
        await sleep(pauseMs);
      }
      return [];
    },
  };
}

async function issueToken(url: string): Promise<string> {
  const issued = await withLedger(url, (ledger) =>
    issueOperatorToken(ledger, { name: 'chaos', scopes: ['calls:write'] }),
  );
  return issued.token;
}

type Started = Extract<RecordedEvent, { type: 'refund_started' }>;

async function startedRefunds(url: string): Promise<Started[]> {
  return (await readAll(url)).filter((event): event is Started => event.type === 'refund_started');
}

/** Of two equal refunds to one payer either transaction may be recorded for either payment. */
async function recordedRefunds(url: string): Promise<ReadonlySet<string>> {
  const events = await readAll(url);
  return new Set(events.flatMap(({ type, data }) => (type === 'refunded' ? data.transaction : [])));
}

/** Refunds that are started and neither recorded nor given up, by their payments. */
async function openRefunds(url: string): Promise<ReadonlySet<string>> {
  const open = new Set<string>();
  for (const { type, data } of await readAll(url)) {
    if (type === 'refund_started') open.add(keyOf(data));
    if (type === 'refunded' || type === 'refund_abandoned') open.delete(keyOf(data));
  }
  return open;
}
