import pg from 'pg';
import { encodeEventData, type LedgerEvent } from '../domain/events/event.ts';

/** A value that may be claimed once; `binding` distinguishes a holder that repeats its claim from another claimant. */
export interface Claim {
  readonly kind:
    | 'payment'
    | 'quote'
    | 'caller_nonce'
    | 'payment_id'
    | 'transfer'
    | 'spend_auth'
    | 'spend_request';
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
      readonly op: 'add';
      readonly serviceId: number;
      readonly jobIndex: number;
      readonly bodyId: string;
      /** A small body travels with the command; a large one was stored before, under the same id. */
      readonly body?: CallBody | undefined;
      readonly network: string;
      readonly symbol: string;
      readonly caller: string | undefined;
      /** The payment that pays for it, as `paymentKey()` names it. The command's other claims are freed with it. */
      readonly payment: string;
      /** When the resolver first checks its settlement, where no outcome was recorded by then. */
      readonly delayMs: number;
    }
  /**
   * `watch`: its payment failed, but may still land; `remove`: it never will. Its settlement was disproved: `suspend` if no
   * runner has the call at this moment, `mark_unpaid` if one has.
   */
  | {
      readonly op: 'release' | 'watch' | 'remove' | 'suspend' | 'mark_unpaid' | 'requeue';
      readonly callId: number;
    }
  | { readonly op: 'complete' | 'check'; readonly callId: number; readonly leaseId: string }
  /** `error` is the runner's message for the operator: stored with the call, never in the ledger. */
  | {
      readonly op: 'dead_letter';
      readonly callId: number;
      readonly leaseId: string;
      readonly error?: string | undefined;
    }
  | {
      readonly op: 'retry' | 'return_lease';
      readonly callId: number;
      readonly leaseId: string;
      readonly delayMs: number;
      readonly error?: string | undefined;
    };

/** One atomic step: all of it is recorded, or nothing but `lost`. */
export interface LaneCommand {
  /** A quote's digest, or a request's id. */
  readonly stream: string;
  /** The version that the stream must have; any where left out. */
  readonly expect?: number | undefined;
  readonly events: readonly LedgerEvent[];
  readonly claims?: readonly Claim[];
  /** Claims of this stream to free. */
  readonly freed?: readonly Claim[];
  /** What to append where another stream holds a claim of that kind: in the loser's own stream, never in a payment's. */
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

/** Nothing was recorded: the ledger is halted, for this reason, or must be: it lacks the batch that was answered last. */
export interface HaltAnswer {
  readonly halt: { readonly seq: number; readonly reason: string | null };
}

/** A command ready to be sent. */
export interface EncodedCommand {
  readonly text: string;
  /** JSON of the body that travels with it. */
  readonly body: string | undefined;
}

/**
 * A command as the JSON that the append function reads. Event data is canonical text, stored byte for byte.
 * Throws where an event breaks its schema, so that it cannot fail a whole batch.
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
  return { text: `{${parts.join(',')}}`, body: undefined };
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

function encodeBody(call: CallChange | undefined): string | undefined {
  if (call?.op !== 'add' || !call.body) return undefined;
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
    case 'add': {
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
    case 'remove':
    case 'suspend':
    case 'mark_unpaid':
    case 'requeue':
      return JSON.stringify({ op: call.op, call_id: call.callId });
    case 'complete':
    case 'check':
      return JSON.stringify({ op: call.op, call_id: call.callId, lease_id: call.leaseId });
    case 'dead_letter':
      return JSON.stringify({ op: call.op, call_id: call.callId, lease_id: call.leaseId, error: call.error });
    case 'retry':
    case 'return_lease': {
      const { op, callId, leaseId, delayMs, error } = call;
      return JSON.stringify({ op, call_id: callId, lease_id: leaseId, delay_ms: delayMs, error });
    }
  }
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
  const batch = pg.escapeLiteral(`[${commands.map(({ text }) => text).join(',')}]`);
  return `${before}select tollbook.append(${laneId}::smallint, '${flusherId}', ${batchNo}, ${acknowledged}, ${batch}) as answer`;
}

/**
 * Whether a database error means that something in the batch can never be recorded.
 * Other errors (lost connection, lock time-out, shutdown, full disk) may pass when the batch is sent again.
 */
export function isPoison(error: unknown): boolean {
  if (!(error instanceof pg.DatabaseError) || error.code === undefined) return false;
  return /^(?:0A|21|22|23|42|P0)/.test(error.code) && error.code !== '42501' && error.code !== '42P01';
}
