import type pg from 'pg';
import type { LedgerDatabase } from './database.ts';
import type { Lane } from './lane.ts';

/** The ledger as a process has it: connections that read, and the lane that appends. */
export interface Ledger {
  readonly pool: pg.Pool;
  readonly db: LedgerDatabase;
  readonly lane: Lane;
}

/** Where the ledger is only read. */
export type LedgerReader = Pick<Ledger, 'pool' | 'db'>;
/** Where streams are read, and events appended. */
export type LedgerWriter = Pick<Ledger, 'pool' | 'lane'>;

/** The database's clock as last read, in Unix seconds. */
export function nowSecs({ lane }: Pick<Ledger, 'lane'>): number {
  return Math.floor((Date.now() + lane.state.clockOffsetMs) / 1_000);
}

/** The calls that take the places of paid ones: those of triggers have a separate limit. */
export function openPaidCalls({ lane }: Pick<Ledger, 'lane'>): number {
  return lane.state.openCalls - lane.state.triggeredCalls;
}
