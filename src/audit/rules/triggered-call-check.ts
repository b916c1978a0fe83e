import { createHash } from 'node:crypto';
import type { CallStatus, EventDescriptor } from '../../ledger/rules/descriptor.ts';
import { type EventData, eventDescriptors, type LedgerEvent } from '../../ledger/rules/event.ts';

/** Checks the streams of calls that triggers made: each has one call, which no payment has bought, and each firing makes one. */
export class TriggeredCallCheck {
  readonly #calls = new Map<string, { readonly id: number; status: CallStatus; isGivenUp?: boolean }>();
  readonly #firings = new Set<string>();

  has(stream: string): boolean {
    return this.#calls.has(stream);
  }

  /** No later event is of the stream. */
  forget(stream: string): void {
    this.#calls.delete(stream);
  }

  /** Applies the first event of a stream. Returns the problem, or undefined if it is legal. */
  begin(data: EventData<'call_triggered'>, stream: string, version: number): string | undefined {
    if (version !== 1) return 'a triggered call must be the first event of its stream';
    const { ledger_id, trigger, trigger_name, trigger_id, body_sha256, idempotency_key: key } = data;
    if (key !== hashOf(['tollbook trigger', ledger_id, trigger, trigger_name, trigger_id, body_sha256]))
      return 'its idempotency key is not that of its trigger, id and body';
    if (stream !== `call:${key}`) return 'its stream is not named by its idempotency key';
    // the key names the ledger too, which a recovery or a move may change: the firing is used once all the same
    const used = JSON.stringify([trigger, trigger_name, trigger_id]);
    if (this.#firings.has(used)) return 'this firing was claimed before: it makes one call';
    this.#firings.add(used);
    this.#calls.set(stream, { id: data.call_id, status: 'enqueued' });
    return undefined;
  }

  /** The same for each later event. */
  apply({ type, data }: LedgerEvent, stream: string): string | undefined {
    const { transition }: EventDescriptor = eventDescriptors[type];
    if (transition.of === 'note') return undefined;
    if (transition.of !== 'call') return 'it does not belong to a call that a trigger made';
    const call = this.#calls.get(stream);
    if (call?.id !== ('call_id' in data ? data.call_id : undefined))
      return 'it names another call than that of its stream';
    if (call?.isGivenUp) return `the call was given up, which cannot be followed by ${type}`;
    if (!call || !transition.from.includes(call.status))
      return `the call is ${call?.status ?? 'missing'}, which cannot be followed by ${type}`;
    if (type === 'operator_discarded') call.isGivenUp = true;
    if (transition.to) call.status = transition.to;
    return undefined;
  }
}

function hashOf(parts: readonly string[]): string {
  return `0x${createHash('sha256').update(JSON.stringify(parts)).digest('hex')}`;
}
