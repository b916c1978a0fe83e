import pg from 'pg';
import { encodeEventData, type LedgerEvent } from '../domain/events/event.ts';
import { encodeClaim } from './claim-key.ts';
import { encodeBody, encodeCall, keptClaims } from './encode-call.ts';
import type { Claim, EncodedEvent, LaneCommand } from './lane-command.ts';
import { type UncontendedParts, uncontendedParts } from './uncontended-parts.ts';

export type { CallChange, Claim, LaneCommand } from './lane-command.ts';

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
  | { readonly outcome: 'lost' | 'same'; readonly claim: Claim['kind']; readonly stream: string }
  | { readonly outcome: 'stale' | 'lease_lost' };

/** A limit on the requests of one subject, exact over all processes. */
export interface RateLimit {
  readonly subject: string;
  readonly perMinute: number;
  /** Of admitted requests, by UTC day. */
  readonly perDay: number | undefined;
}

/** Admission of one completion: key, limits and credit together, or none of them. */
export interface Admission extends RateLimit {
  readonly chatId: string;
  /** The process that will settle it. */
  readonly processId: string;
  /** Further limits: it counts against all of them, or against none where one is full. */
  readonly others?: readonly RateLimit[];
  /** A refusal for lack of credit counts against the minutes too. */
  readonly countsRequests?: boolean;
  /** The request is refused in any case: it is only counted, against the minutes. */
  readonly isRefused?: boolean;
  readonly keyId: number | undefined;
  readonly accountId: number | undefined;
  /** The most micros that it may cost; 0 for a free model. */
  readonly holdMicros: bigint;
  /** Where so many micros are available the caller will retry with a smaller hold: the refusal is not recorded. */
  readonly leastMicros?: bigint | undefined;
}

/** A move of credit on an account; the command's events record the same. */
export type CreditMove =
  | { readonly op: 'open'; readonly accountId: number; readonly name: string }
  | {
      /** `expire` subtracts, the others add. */
      readonly op: 'grant' | 'top_up' | 'expire';
      readonly accountId: number;
      readonly amountMicros: bigint;
      /** A request id moves credit once. */
      readonly requestId?: string | undefined;
    }
  /** Ends a chat's hold: its cost is captured, the rest released. */
  | {
      readonly op: 'settle';
      readonly chatId: string;
      readonly capturedMicros: bigint;
      readonly releasedMicros: bigint;
      /** Only where its upstream has not begun to answer. */
      readonly isUnstarted?: boolean;
      /** Ended for a silent process: only while it is still silent. */
      readonly recovery?: { readonly processId: string; readonly silentSecs: number };
    };

/**
 * `gone`: another process ended the hold, or the upstream has started to answer, or the hold's process sends heartbeats
 * again; an account of that name exists already, has too little to subtract, or would have too much. A settlement with
 * events for `gone` is a correction too: where the whole hold was captured for this process, the excess is returned and
 * the events are recorded. `counted`: a request that is refused in any case was counted. `repeated`: this request id has made the same move before; `request_id_taken`: another move.
 */
export type CreditRefusal =
  | 'invalid_api_key'
  | 'rate_limit_exceeded'
  | 'daily_quota_exceeded'
  | 'insufficient_funds'
  | 'key_cap_reached'
  | 'counted'
  | 'gone'
  | 'repeated'
  | 'request_id_taken';

/** A step of a chat: the lane, which counts its limits and its credit, decides it. */
export interface CreditCommand {
  readonly stream: string;
  readonly events: readonly LedgerEvent[];
  readonly admit?: Admission;
  readonly credit?: CreditMove;
  /** What is recorded instead, by refusal. */
  readonly refused?: Readonly<Partial<Record<CreditRefusal, readonly LedgerEvent[]>>>;
}

/** Numbers of a decision, where they apply: milliseconds, admissions, micros. */
export interface CreditDetail {
  readonly remaining?: number | null;
  /** Until the minute admits one more. */
  readonly reset_ms?: number | null;
  readonly remaining_today?: number | null;
  readonly reset_today_ms?: number | null;
  /** Until the limit that refused admits one more. */
  readonly retry_ms?: number | null;
  /** The subject of that limit. */
  readonly full_subject?: string | null;
  /** What could have been held; after a move, the balance. */
  readonly available?: number | null;
}

export type CreditOutcome =
  | { readonly outcome: 'ok'; readonly version: number; readonly at: string; readonly detail: CreditDetail }
  | { readonly outcome: 'refused'; readonly code: CreditRefusal; readonly detail: CreditDetail };

export interface BatchAnswer {
  /** The events' time, which never goes back: not the database's clock. */
  readonly at: string;
  /** The database's clock, in Unix milliseconds. */
  readonly clock_ms: number;
  readonly seq: number;
  readonly open_calls: number;
  readonly unsettled_calls: number;
  readonly results: readonly (AppendOutcome | CreditOutcome | { readonly outcome: 'deferred' })[];
}

/** The answer to a batch that was written without deciding: every command was recorded, in their order. */
export interface UncontendedAnswer extends Omit<BatchAnswer, 'results'> {
  /** Of each command's stream, before it. */
  readonly versions: readonly number[];
  /** The ids of the calls that were added. */
  readonly added: readonly number[];
}

/** Nothing was recorded: the ledger is halted, for this reason, or must be: it lacks the batch that was answered last. */
export interface HaltAnswer {
  readonly halt: { readonly seq: number; readonly reason: string | null };
}

/** A command ready to be sent. */
export interface EncodedCommand {
  readonly text: string;
  /** JSON of the body that travels with it. */
  readonly body: string | undefined;
  /** The same for the cheap way into the ledger; undefined for a command of a kind that is always decided. */
  readonly parts: UncontendedParts | undefined;
}

/**
 * A command as the JSON that the append function reads. Event data is canonical text, stored byte for byte.
 * Throws where an event breaks its schema, so that it cannot fail a whole batch.
 */
export function encodeCommand(command: LaneCommand): EncodedCommand {
  const events = command.events.map(encodeEvent);
  const parts = [`"stream":${JSON.stringify(command.stream)}`, `"events":${eventsJson(events)}`];
  if (command.expect !== undefined) parts.push(`"expect":${command.expect}`);
  if (command.issuedAt !== undefined) parts.push(`"issued_at":${command.issuedAt}`);
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
    body: encodeBody(command.call),
    parts: uncontendedParts(command, events, claims),
  };
}

/** The same for a step of a chat. Throws where an amount is negative or exceeds 2^53. */
export function encodeCreditCommand({
  stream,
  events,
  admit,
  credit,
  refused,
}: CreditCommand): EncodedCommand {
  const parts = [`"stream":${JSON.stringify(stream)}`, `"events":${encodeEvents(events)}`];
  if (admit) parts.push(`"admit":${encodeAdmission(admit)}`);
  if (credit) parts.push(`"credit":${encodeMove(credit, refused?.gone !== undefined)}`);
  if (refused) {
    const byCode = Object.entries(refused).map(([code, instead]) => `"${code}":${encodeEvents(instead)}`);
    parts.push(`"lost":{${byCode.join(',')}}`, `"lost_stream":${JSON.stringify(stream)}`);
  }
  return { text: `{${parts.join(',')}}`, body: undefined, parts: undefined };
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
    counts_requests: admit.countsRequests,
    is_refused: admit.isRefused,
    key_id: admit.keyId,
    account_id: admit.accountId,
    hold: wholeMicros(admit.holdMicros),
    minimum: admit.leastMicros === undefined ? undefined : wholeMicros(admit.leastMicros),
  });
}

function encodeMove(move: CreditMove, corrects: boolean): string {
  if (move.op === 'open') {
    const { op, accountId, name } = move;
    return JSON.stringify({ op, account_id: accountId, name });
  }
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

function encodeEvents(events: readonly LedgerEvent[]): string {
  return eventsJson(events.map(encodeEvent));
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
    bodies.length === 0 ? '' : `select tollbook.put_bodies(${pg.escapeLiteral(`[${bodies.join(',')}]`)});\n`;
  const batch = pg.escapeLiteral(batchText(commands));
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
