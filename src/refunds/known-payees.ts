import type pg from 'pg';
import type { Address, Caip2 } from '../domain/values/primitives.ts';
import type { AcceptedToken } from '../domain/values/token.ts';
import { type KnownPayee, listPayees } from '../store/refunds.ts';

/** A token at a payee, by the configuration. */
export type KnownToken = Pick<AcceptedToken, 'network' | 'asset' | 'symbol' | 'decimals' | 'payTo'>;

/** The payees of a network with their tokens: those of the ledger, then those of the configuration. */
export async function knownPayees(
  pool: pg.Pool,
  network: Caip2,
  accepted: readonly KnownToken[],
): Promise<KnownPayee[]> {
  return [
    // the terms of signed quotes take precedence over the configuration
    ...(await listPayees(pool, network)),
    ...accepted.filter((one) => one.network === network).map((one) => ({ ...one, pay_to: one.payTo })),
  ];
}

export function tokensOf(payees: readonly KnownPayee[]): Address[] {
  return [...new Set(payees.map(({ asset }) => asset as Address))];
}
