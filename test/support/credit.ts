import { randomUUID } from 'node:crypto';
import { userOfAccount } from '../../src/accounts/store/identity.ts';
import { expect, onTestFinished } from 'vitest';
import { type CreditBalance, foldCredit } from '../../src/accounts/rules/credit/postings.ts';
import type { LedgerEvent, RecordedEvent } from '../../src/ledger/rules/event.ts';
import { grantCredit, openCreditAccount } from '../../src/accounts/use-cases/credit/credit.ts';
import { type KeyBudget, listApiKeys } from '../../src/accounts/store/api-keys.ts';
import type { Admission, CreditCommand, CreditOutcome } from '../../src/ledger/store/append-batch.ts';
import { listAccounts } from '../../src/accounts/store/credit.ts';
import { writerRole } from '../../src/ledger/store/database.ts';
import { type Lane, openLane } from '../../src/ledger/store/lane.ts';
import { createDatabase, type TestDatabase } from './database.ts';
import { expectSoundLedger } from './invariants.ts';

export function laneOn(database: Pick<TestDatabase, 'url'>): Lane {
  const lane = openLane({ url: database.url, role: writerRole });
  onTestFinished(() => lane.close());
  return lane;
}

/** A fresh database, and a lane on it. */
export async function databaseWithLane(): Promise<{ database: TestDatabase; lane: Lane }> {
  const database = await createDatabase();
  return { database, lane: laneOn(database) };
}

/** What asks for a completion, as the use case would; `credit_held` is among its events if it holds credit. */
export function admission(change: Partial<Admission> = {}): CreditCommand & { readonly admit: Admission } {
  const admit: Admission = {
    chatId: randomUUID(),
    processId: randomUUID(),
    subject: 'key:1',
    perMinute: 1_000,
    perDay: undefined,
    keyId: undefined,
    accountId: undefined,
    holdMicros: 0n,
    ...change,
  };
  const base = { caller: 'anonymous', model: 'small' } as const;
  const admitted: LedgerEvent = { type: 'chat_admitted', data: { ...base, streaming: false } };
  const held: LedgerEvent = {
    type: 'credit_held',
    data: { ...ofChat(admit), amount_micros: String(admit.holdMicros) },
  };
  const refusedEvents = (code: string): LedgerEvent[] => [{ type: 'chat_refused', data: { ...base, code } }];
  return {
    stream: `chat:${admit.chatId}`,
    events: admit.holdMicros > 0n ? [admitted, held] : [admitted],
    admit,
    refused: {
      insufficient_funds: refusedEvents('insufficient_funds'),
      rate_limit_exceeded: refusedEvents('rate_limit_exceeded'),
      daily_quota_exceeded: refusedEvents('daily_quota_exceeded'),
      key_cap_reached: refusedEvents('key_cap_reached'),
      key_budget_reached: refusedEvents('key_budget_reached'),
      invalid_api_key: refusedEvents('invalid_api_key'),
    },
  };
}

export const codeOf = (outcome: CreditOutcome): string => (outcome.outcome === 'ok' ? 'ok' : outcome.code);

/** Creates an account with an amount of credit. */
export async function fund(database: TestDatabase, lane: Lane, micros: bigint): Promise<number> {
  const accountId = await openCreditAccount({ ...database, lane }, `account-${randomUUID()}`);
  if (micros > 0n)
    expect(await grantCredit({ ...database, lane }, accountId, micros)).toEqual({
      kind: 'moved',
      balanceMicros: micros,
    });
  return accountId;
}

/**
 * Ends the hold of an admission as its own process would: part of it is captured, the rest released. Where all of it was
 * captured for this process, the rest comes back as a correction.
 */
export function settlement(admit: Admission, captured: bigint, released: bigint) {
  const { chatId } = admit;
  const of = ofChat(admit);
  const taken: LedgerEvent = {
    type: 'credit_captured',
    data: { ...of, amount_micros: String(captured), is_estimate: false },
  };
  const rest = { ...of, amount_micros: String(released) };
  return {
    stream: `chat:${chatId}`,
    events: [taken, { type: 'credit_released', data: rest }],
    credit: { op: 'settle', chatId, capturedMicros: captured, releasedMicros: released },
    refused: { gone: [{ type: 'credit_corrected', data: rest }] },
  } satisfies CreditCommand;
}

export function settle(
  lane: Lane,
  admit: Admission,
  captured: bigint,
  released: bigint,
): Promise<CreditOutcome> {
  return lane.appendCredit(settlement(admit, captured, released));
}

function ofChat({ accountId = 0, chatId, keyId }: Admission) {
  return { account_id: accountId, chat_id: chatId, ...(keyId === undefined ? {} : { key_id: keyId }) };
}

const untouched: CreditBalance = { available: 0n, held: 0n, granted: 0n, bought: 0n, expired: 0n, used: 0n };

/** The projections say what the events say: every account, every key, every hold. Returns the events. */
export async function expectBooks(database: TestDatabase): Promise<RecordedEvent[]> {
  const events = await database.asOwner((owner) => expectSoundLedger(database.db, owner));
  const books = foldCredit(events);
  const accounts = await listAccounts(database.db);
  for (const id of books.keys()) expect(accounts.map(({ accountId }) => accountId)).toContain(id);
  for (const { accountId, name, ...micros } of accounts) {
    const fold = books.get(accountId) ?? untouched;
    expect(micros).toEqual({
      balanceMicros: Number(fold.available),
      heldMicros: Number(fold.held),
      usedMicros: Number(fold.used),
    });
    expect(Object.values(fold).reduce((sum, side) => sum + side, 0n)).toBe(0n);
    expect(await sumOfHolds(database, accountId)).toBe(micros.heldMicros);
    const opened = events.filter(
      (event) => event.type === 'credit_account_opened' && event.data.account_id === accountId,
    );
    // a user's is recorded with its first credit
    const isNamed = books.has(accountId) || userOfAccount(name) === undefined;
    const expected = isNamed || opened.length > 0 ? [{ account_id: accountId, name }] : [];
    expect(opened.map(({ data }) => data)).toEqual(expected);
  }
  for (const { keyId, spentMicros, budget } of await listApiKeys(database.db)) {
    expect(BigInt(spentMicros)).toBe(spentThrough(keyId, events));
    if (budget) expect(BigInt(budget.spentMicros)).toBe(spentThrough(keyId, ofPeriod(events, budget)));
  }
  return events;
}

async function sumOfHolds({ pool }: TestDatabase, accountId: number): Promise<number> {
  const { rows } = await pool.query<{ sum: string }>(
    'select coalesce(sum(amount), 0) as sum from tollbook.chat_hold where account_id = $1',
    [accountId],
  );
  return Number(rows[0]?.sum);
}

/** The events of the completions that were admitted in the current period of a budget. */
function ofPeriod(events: readonly RecordedEvent[], { period, until }: KeyBudget): RecordedEvent[] {
  const end = until.toISOString();
  const start = new Date(until);
  if (period === 'day') start.setUTCDate(start.getUTCDate() - 1);
  else start.setUTCMonth(start.getUTCMonth() - 1);
  const held = events.filter(
    ({ type, at }) => type === 'credit_held' && start.toISOString() <= at && at < end,
  );
  const streams = new Set(held.map(({ stream }) => stream));
  return events.filter(({ stream }) => streams.has(stream));
}

/** Held and never given back: what a key's cap is compared with. */
function spentThrough(keyId: number, events: readonly LedgerEvent[]): bigint {
  return events.reduce((sum, { type, data }) => {
    if (type !== 'credit_held' && type !== 'credit_released' && type !== 'credit_corrected') return sum;
    if (data.key_id !== keyId) return sum;
    return type === 'credit_held' ? sum + BigInt(data.amount_micros) : sum - BigInt(data.amount_micros);
  }, 0n);
}
