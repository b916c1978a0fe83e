import type { Balances, Entry } from '../../../base/values/entry.ts';
import { ExportError } from './source.ts';

export interface EntryPart {
  readonly kind: 'entry';
  readonly entry: Entry;
  /** The sweep that is this entry, or that carried its payment away; undefined if none was recorded before the period's end. */
  readonly payoutBatch: string | undefined;
}

/** What the accounts have when a period begins, then every entry of it. */
export type KeptPart = { readonly kind: 'balances'; readonly balances: Balances } | EntryPart;

/** The books of a ledger for a period, as they are posted in a database, or folded from a file. */
export interface KeptBooks {
  /** The events before the end of the period. */
  readonly events: number;
  keep(): AsyncGenerator<KeptPart>;
}

/**
 * The currency of credit: what the ledger says, or what somebody gave for a ledger that does not say it.
 * @throws ExportError if the two differ
 */
export function creditCurrency(said: string | undefined, given: string | undefined): string | undefined {
  if (said !== undefined && given !== undefined && said !== given)
    throw new ExportError(`--currency ${given}: the ledger says that its credit is in ${said}`);
  return said ?? given;
}
