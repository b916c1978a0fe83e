import type { EventOf, RecordedEvent, TypesFollowedBy } from '../domain/events/event.ts';
import { isHex32 } from '../domain/values/primitives.ts';

/** An alert to the operator. */
export interface Alert {
  /** The same each time this alert is sent. */
  readonly id: string;
  readonly type: RecordedEvent['type'];
  /** One sentence for a person; chat services show it as it is. */
  readonly text: string;
}

/** The alert for an event of the ledger. */
export function alertOf(event: RecordedEvent): Alert {
  const { type, seq, stream } = event;
  const about = isHex32(stream) ? ` Quote ${stream}.` : '';
  return { id: `tollbook-${seq}`, type, text: `${sentence(event)}${about}` };
}

const sentences: { readonly [T in TypesFollowedBy<'alert'>]: (event: EventOf<T>) => string } = {
  settlement_disproved({ data: { transaction, reason, call, payer } }) {
    return `A settlement does not hold on the chain (${reason}): the facilitator named ${transaction} for a payment of ${payer}; its call was ${callText(call)}.`;
  },
  settlement_reorged({ data: { transaction, block_number, call } }) {
    return `The block ${block_number} of a settlement was replaced: transaction ${transaction} is being looked for again; its call was ${callText(call)}.`;
  },
  payer_mismatch({ data }) {
    return `The facilitator says that ${data.settled_payer} paid for what ${data.payer} signed; the gateway checks the chain.`;
  },
  settlement_overdue({ data: { payer, age_secs, reason } }) {
    return `A payment of ${payer} has had no outcome for ${age_secs} seconds (${reason}): see \`tollbook settlements\`.`;
  },
  operator_usage_implausible({ data: { upstream, model, chat_id, problem } }) {
    const fault =
      problem === 'malformed'
        ? 'a token count that is no whole number'
        : 'more tokens than it was allowed to use';
    return `The upstream ${upstream} reported ${fault} for ${model}, completion ${chat_id}: at most its hold was charged; other such reports of this hour are not repeated.`;
  },
};

function sentence(event: RecordedEvent): string {
  if (!Object.hasOwn(sentences, event.type)) return `${event.type} at ${event.at}.`;
  const write = sentences[event.type as keyof typeof sentences] as (event: RecordedEvent) => string;
  return write(event);
}

function callText(call: 'withdrawn' | 'kept'): string {
  return call === 'withdrawn' ? 'taken back' : 'already with its runner';
}

/** The body of the webhook: the alert and its event. */
export function alertBody(event: RecordedEvent): string {
  const { type, text } = alertOf(event);
  const { seq, at, stream, data } = event;
  const about = isHex32(stream) ? { quote_digest: stream } : { stream };
  return JSON.stringify({ type, text, seq, at, ...about, data });
}
