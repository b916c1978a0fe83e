import type { Entry } from '../../../base/values/entry.ts';
import { openBooks } from './books.ts';
import type { LedgerSource } from './source.ts';

/** A payment that a sweep moved, with the amount that the payee received; below 0 if the payment was taken back. */
export interface CarriedPayment {
  readonly entry: Entry;
  readonly atoms: bigint;
}

/** The sweep, then every payment of its token and payee between the sweep before it and itself, by their places on the chain. */
export type SweepPart =
  | { readonly kind: 'sweep'; readonly entry: Entry }
  | ({ readonly kind: 'payment' } & CarriedPayment);

/**
 * The payments that a sweep moved, in the order of the ledger. `isOf` says whether a value of the column `payout_batch` names the sweep.
 * Memory does not grow with the ledger.
 */
export async function* sweepParts(
  source: LedgerSource,
  isOf: (name: string) => boolean,
): AsyncGenerator<SweepPart> {
  const books = await openBooks(source, { fromMs: 0, toMs: source.nowMs });
  for await (const part of books.parts()) {
    if (part.kind !== 'entry' || part.payoutBatch === undefined || !isOf(part.payoutBatch)) continue;
    const { entry } = part;
    if (entry.category === 'sweep') yield { kind: 'sweep', entry };
    else if (isReceipt(entry)) yield { kind: 'payment', entry, atoms: receivedBy(entry) };
  }
}

function isReceipt({ category }: Entry): boolean {
  return category === 'payment' || category === 'confirmation' || category === 'reversal';
}

function receivedBy({ moves }: Entry): bigint {
  return moves.reduce(
    (sum, { debit, credit, atoms }) => sum + (isChain(debit) ? atoms : 0n) - (isChain(credit) ? atoms : 0n),
    0n,
  );
}

function isChain(account: string): boolean {
  return account.startsWith('Assets:Chain:');
}
