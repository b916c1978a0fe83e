import type { EventData, EventType, RecordedEvent } from '../../../src/ledger/rules/event.ts';
import { topUpPath } from '../schedule.ts';
import type { Completion, CompletionAttempt, Records } from '../records.ts';
import type { RecordedPayment } from './payments.ts';
import type { Landed } from './transfers.ts';
import type { Violation } from './violation.ts';

/** What the gateway's tables say about an account, in micros. */
export interface AccountState {
  readonly accountId: number;
  readonly balanceMicros: number;
  readonly heldMicros: number;
}

interface Facts {
  readonly records: Pick<Records, 'presentations' | 'completions' | 'grants' | 'upstream'>;
  readonly transfers: readonly Landed[];
  readonly payments: ReadonlyMap<string, RecordedPayment>;
  readonly events: readonly RecordedEvent[];
  readonly accounts: readonly AccountState[];
}

/** Credit by what landed on the chain, what the harness granted, and what clients received: without the product's own folds. */
export function* creditViolations(facts: Facts): Generator<Violation> {
  yield* topUpViolations(facts);
  yield* balanceViolations(facts);
  yield* chargeViolations(facts);
}

type DataOf<T extends EventType> = EventData<T>;

function dataOf<T extends EventType>(events: readonly RecordedEvent[], type: T): DataOf<T>[] {
  return events.flatMap((event) => (event.type === type ? [event.data as DataOf<T>] : []));
}

function sum(list: readonly { readonly amount_micros: string }[]): bigint {
  return list.reduce((total, { amount_micros: amount }) => total + BigInt(amount), 0n);
}

/** A token buys a unit, so that an atom buys a micro. Each transfer is credited once, or its call is a dead letter: a refund is due. */
function* topUpViolations({ records, transfers, payments, events }: Facts): Generator<Violation> {
  const keys = new Set(
    records.presentations.flatMap(({ path, signed }) => (path === topUpPath ? signed.key : [])),
  );
  const given = dataOf(events, 'credit_topped_up');
  const takenBack = new Set(dataOf(events, 'credit_reversed').map(({ call_id: id }) => id));
  const dead = new Set(dataOf(events, 'dead_lettered').map(({ call_id: id }) => id));
  const credited = new Set<number>();
  for (const { key, payer, amount, transaction } of transfers) {
    if (!keys.has(key)) continue;
    const calls = payments.get(key)?.everEnqueued ?? [];
    const mine = given.filter(({ call_id: id }) => calls.includes(id));
    for (const { call_id: id } of mine) credited.add(id);
    const standing = mine.filter(({ call_id: id }) => !takenBack.has(id));
    const isDue = calls.some((id) => dead.has(id));
    const words = `${key}, paid in ${transaction}`;
    if (mine.length > 1) yield { kind: 'credited_twice', words: `${words}: ${mine.length} times` };
    if (standing.length > 0 && isDue)
      yield { kind: 'credited_twice', words: `${words}: credited, and due as a refund` };
    if (standing.length === 0 && !isDue) yield { kind: 'not_credited', words };
    for (const { amount_micros: micros, payer: of } of mine)
      if (BigInt(micros) !== amount || of !== payer)
        yield {
          kind: 'not_credited',
          words: `${words}: ${amount} atoms of ${payer} gave ${micros} to ${of}`,
        };
  }
  for (const { call_id: id, payer } of given)
    if (!credited.has(id) && !takenBack.has(id))
      yield {
        kind: 'credited_twice',
        words: `call ${id} of ${payer} was credited, and nothing landed for it`,
      };
}

/** Each account has what it got less what it was charged, at each moment at least nothing, and nothing is held in the end. */
function* balanceViolations({ records, events, accounts }: Facts): Generator<Violation> {
  const balances = new Map<number, { available: bigint; held: bigint }>();
  for (const { seq, type, data } of events) {
    if (!('account_id' in data) || !('amount_micros' in data)) continue;
    const { account_id: id, amount_micros: text } = data;
    if (id === undefined) continue;
    const balance = balances.get(id) ?? { available: 0n, held: 0n };
    balances.set(id, balance);
    move(balance, type, BigInt(text));
    if (balance.available < 0n || balance.held < 0n)
      yield { kind: 'credit_wrong', words: `account ${id} is below zero after event ${seq}, ${type}` };
  }
  for (const [id, granted] of records.grants) {
    const recorded = sum(dataOf(events, 'credit_granted').filter((one) => one.account_id === id));
    if (recorded !== granted)
      yield { kind: 'credit_wrong', words: `account ${id} was granted ${granted}, recorded are ${recorded}` };
  }
  for (const { accountId, balanceMicros, heldMicros } of accounts) {
    const { available, held } = balances.get(accountId) ?? { available: 0n, held: 0n };
    if (held !== 0n) yield { kind: 'credit_wrong', words: `account ${accountId} still holds ${held}` };
    if (BigInt(balanceMicros) !== available || BigInt(heldMicros) !== held) {
      const words = `account ${accountId} has ${balanceMicros} and holds ${heldMicros}, its events give ${available} and ${held}`;
      yield { kind: 'credit_wrong', words };
    }
  }
}

function move(balance: { available: bigint; held: bigint }, type: EventType, amount: bigint): void {
  switch (type) {
    case 'credit_granted':
    case 'credit_topped_up':
    case 'credit_corrected':
      balance.available += amount;
      return;
    case 'credit_reversed':
    case 'credit_expired':
      balance.available -= amount;
      return;
    case 'credit_held':
      balance.available -= amount;
      balance.held += amount;
      return;
    case 'credit_released':
      balance.held -= amount;
      balance.available += amount;
      return;
    case 'credit_captured':
      balance.held -= amount;
      return;
    default:
  }
}

/** An answer is charged once, with what it cost if that is known; and nothing else is charged. */
function* chargeViolations({ records, events, accounts }: Facts): Generator<Violation> {
  const captured = Map.groupBy(dataOf(events, 'credit_captured'), ({ chat_id: id }) => id);
  const corrected = Map.groupBy(dataOf(events, 'credit_corrected'), ({ chat_id: id }) => id);
  const costOf = (id: string): bigint => sum(captured.get(id) ?? []) - sum(corrected.get(id) ?? []);
  const ofCredit = records.completions.filter(({ means }) => means.kind === 'credit');
  for (const [id, charges] of captured)
    if (charges.length > 1)
      yield { kind: 'charged_twice', words: `completion ${id}: ${charges.length} times` };
  for (const { scenario, attempts } of ofCredit)
    for (const { chatId, status, usage } of attempts) {
      if (status !== 200) continue;
      const words = `${scenario}: completion ${chatId}`;
      if (chatId === undefined || !captured.has(chatId)) yield { kind: 'answer_not_charged', words };
      else if (usage && !isCost(costOf(chatId), usage, chatId, events))
        yield { kind: 'credit_wrong', words: `${words} was charged ${costOf(chatId)}` };
    }
  for (const { accountId } of accounts) {
    const charged = [...captured.values()].flat().filter((one) => one.account_id === accountId).length;
    const mine = ofCredit.filter((one) => accountOf(one, events) === accountId);
    const most = mine.reduce((total, one) => total + mostCharges(one, records), 0);
    if (charged > most) {
      const words = `account ${accountId} was charged for ${charged} completions, and got at most ${most}`;
      yield { kind: 'charged_though_refused', words };
    }
  }
}

/** Prices of 2.50 and 10.00 for a million tokens, rounded up to a micro. The hold counts where a process died meanwhile. */
function isCost(
  cost: bigint,
  { prompt_tokens: prompt, completion_tokens: completion }: NonNullable<CompletionAttempt['usage']>,
  chatId: string,
  events: readonly RecordedEvent[],
): boolean {
  const stream = `chat:${chatId}`;
  const isRecovered = events.some(
    (event) =>
      event.stream === stream && event.type === 'chat_completed' && event.data.ending === 'recovered',
  );
  return isRecovered || cost === BigInt(Math.ceil((prompt * 5 + completion * 20) / 2));
}

function accountOf({ means }: Completion, events: readonly RecordedEvent[]): number | undefined {
  if (means.kind !== 'credit') return undefined;
  const { accountId, wallet } = means.account;
  return accountId ?? dataOf(events, 'credit_topped_up').find(({ payer }) => payer === wallet)?.account_id;
}

/** How many attempts may have been charged: those with an answer, and those whose client got none although the model began one. */
export function mostCharges(
  { prompt, attempts }: Completion,
  { upstream }: Pick<Records, 'upstream'>,
): number {
  const { asked = 0, begun = 0 } = upstream.get(prompt) ?? {};
  const answered = attempts.filter(({ status }) => status === 200).length;
  const silent = attempts.filter(({ status }) => status === undefined);
  // a client that leaves while the model works pays for that work
  const left = silent.filter(({ end }) => end === 'left').length;
  return Math.min(answered + Math.min(left, asked) + Math.min(silent.length - left, begun), asked);
}
