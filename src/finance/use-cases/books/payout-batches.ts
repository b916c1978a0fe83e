import type { Entry } from '../../../base/values/entry.ts';
import type { EventData } from '../../../ledger/rules/event.ts';

/** A token at a payee, and a place on its chain. */
export interface PaidPlace {
  readonly network: string;
  readonly asset: string;
  readonly payTo: string;
  readonly blockNumber: bigint;
  readonly logIndex: number;
}

interface Sweep {
  readonly blockNumber: bigint;
  readonly logIndex: number;
  readonly name: string;
}

/** The name of a sweep. */
function sweepName(transaction: string | undefined, logIndex: number | undefined): string {
  return `${transaction}:${logIndex}`;
}

/** The sweep that is this entry, or that moved its payment; undefined if none did. */
export function batchOf(
  { category, transaction, logIndex, payment }: Entry,
  batches: PayoutBatches,
): string | undefined {
  if (category === 'sweep') return sweepName(transaction, logIndex);
  return payment?.place && batches.of({ ...payment, ...payment.place });
}

/**
 * The sweep that moved a payment: the first one of its token and payee after its place on the chain. Memory grows with the sweeps
 * alone.
 */
export class PayoutBatches {
  readonly #sweeps = new Map<string, Sweep[]>();
  #isSorted = true;

  take(data: EventData<'operator_sweep_recorded'>): void {
    const { network, asset, pay_to: payTo, block_number, log_index: logIndex } = data;
    const key = `${network}/${asset}/${payTo}`;
    const sweep = {
      blockNumber: BigInt(block_number),
      logIndex,
      name: sweepName(data.transaction, logIndex),
    };
    const known = this.#sweeps.get(key);
    if (known) known.push(sweep);
    else this.#sweeps.set(key, [sweep]);
    this.#isSorted = false;
  }

  /** The sweep's name; undefined if none was recorded that could have carried it. */
  of({ network, asset, payTo, ...place }: PaidPlace): string | undefined {
    if (!this.#isSorted) for (const sweeps of this.#sweeps.values()) sweeps.sort(compare);
    this.#isSorted = true;
    const sweeps = this.#sweeps.get(`${network}/${asset}/${payTo}`) ?? [];
    let [low, high] = [0, sweeps.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      const sweep = sweeps[middle];
      if (sweep && compare(sweep, place) < 0) low = middle + 1;
      else high = middle;
    }
    return sweeps[low]?.name;
  }
}

type Place = Pick<PaidPlace, 'blockNumber' | 'logIndex'>;

function compare(a: Place, b: Place): number {
  return a.blockNumber === b.blockNumber ? a.logIndex - b.logIndex : a.blockNumber < b.blockNumber ? -1 : 1;
}
