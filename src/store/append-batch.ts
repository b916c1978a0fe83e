import pg from 'pg';
import { encodeEventData, type LedgerEvent } from '../domain/events/event.ts';

/** Something that may be held once; `binding` tells a holder who comes back from a stranger. */
export interface Claim {
  readonly kind: 'payment' | 'quote' | 'caller_nonce' | 'payment_id' | 'transfer' | 'spend_auth';
  readonly owner: string;
  readonly scope: string;
  readonly key: string;
  readonly binding: string;
}

/** A request's bytes, untouched. */
export interface CallBody {
  readonly contentType: string | undefined;
  readonly bytes: Buffer;
}

/** What happens to the call that belongs to a stream. Changes of a leased call carry its lease: the fencing token. */
export type CallChange =
  | {
      readonly op: 'hold';
      readonly serviceId: number;
      readonly jobIndex: number;
      readonly bodyId: string;
      /** A small body travels with the command; a large one was stored before, under the same id. */
      readonly body?: CallBody | undefined;
      readonly network: string;
      readonly symbol: string;
      readonly caller: string | undefined;
      /** The payment that pays for it, by its claim's name. What the command claims beside it is given up with it. */
      readonly payment: string;
      /** When its settlement is looked after, should nobody have recorded an outcome by then. */
      readonly delayMs: number;
    }
  /**
   * `watch`: its payment failed, but may land yet; `withdraw`: it never will. `hold_back`: its settlement does not stand,
   * and no runner has it yet.
   */
  | { readonly op: 'release' | 'watch' | 'withdraw' | 'hold_back' | 'requeue'; readonly callId: number }
  | { readonly op: 'complete' | 'check'; readonly callId: number; readonly leaseId: string }
  /** `error` is a runner's own word for the operator: it stands beside the call, never in the ledger. */
  | {
      readonly op: 'dead';
      readonly callId: number;
      readonly leaseId: string;
      readonly error?: string | undefined;
    }
  | {
      readonly op: 'retry' | 'give_back';
      readonly callId: number;
      readonly leaseId: string;
      readonly delayMs: number;
      readonly error?: string | undefined;
    };

/** One atomic step: all of it is recorded, or nothing but `lost`. */
export interface LaneCommand {
  /** A quote's digest, or a request's id. */
  readonly stream: string;
  /** The version the stream must be at; left out, wherever it is. */
  readonly expect?: number | undefined;
  readonly events: readonly LedgerEvent[];
  readonly claims?: readonly Claim[];
  /** Claims of this stream to give up. */
  readonly freed?: readonly Claim[];
  /** What to append where somebody else holds a claim of that kind: in the loser's own stream, never in a payment's. */
  readonly lost?: {
    readonly stream: string;
    readonly events: Readonly<Partial<Record<Claim['kind'], readonly LedgerEvent[]>>>;
  };
  readonly call?: CallChange;
}

export type AppendOutcome =
  | {
      readonly outcome: 'ok';
      readonly version: number;
      readonly seq: number | null;
      readonly call_id: number | null;
      /** When it was recorded, by the database's clock: RFC 3339 UTC. */
      readonly at: string;
    }
  /** `same`: the holder has the same binding, so it is this very request, come again. */
  | { readonly outcome: 'lost' | 'same'; readonly claim: Claim['kind']; readonly stream: string }
  | { readonly outcome: 'stale' | 'lease_lost' };

/** Asks for one completion to be admitted: key, limits and credit together, or nothing of it. */
export interface Admission {
  readonly chatId: string;
  /** The process that will bring it to its end. */
  readonly processId: string;
  /** Whose limit it counts against. */
  readonly subject: string;
  readonly perMinute: number;
  readonly perDay: number | undefined;
  readonly keyId: number | undefined;
  readonly accountId: number | undefined;
  /** Micros it may cost at most; 0 for a free model. */
  readonly holdMicros: bigint;
  /** Where there are so many micros the same will be asked for less: nothing is recorded of the refusal. */
  readonly leastMicros?: bigint | undefined;
}

/** What moves on an account; the command's events say the same. */
export type CreditMove =
  | { readonly op: 'open'; readonly accountId: number; readonly name: string }
  | {
      /** `expire` takes away, the others add. */
      readonly op: 'grant' | 'top_up' | 'expire';
      readonly accountId: number;
      readonly amountMicros: bigint;
      /** What is asked for under a name is done once. */
      readonly requestId?: string | undefined;
    }
  /** Ends a chat's hold: what it cost is taken, the rest is free again. */
  | {
      readonly op: 'settle';
      readonly chatId: string;
      readonly capturedMicros: bigint;
      readonly releasedMicros: bigint;
      /** Only where its upstream has not begun to answer. */
      readonly isUnstarted?: boolean;
      /** Ended for a process that is not seen: only while it is not. */
      readonly recovery?: { readonly processId: string; readonly silentSecs: number };
    };

/**
 * `gone`: the hold was ended by another process, or has begun to cost, or its process is seen again; an account of that name
 * is open already, has not so much to take away, or cannot have more. A settlement that brings events for it is a correction
 * too: where the whole hold was taken for this process, what it would have released comes back, and they are recorded.
 * `repeated`: the same was done under this request id before; `request_id_taken`: something else was.
 */
export type CreditRefusal =
  | 'invalid_api_key'
  | 'rate_limit_exceeded'
  | 'daily_quota_exceeded'
  | 'insufficient_funds'
  | 'key_cap_reached'
  | 'gone'
  | 'repeated'
  | 'request_id_taken';

/** A step of model chat: its limits and its credit are decided where they are counted, in the lane. */
export interface CreditCommand {
  readonly stream: string;
  readonly events: readonly LedgerEvent[];
  readonly admit?: Admission;
  readonly credit?: CreditMove;
  /** What is recorded instead, by why. */
  readonly refused?: Readonly<Partial<Record<CreditRefusal, readonly LedgerEvent[]>>>;
}

/** Numbers beside a verdict, each where it has a meaning: milliseconds, admissions, micros. */
export interface CreditDetail {
  readonly remaining?: number | null;
  /** Until there is room for one more in the minute. */
  readonly reset_ms?: number | null;
  readonly remaining_today?: number | null;
  readonly reset_today_ms?: number | null;
  /** Until the limit that refused admits one more. */
  readonly retry_ms?: number | null;
  /** What could have been held; after a move, what can be spent. */
  readonly available?: number | null;
}

export type CreditOutcome =
  | { readonly outcome: 'ok'; readonly version: number; readonly at: string; readonly detail: CreditDetail }
  | { readonly outcome: 'refused'; readonly code: CreditRefusal; readonly detail: CreditDetail };

export interface BatchAnswer {
  readonly at: string;
  readonly seq: number;
  readonly open_calls: number;
  readonly results: readonly (AppendOutcome | CreditOutcome | { readonly outcome: 'deferred' })[];
}

/** A command ready to be sent. */
export interface EncodedCommand {
  readonly text: string;
  /** JSON of the body that travels with it. */
  readonly body: string | undefined;
}

/**
 * A command as the JSON the append function reads. Event data goes in as canonical text and is stored to the byte.
 * Throws where an event breaks its schema, so a poison row is refused before it can spoil a batch.
 */
export function encodeCommand(command: LaneCommand): EncodedCommand {
  const parts = [`"stream":${JSON.stringify(command.stream)}`, `"events":${encodeEvents(command.events)}`];
  if (command.expect !== undefined) parts.push(`"expect":${command.expect}`);
  if (command.claims) parts.push(`"claims":${JSON.stringify(command.claims)}`);
  if (command.freed) parts.push(`"freed":${JSON.stringify(command.freed)}`);
  if (command.lost) {
    const byKind = Object.entries(command.lost.events).map(
      ([kind, events]) => `"${kind}":${encodeEvents(events)}`,
    );
    parts.push(`"lost":{${byKind.join(',')}}`, `"lost_stream":${JSON.stringify(command.lost.stream)}`);
  }
  if (command.call) parts.push(`"call":${encodeCall(command.call)}`);
  return { text: `{${parts.join(',')}}`, body: encodeBody(command.call) };
}

/** The same for a step of model chat. Throws where an amount is not a whole one that fits the database. */
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
    const byCode = Object.entries(refused).map(([code, told]) => `"${code}":${encodeEvents(told)}`);
    parts.push(`"lost":{${byCode.join(',')}}`, `"lost_stream":${JSON.stringify(stream)}`);
  }
  return { text: `{${parts.join(',')}}`, body: undefined };
}

function encodeAdmission(admit: Admission): string {
  return JSON.stringify({
    chat_id: admit.chatId,
    process_id: admit.processId,
    subject: admit.subject,
    per_minute: admit.perMinute,
    per_day: admit.perDay,
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

/** Micros as JSON's number: whatever anybody has is far below 2^53. */
function wholeMicros(amount: bigint): number {
  if (amount < 0n || amount > BigInt(Number.MAX_SAFE_INTEGER))
    throw new RangeError('an amount of credit beyond 2^53');
  return Number(amount);
}

function encodeBody(call: CallChange | undefined): string | undefined {
  if (call?.op !== 'hold' || !call.body) return undefined;
  const { contentType, bytes } = call.body;
  return JSON.stringify({
    body_id: call.bodyId,
    content_type: contentType,
    base64: bytes.toString('base64'),
  });
}

function encodeEvents(events: readonly LedgerEvent[]): string {
  return `[${events.map((event) => `{"type":"${event.type}","data":${encodeEventData(event)}}`).join(',')}]`;
}

function encodeCall(call: CallChange): string {
  switch (call.op) {
    case 'hold': {
      const { op, serviceId, jobIndex, bodyId, network, symbol, caller, payment, delayMs } = call;
      return JSON.stringify({
        op,
        service_id: serviceId,
        job_index: jobIndex,
        body_id: bodyId,
        network,
        symbol,
        caller,
        payment,
        delay_ms: delayMs,
      });
    }
    case 'release':
    case 'watch':
    case 'withdraw':
    case 'hold_back':
    case 'requeue':
      return JSON.stringify({ op: call.op, call_id: call.callId });
    case 'complete':
    case 'check':
      return JSON.stringify({ op: call.op, call_id: call.callId, lease_id: call.leaseId });
    case 'dead':
      return JSON.stringify({ op: call.op, call_id: call.callId, lease_id: call.leaseId, error: call.error });
    case 'retry':
    case 'give_back': {
      const { op, callId, leaseId, delayMs, error } = call;
      return JSON.stringify({ op, call_id: callId, lease_id: leaseId, delay_ms: delayMs, error });
    }
  }
}

/**
 * The batch as one text, for one simple-protocol message: with Parse, Bind and Execute apart, a client that vanishes
 * before Sync would keep the lane's lock past every statement time-out. Its bodies go before it, in the same transaction
 * and the same round trip, so that the lock is asked for only once they are written.
 */
export function appendStatement(
  laneId: number,
  flusherId: string,
  batchNo: number,
  commands: readonly EncodedCommand[],
): string {
  const bodies = commands.flatMap(({ body }) => body ?? []);
  const before =
    bodies.length === 0 ? '' : `select tollbook.put_bodies(${pg.escapeLiteral(`[${bodies.join(',')}]`)});\n`;
  const batch = pg.escapeLiteral(`[${commands.map(({ text }) => text).join(',')}]`);
  return `${before}select tollbook.append(${laneId}::smallint, '${flusherId}', ${batchNo}, ${batch}) as answer`;
}

/**
 * Whether an error of the database means that something in the batch can never be recorded.
 * Anything else (lost connection, lock time-out, shutdown, full disk) may pass when sent again.
 */
export function isPoison(error: unknown): boolean {
  if (!(error instanceof pg.DatabaseError) || error.code === undefined) return false;
  return /^(?:0A|21|22|23|42|P0)/.test(error.code) && error.code !== '42501' && error.code !== '42P01';
}
