import type { EventOf } from '../../../ledger/rules/event.ts';
import { proofIn } from '../../../payments/rules/payment-progress.ts';
import type { OutFact } from './fact.ts';

type TransferEvent = EventOf<'operator_transfer_recorded' | 'operator_transfer_reversed'>;

/** What operators recorded of money that came without a payment: by stream the facts that stand now. */
export class RecordedTransfers {
  readonly #facts = new Map<string, readonly OutFact[]>();

  /** Applies the next event: the facts that it replaces, and those that stand instead. */
  take(event: TransferEvent): { readonly gone: readonly OutFact[]; readonly stand: readonly OutFact[] } {
    const gone = this.#facts.get(event.stream) ?? [];
    const stand = event.type === 'operator_transfer_recorded' ? factsOf(event, gone) : [];
    if (stand.length > 0) this.#facts.set(event.stream, stand);
    else this.#facts.delete(event.stream);
    return { gone, stand };
  }

  all(): OutFact[] {
    return [...this.#facts.values()].flat();
  }
}

/** The transfer to the payee, as old as its first record; then the one that gave it back. */
function factsOf({ seq, at, data }: EventOf<'operator_transfer_recorded'>, [first]: readonly OutFact[]) {
  const common = {
    of: data.as,
    network: data.network,
    asset: data.asset,
    amount: BigInt(data.amount),
    quoteDigest: undefined,
  };
  const came: OutFact = {
    ...common,
    seq: first?.seq ?? seq,
    recordedAt: first?.recordedAt ?? at,
    payTo: data.received_from,
    to: data.pay_to,
    transaction: data.transaction,
    ...proofIn(data),
  };
  if (!data.returned) return [came];
  const { from, transaction } = data.returned;
  const back = { payTo: from, to: data.received_from, transaction, ...proofIn(data.returned) };
  return [came, { ...common, seq, recordedAt: at, ...back }];
}
