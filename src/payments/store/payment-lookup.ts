import type pg from 'pg';
import { chunksOf } from '../../base/values/chunks.ts';
import { decodeLeaf } from '../../ledger/rules/event.ts';
import type { PaymentName } from '../rules/payment.ts';
import type { StreamReading } from '../../ledger/store/streams.ts';
import { paymentClaimKeys } from './claims.ts';

/** What the ledger knows about a payment as it arrives. */
export interface KnownPayment {
  /** The streams that claimed it: none for a new payment, several only if the payment leaves its asset open. */
  readonly streams: readonly string[];
  /** The quote it names; without events if it names none, or one that was never issued. */
  readonly quote: StreamReading;
  /** Quotes issued before this time, in Unix seconds, are revoked; 0 for none. */
  readonly revokedBefore: number;
}

interface Asked {
  readonly payment: PaymentName;
  readonly quoteDigest: string;
  readonly resolve: (known: KnownPayment) => void;
  readonly reject: (error: unknown) => void;
}

interface Row {
  readonly ord: number | null;
  readonly claimed: string | null;
  readonly leaf: string | null;
  readonly now: number;
  readonly revoked: number | null;
}

const maxTogether = 64;

/**
 * One statement for many payments: one by one, these two look-ups were a fifth of the database's work for a payment. Raw SQL,
 * prepared: it is on the path of every payment, and Kysely cannot join an unnest of several arrays.
 */
const lookUpPayments = `
  select found.ord, found.claimed, found.leaf, clock.now, clock.revoked
  from (
    select extract(epoch from tollbook.clock())::float8 as now, tollbook.quotes_revoked_before()::float8 as revoked) clock
  left join lateral (
    select asked.ord::int as ord, holder.stream as claimed, null::text as leaf, 0 as version
    from unnest($1::bytea[], $2::bytea[]) with ordinality as asked(lowest, highest, ord)
    cross join lateral (
      select tollbook.stream_name(claim.stream) as stream from tollbook.claim
      where claim.key >= asked.lowest and claim.key <= asked.highest
      offset 0) holder
    union all
    select named.ord::int, null, quoted.leaf, quoted.version
    from unnest($3::text[]) with ordinality as named(stream, ord)
    cross join lateral (
      select tollbook.leaf_text(event) as leaf, event.version from tollbook.event where event.stream = tollbook.stream_key(named.stream) offset 0) quoted
  ) found on true
  order by found.ord, found.version`;

export type PaymentLookup = ReturnType<typeof createPaymentLookup>;

/** Looks up payments as they arrive, those that arrive together in one statement. */
export function createPaymentLookup(pool: pg.Pool) {
  let waiting: Asked[] = [];

  const flush = (): void => {
    const all = waiting;
    waiting = [];
    for (const some of chunksOf(all, maxTogether)) void answer(pool, some);
  };

  return {
    find(payment: PaymentName, quoteDigest = ''): Promise<KnownPayment> {
      return new Promise((resolve, reject) => {
        if (waiting.push({ payment, quoteDigest, resolve, reject }) === 1) setImmediate(flush);
      });
    },
  };
}

async function answer(pool: pg.Pool, asked: readonly Asked[]): Promise<void> {
  try {
    const keys = asked.map(({ payment }) => paymentClaimKeys(payment));
    const { rows } = await pool.query<Row>({
      name: 'look_up_payments',
      text: lookUpPayments,
      values: [
        keys.map(([lowest]) => lowest),
        keys.map(([, highest]) => highest),
        asked.map(({ quoteDigest }) => quoteDigest),
      ],
    });
    const nowSecs = Math.floor(rows[0]?.now ?? 0);
    const revokedBefore = rows[0]?.revoked ?? 0;
    const found = asked.map(() => ({ streams: [] as string[], leaves: [] as string[] }));
    for (const { ord, claimed, leaf } of rows) {
      const mine = ord === null ? undefined : found[ord - 1];
      if (claimed !== null) mine?.streams.push(claimed);
      if (leaf !== null) mine?.leaves.push(leaf);
    }
    for (const [index, { streams, leaves }] of found.entries()) {
      const one = asked[index];
      if (one)
        settle(one, () => ({ streams, quote: { events: leaves.map(decodeLeaf), nowSecs }, revokedBefore }));
    }
  } catch (error) {
    for (const { reject } of asked) reject(error);
  }
}

/** A quote that this process cannot read, perhaps of a newer version, fails only the look-up that named it. */
function settle({ resolve, reject }: Asked, read: () => KnownPayment): void {
  try {
    resolve(read());
  } catch (error) {
    reject(error);
  }
}
