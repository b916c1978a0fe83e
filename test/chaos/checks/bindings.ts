import { keccak256, stringToBytes } from 'viem/utils';
import type { EventData, RecordedEvent } from '../../../src/ledger/rules/event.ts';
import { sha256 } from '../../../src/base/values/sha256.ts';
import { paymentKey, type Records } from '../records.ts';
import type { Violation } from './violation.ts';

/** Payments of bound quotes by another payer, or for another body. What was sent is known from the clients. */
export function* bindingViolations(
  events: readonly RecordedEvent[],
  { presentations }: Pick<Records, 'presentations'>,
): Generator<Violation> {
  const bound = new Map<string, EventData<'quote_issued'>>();
  for (const { type, stream, data } of events) {
    if (type === 'quote_issued' && data.source === 'pricing') bound.set(stream, data);
    const quote = bound.get(stream);
    if (type !== 'settlement_started' || !quote) continue;
    const { payer, asset, nonce } = data.payment;
    const words = `the bound quote ${stream} is paid by ${payer}`;
    if (payer !== quote.requester) yield { kind: 'binding_broken', words: `${words}, another payer` };
    const key = paymentKey(asset, payer, nonce);
    const sent = presentations.find(
      ({ signed, body }) => signed.key === key && sha256(body) === data.body_sha256,
    );
    if (sent && keccak256(stringToBytes(sent.body)) !== quote.inputs_hash)
      yield { kind: 'binding_broken', words: `${words}, for another body` };
  }
}
