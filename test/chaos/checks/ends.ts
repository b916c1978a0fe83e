import type { RecordedEvent } from '../../../src/ledger/rules/event.ts';
import type { Violation } from './violation.ts';

/**
 * Payments that were started when their quote had ended: their payers may have been told that they are refused. A payment that had landed
 * is started late as well. Only for a ledger whose clock was right all the time.
 */
export function* endViolations(events: readonly RecordedEvent[]): Generator<Violation> {
  const ends = new Map<string, number>();
  const landed = new Set<string>();
  for (const { type, stream, at, data } of events) {
    if (type === 'quote_issued') ends.set(stream, data.expires_at);
    if (type === 'payment_verified' && data.by === 'chain') landed.add(data.payment_nonce);
    if (type !== 'settlement_started' || landed.has(data.payment.nonce)) continue;
    const endMs = (ends.get(stream) ?? Infinity) * 1_000;
    if (Date.parse(at) >= endMs)
      yield {
        kind: 'started_after_its_end',
        words: `${stream} ended at ${new Date(endMs).toISOString()}, and was paid at ${at}`,
      };
  }
}
