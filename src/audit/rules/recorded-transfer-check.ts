import type { EventData, LedgerEvent } from '../../ledger/rules/event.ts';

type Recorded = EventData<'operator_transfer_recorded'>;

/** The place of a transfer on a chain. */
export type TransferPlace = Pick<Recorded, 'network' | 'transaction' | 'log_index'>;

/** What an event changes of the transfers that streams hold. */
interface HeldTransfers {
  readonly claims: readonly TransferPlace[];
  readonly frees: readonly TransferPlace[];
}

const terms = [
  'network',
  'asset',
  'symbol',
  'decimals',
  'pay_to',
  'received_from',
  'amount',
  'transaction',
  'block_number',
  'block_hash',
  'log_index',
] as const satisfies (keyof Recorded)[];

/** The records of unexplained transfers, reduced to the values that decide which record may follow. */
export class RecordedTransferCheck {
  readonly #known = new Map<string, Recorded>();

  /** Applies the next event of a stream. Returns the transfers that it claims and frees, or the problem. */
  apply(
    event: Extract<LedgerEvent, { type: 'operator_transfer_recorded' | 'operator_transfer_reversed' }>,
    stream: string,
  ): HeldTransfers | { readonly words: string } {
    const before = this.#known.get(stream);
    if (event.type === 'operator_transfer_reversed') {
      this.#known.delete(stream);
      return { claims: [], frees: before ? placesOf(before) : [] };
    }
    const words = problemOf(event.data, before);
    if (words !== undefined) return { words };
    this.#known.set(stream, event.data);
    const all = placesOf(event.data);
    return { claims: before ? all.slice(1) : all, frees: [] };
  }
}

/** The transfer itself, then the one that gave it back. */
function placesOf(data: Recorded): TransferPlace[] {
  return [data, ...(data.returned ? [{ ...data.returned, network: data.network }] : [])];
}

function problemOf(data: Recorded, before: Recorded | undefined): string | undefined {
  if ((data.as === 'returned') !== (data.returned !== undefined))
    return 'money is returned by another transfer, and by no other use';
  if (data.pay_to === data.received_from && data.as !== 'own')
    return "a transfer from a payee to itself is the operator's own";
  if (!before) return data.as === 'returned' ? 'money was returned that was not in suspense' : undefined;
  if (before.as !== 'suspense' || !(data.as === 'income' || data.as === 'returned'))
    return 'only money in suspense becomes income or is returned';
  const differing = terms.find((name) => data[name] !== before[name]);
  return differing === undefined
    ? undefined
    : `its ${differing} is not that of the record before it: it describes another transfer`;
}
