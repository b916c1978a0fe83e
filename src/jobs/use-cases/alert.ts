import type { EventOf, RecordedEvent, TypesFollowedBy } from '../../ledger/rules/event.ts';
import { isHex32 } from '../../base/values/primitives.ts';
import type { QueuedAlert } from '../../ledger/store/alerts.ts';

/** The alert for an event of the ledger: it is sent once, and nothing resolves it. */
export function alertOf(event: RecordedEvent): QueuedAlert {
  const { type, seq, at, stream, data } = event;
  const isQuote = isHex32(stream);
  const text = `${sentence(event)}${isQuote ? ` Quote ${stream}.` : ''}`;
  const about = isQuote ? { quote_digest: stream } : { stream };
  const details = { seq, at, ...about, data };
  return { id: `tollbook-${seq}`, kind: type, subject: String(seq), status: 'firing', text, details };
}

/** The alert for an event that a worker could not read or book. */
export function unreadableAlert({ seq, stream }: Pick<RecordedEvent, 'seq' | 'stream'>): QueuedAlert {
  const text =
    `Event ${seq} of the stream ${stream} cannot be read by this version, or contradicts the events before it, so what follows from it is ` +
    `not done and the read models pass over it. If a newer version wrote it, update every gateway and run \`tollbook projections rebuild\`; else another ` +
    `program has appended it with the gateway's role.`;
  const of = { id: `tollbook-unreadable-${seq}`, kind: 'unreadable_event', subject: String(seq) };
  return { ...of, status: 'firing', text, details: { seq, stream } };
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
  refund_requested({ data: { payer } }) {
    return `The payer ${payer} asks for a refund: see its reason, and decide, on the payment's page of the console or with \`tollbook refunds requests\`.`;
  },
  operator_payouts_postponed({ data: { network, amount, reason } }) {
    const fault =
      reason === 'gas_too_expensive'
        ? `their gas costs more than half of them, or more than max_fee_per_gas_wei allows (one of ${amount} atoms)`
        : 'a transaction of the operator does not land, also for the highest fee that max_fee_per_gas_wei allows';
    return `Payouts of spends on ${network} wait: ${fault}. They are lost once their spends expire; see \`tollbook spend list\`.`;
  },
  operator_usage_implausible({ data: { upstream, model, chat_id, problem } }) {
    const fault =
      problem === 'malformed'
        ? 'a token count that is not a whole number'
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
