import type pg from 'pg';
import { callTableFunction } from '../../ledger/store/functions.ts';
import type { LedgerDatabase } from '../../ledger/store/database.ts';
import type { LeaseWish } from '../../base/values/broker/lease-messages.ts';
import type { LeaseName } from './calls.ts';

/**
 * Takes and extends leases of calls of these services, at most until each call is `maxAgeSecs` old. Returns for how many milliseconds those
 * last that are held now, by their names, as `heldName` makes them.
 */
export async function holdLeases(
  pool: pg.Pool,
  leases: readonly LeaseWish[],
  services: readonly number[],
  leaseSecs: number,
  maxAgeSecs: number,
): Promise<ReadonlyMap<string, number>> {
  if (leases.length === 0) return new Map();
  const rows = await callTableFunction(pool, 'hold_leases', [
    leases.map(({ callId }) => String(callId)),
    leases.map(({ leaseId }) => leaseId),
    leases.map(({ newLeaseId }) => newLeaseId),
    services.map(String),
    leaseSecs,
    maxAgeSecs,
  ]);
  return new Map(rows.map((row) => [heldName(row.call_id, row.lease_id), row.lasts_ms]));
}

export function heldName(callId: number, leaseId: string): string {
  return `${callId} ${leaseId}`;
}

/** Those of the leases that still hold their calls: no runner has taken them. */
export async function findUntaken(
  db: LedgerDatabase,
  leases: readonly LeaseName[],
): Promise<ReadonlySet<string>> {
  if (leases.length === 0) return new Set();
  const ids = leases.map(({ leaseId }) => leaseId);
  const rows = await db
    .selectFrom('tollbook.call')
    .select(['call_id', 'lease_id'])
    .where(
      'call_id',
      'in',
      leases.map(({ callId }) => callId),
    )
    .where('lease_id', 'in', ids)
    .where('status', 'in', ['leased', 'unpaid'])
    .execute();
  return new Set(rows.map((row) => heldName(row.call_id, row.lease_id ?? '')));
}
