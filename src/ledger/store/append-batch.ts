import pg from 'pg';
import { encodeEventData, type LedgerEvent } from '../rules/event.ts';
import { encodeClaim } from './claim-key.ts';
import { encodeBody, encodeCall, keptClaims } from './encode-call.ts';
import type { AnyClaim, EncodedEvent, LaneCommand } from './lane-command.ts';
import type { Admission, CreditCommand, CreditMove, CreditOutcome, LimitsLeft } from './credit-command.ts';
import { creditParts } from './uncontended-credit.ts';
import { textLiteral } from './text-literal.ts';
import { type UncontendedParts, uncontendedParts } from './uncontended-parts.ts';

export type {
  Admission,
  CreditCommand,
  CreditDetail,
  CreditMove,
  CreditOutcome,
  CreditRefusal,
  RateLimit,
} from './credit-command.ts';
export type { AnyClaim, CallChange, Claim, LaneCommand } from './lane-command.ts';

export type AppendOutcome =
  | {
      readonly outcome: 'ok';
      readonly version: number;
      readonly seq: number | null;
      readonly call_id: number | null;
      /** The time of its events: RFC 3339 UTC. It never goes back, so it can be ahead of the database's clock. */
      readonly at: string;
    }
  /** `same`: the holder has the same binding, so this request was made before. */
  | { readonly outcome: 'lost' | 'same'; readonly claim: AnyClaim['kind']; readonly stream: string }
  | { readonly outcome: 'stale' | 'lease_lost' | 'request_refused' };

export interface BatchAnswer {
  /** The events' time, which never goes back: not the database's clock. */
  readonly at: string;
  /** The database's clock, in Unix milliseconds. */
  readonly clock_ms: number;
  readonly seq: number;
  readonly open_calls: number;
  readonly unsettled_calls: number;
  readonly triggered_calls: number;
  readonly results: readonly (AppendOutcome | CreditOutcome | { readonly outcome: 'deferred' })[];
}

/** The answer to a batch that was written without deciding: every command was recorded, in their order. */
export interface UncontendedAnswer extends Omit<BatchAnswer, 'results'> {
  /** The version of each command's stream before the batch. */
  readonly versions: readonly number[];
  /** The ids of the calls that were added. */
  readonly added: readonly number[];
  /** Of each completion that was admitted. */
  readonly limits: readonly LimitsLeft[];
}

/** Nothing was recorded: the ledger is halted, for this reason, or, without one, it lacks the sender's batch that was answered last. */
export interface HaltAnswer {
  readonly halt: { readonly seq: number; readonly reason: string | null };
}

/** A command ready to be sent. */
export interface EncodedCommand {
  readonly text: string;
  /** Its last event, which is known to be on record once the command is. */
  readonly last: (EncodedEvent & { readonly stream: string }) | undefined;
  /** JSON of the body that travels with it. */
  readonly body: string | undefined;
  /** The same for the cheap way into the ledger; undefined for a command of a kind that is always decided. */
  readonly parts: UncontendedParts | undefined;
}

/**
 * A command as the JSON that the append function reads. Event data is canonical text, stored byte for byte.
 * Throws if an event breaks its schema, so that it cannot fail a whole batch.
 */
export function encodeCommand(command: LaneCommand): EncodedCommand {
  const events = command.events.map(encodeEvent);
  const parts = [`"stream":${JSON.stringify(command.stream)}`, `"events":${eventsJson(events)}`];
  if (command.expect !== undefined) parts.push(`"expect":${command.expect}`);
  if (command.issuedAt !== undefined) parts.push(`"issued_at":${command.issuedAt}`);
  if (command.endsAt !== undefined) parts.push(`"ends_at":${command.endsAt}`);
  if (command.refuses !== undefined) parts.push(`"refuses":"${command.refuses}"`);
  if (command.unlessRefused !== undefined) parts.push(`"unless_refused":"${command.unlessRefused}"`);
  const claims = command.claims?.map(encodeClaim) ?? [];
  if (claims.length > 0) parts.push(`"claims":${JSON.stringify(claims)}`);
  if (command.freed?.length) parts.push(`"freed":${JSON.stringify(command.freed.map(encodeClaim))}`);
  if (command.lost) {
    const byKind = Object.entries(command.lost.events).map(
      ([kind, instead]) => `"${kind}":${encodeEvents(instead)}`,
    );
    parts.push(`"lost":{${byKind.join(',')}}`, `"lost_stream":${JSON.stringify(command.lost.stream)}`);
  }
  if (command.call) parts.push(`"call":${encodeCall(command.call, keptClaims(claims))}`);
  return {
    text: `{${parts.join(',')}}`,
    last: lastOf(command.stream, events),
    body: encodeBody(command.call),
    parts: uncontendedParts(command, events, claims),
  };
}

/** The same for a step of a chat. Throws if an amount is negative or exceeds 2^53. */
export function encodeCreditCommand(command: CreditCommand): EncodedCommand {
  const { stream, admit, credit, refused } = command;
  const events = command.events.map(encodeEvent);
  const parts = [`"stream":${JSON.stringify(stream)}`, `"events":${eventsJson(events)}`];
  if (admit) parts.push(`"admit":${encodeAdmission(admit)}`);
  if (credit) parts.push(`"credit":${encodeMove(credit, refused?.gone !== undefined)}`);
  if (refused) {
    const byCode = Object.entries(refused).map(([code, instead]) => `"${code}":${encodeEvents(instead)}`);
    parts.push(`"lost":{${byCode.join(',')}}`, `"lost_stream":${JSON.stringify(stream)}`);
  }
  const text = `{${parts.join(',')}}`;
  return { text, last: lastOf(stream, events), body: undefined, parts: creditParts(command, events) };
}

function lastOf(stream: string, events: readonly EncodedEvent[]): EncodedCommand['last'] {
  const last = events.at(-1);
  return last && { stream, ...last };
}

function encodeAdmission(admit: Admission): string {
  return JSON.stringify({
    chat_id: admit.chatId,
    process_id: admit.processId,
    subject: admit.subject,
    per_minute: admit.perMinute,
    per_day: admit.perDay,
    others: admit.others?.map(({ subject, perMinute, perDay }) => ({
      subject,
      per_minute: perMinute,
      per_day: perDay,
    })),
    is_refused: admit.isRefused,
    refusal_events_per_sec: admit.refusalEventsPerSec,
    key_id: admit.keyId,
    account_id: admit.accountId,
    hold: wholeMicros(admit.holdMicros),
    needed: admit.neededMicros === undefined ? undefined : wholeMicros(admit.neededMicros),
    minimum: admit.leastMicros === undefined ? undefined : wholeMicros(admit.leastMicros),
  });
}

function encodeMove(move: CreditMove, corrects: boolean): string {
  if (move.op === 'open') {
    const { op, accountId, name } = move;
    return JSON.stringify({ op, account_id: accountId, name });
  }
  if (move.op === 'close') return JSON.stringify({ op: move.op, account_id: move.accountId });
  if (move.op !== 'settle') {
    const { op, accountId, amountMicros, requestId } = move;
    const amount = wholeMicros(amountMicros);
    return JSON.stringify({ op, account_id: accountId, amount, request_id: requestId });
  }
  const { op, chatId, capturedMicros, releasedMicros, isUnstarted, recovery } = move;
  return JSON.stringify({
    op,
    chat_id: chatId,
    captured: wholeMicros(capturedMicros),
    released: wholeMicros(releasedMicros),
    unstarted: isUnstarted,
    recovered_by: recovery?.processId,
    silent_secs: recovery?.silentSecs,
    corrects,
  });
}

/** Micros as a JSON number: balances are far below 2^53. */
function wholeMicros(amount: bigint): number {
  if (amount < 0n || amount > BigInt(Number.MAX_SAFE_INTEGER))
    throw new RangeError('an amount of credit beyond 2^53');
  return Number(amount);
}

function encodeEvent(event: LedgerEvent): EncodedEvent {
  return { type: event.type, data: encodeEventData(event) };
}

/** Lists that are recorded only instead of others are often the same for many commands: each is encoded once. */
const encodedLists = new WeakMap<readonly LedgerEvent[], string>();

function encodeEvents(events: readonly LedgerEvent[]): string {
  const known = encodedLists.get(events);
  if (known !== undefined) return known;
  const text = eventsJson(events.map(encodeEvent));
  encodedLists.set(events, text);
  return text;
}

function eventsJson(events: readonly EncodedEvent[]): string {
  return `[${events.map(({ type, data }) => `{"type":"${type}","data":${data}}`).join(',')}]`;
}

/**
 * The batch as one text, for one simple-protocol message: with Parse, Bind and Execute apart, a client that vanishes
 * before Sync would keep the lane's lock past every statement time-out. Its bodies precede it, in the same transaction
 * and the same round trip, so that the lock is requested only once they are written.
 * @param acknowledged the number of the flusher's last batch that was answered; 0 for none
 */
export function appendStatement(
  laneId: number,
  flusherId: string,
  batchNo: number,
  acknowledged: number,
  commands: readonly EncodedCommand[],
): string {
  const bodies = commands.flatMap(({ body }) => body ?? []);
  const before =
    bodies.length === 0 ? '' : `select tollbook.put_bodies(${textLiteral(`[${bodies.join(',')}]`)});\n`;
  const batch = textLiteral(batchText(commands));
  return `${before}select tollbook.append(${laneId}::smallint, '${flusherId}', ${batchNo}, ${acknowledged}, ${batch}) as answer`;
}

/** The batch as JSON: its hash tells the database whether a batch that comes again under its number is the same. */
export function batchText(commands: readonly EncodedCommand[]): string {
  return `[${commands.map(({ text }) => text).join(',')}]`;
}

/**
 * Whether a database error means that something in the batch can never be recorded.
 * Other errors (lost connection, lock time-out, shutdown, full disk) may pass when the batch is sent again.
 */
export function isPoison(error: unknown): boolean {
  if (!(error instanceof pg.DatabaseError) || error.code === undefined) return false;
  return /^(?:0A|21|22|23|42|P0)/.test(error.code) && error.code !== '42501' && error.code !== '42P01';
}
