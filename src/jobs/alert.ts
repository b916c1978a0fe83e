import type { RecordedEvent } from '../domain/events/event.ts';

/** What an operator is told of at once. */
export interface Alert {
  /** The same for every sending of this alert. */
  readonly id: string;
  readonly type: RecordedEvent['type'];
  /** One sentence for a person; chat services show it as it is. */
  readonly text: string;
}

/** The alert that an event of the ledger gives rise to. */
export function alertOf(event: RecordedEvent): Alert {
  const { type, seq, stream } = event;
  return { id: `tollbook-${seq}`, type, text: `${sentence(event)} Quote ${stream}.` };
}

function sentence(event: RecordedEvent): string {
  switch (event.type) {
    case 'settlement_disproved': {
      const { transaction, reason, call, payer } = event.data;
      return `A settlement does not stand on the chain (${reason}): the facilitator named ${transaction} for a payment of ${payer}; its call was ${callWord(call)}.`;
    }
    case 'settlement_reorged': {
      const { transaction, block_number, call } = event.data;
      return `The block ${block_number} of a settlement was replaced: transaction ${transaction} is looked for again; its call was ${callWord(call)}.`;
    }
    case 'payer_mismatch':
      return `The facilitator says that ${event.data.settled_payer} paid what ${event.data.payer} had signed; the chain is asked.`;
    case 'settlement_overdue':
      return `A payment of ${event.data.payer} has had no outcome for ${event.data.age_secs} seconds (${event.data.reason}): see \`tollbook settlements\`.`;
    default:
      return `${event.type} at ${event.at}.`;
  }
}

function callWord(call: 'withdrawn' | 'kept'): string {
  return call === 'withdrawn' ? 'taken back' : 'already with its runner';
}

/** The body of the webhook: the alert, and the event as it stands in the ledger. */
export function alertBody(event: RecordedEvent): string {
  const { type, text } = alertOf(event);
  const { seq, at, stream, data } = event;
  return JSON.stringify({ type, text, seq, at, quote_digest: stream, data });
}
