import type pg from 'pg';
import type { Caip2, Hex } from '../domain/values/primitives.ts';
import type { Lane } from '../store/lane.ts';
import { listStreams } from '../store/refunds.ts';
import { astrayClaims } from '../store/recorded-claims.ts';
import { readStream } from '../store/streams.ts';
import { type Refused, refused } from './final-transfers.ts';
import { type AstrayRecord, standing, transferStreams } from './recorded-transfer.ts';

/** An operator's statement that a record of a transfer is wrong. */
export interface ReversalOrder {
  readonly network: Caip2;
  readonly transaction: Hex;
  /** Which of its transfers; needed where several are recorded. */
  readonly logIndex: number | undefined;
  readonly why: string;
  readonly operator: string;
}

export type ReversalRefusal = 'not_recorded' | 'transfer_ambiguous' | 'superseded';

interface Ledger {
  readonly pool: pg.Pool;
  readonly lane: Lane;
}

const maxTries = 5;

/**
 * Takes back all that was recorded of a transfer that is no payment: its transfers are free for other records, such as the payment
 * that it turned out to be.
 */
export async function reverseAstray(
  ledger: Ledger,
  order: ReversalOrder,
): Promise<{ readonly kind: 'reversed'; readonly record: AstrayRecord } | Refused<ReversalRefusal>> {
  for (let tries = 0; tries < maxTries; tries++) {
    const found = await findStanding(ledger.pool, order);
    if (found.kind === 'refused') return found;
    const { stream, version, record } = found;
    const { network, transaction, log_index } = record;
    const { why, operator } = order;
    const { outcome } = await ledger.lane.append({
      stream,
      expect: version,
      events: [
        { type: 'operator_transfer_reversed', data: { network, transaction, log_index, why, operator } },
      ],
      freed: astrayClaims(record),
    });
    if (outcome === 'ok') return { kind: 'reversed', record };
  }
  return refused('superseded');
}

interface Standing {
  readonly kind: 'standing';
  readonly stream: string;
  readonly version: number;
  readonly record: AstrayRecord;
}

async function findStanding(
  pool: pg.Pool,
  { network, transaction, logIndex }: ReversalOrder,
): Promise<Standing | Refused<ReversalRefusal>> {
  const found: Standing[] = [];
  for (const stream of await listStreams(pool, transferStreams({ network, transaction }))) {
    const { version, record } = standing((await readStream(pool, stream)).events);
    if (record && (logIndex === undefined || record.log_index === logIndex))
      found.push({ kind: 'standing', stream, version, record });
  }
  const [first, another] = found;
  if (!first) return refused('not_recorded');
  return another
    ? refused('transfer_ambiguous', found.map(({ record }) => String(record.log_index)).join(' '))
    : first;
}
