import pg from 'pg';
import { encodeEventData, type LedgerEvent } from '../domain/event.ts';

/** Something that may be held once; `binding` tells a holder who comes back from a stranger. */
export interface Claim {
  readonly kind: 'payment' | 'quote' | 'caller_nonce' | 'payment_id' | 'transfer';
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

export interface BatchAnswer {
  readonly at: string;
  readonly seq: number;
  readonly open_calls: number;
  readonly results: readonly (AppendOutcome | { readonly outcome: 'deferred' })[];
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
