import type { Bridge, BridgeLine } from './bridge.ts';
import type { ItemFields } from './tally.ts';

type Shown =
  | 'of'
  | 'seq'
  | 'quote_digest'
  | 'recorded_at'
  | 'from'
  | 'to'
  | 'transaction'
  | 'block_number'
  | 'log_index'
  | 'why';

/** Items by which the books and the chain differ, for one reason. Amounts are above 0 if the chain has more. */
export interface BridgeLineJson {
  readonly reason: string;
  readonly count: number;
  readonly atoms: string;
  readonly items: readonly (Pick<ItemFields, Shown> & { readonly atoms: string })[];
}

/** From the closing of the books, by the time of recording, to the chain's balance at the end of the period. In atoms. */
export interface BridgeJson {
  /** Of `Assets:Chain`, and of `Assets:Unconfirmed`: paid by the report of a facilitator alone. */
  readonly books: string;
  readonly unconfirmed: string;
  /** Of `Assets:Treasury`: from before the address was a payee. */
  readonly treasury: string;
  readonly lines: readonly BridgeLineJson[];
  /** What the chain had at the opening beyond the ledger: earlier periods name it. Null if its balance is not known. */
  readonly opening: string | null;
  /** What is left: 0 if the lines explain everything. */
  readonly not_explained: string | null;
}

/** `chainOpening`, `chainClosing`: null if the node has no such state. `before`: the ledger's own opening. */
export function bridgeJson(
  { books, lines }: Bridge,
  chainOpening: bigint | null,
  before: bigint,
  chainClosing: bigint | null,
): BridgeJson {
  const opening = chainOpening === null ? null : chainOpening - before;
  const explained = lines.reduce(
    (sum, { atoms }) => sum + atoms,
    books.chain + books.unconfirmed + books.treasury,
  );
  const isKnown = opening !== null && chainClosing !== null;
  return {
    books: String(books.chain),
    unconfirmed: String(books.unconfirmed),
    treasury: String(books.treasury),
    lines: lines.map(lineJson),
    opening: opening === null ? null : String(opening),
    not_explained: isKnown ? String(chainClosing - opening - explained) : null,
  };
}

function lineJson({ reason, count, atoms, items }: BridgeLine): BridgeLineJson {
  return {
    reason,
    count,
    atoms: String(atoms),
    items: items.map(({ atoms: own, fields }) => ({ ...shown(fields), atoms: String(own) })),
  };
}

function shown(fields: ItemFields): Pick<ItemFields, Shown> {
  const { of, seq, quote_digest, recorded_at, from, to, transaction, block_number, log_index, why } = fields;
  const all = { of, seq, quote_digest, recorded_at, from, to, transaction, block_number, log_index, why };
  const known = Object.entries(all).filter(([, value]) => value !== undefined);
  return Object.fromEntries(known) as unknown as Pick<ItemFields, Shown>;
}
