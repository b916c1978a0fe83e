import type pg from 'pg';
import { privateKeyToAddress } from 'viem/accounts';
import type { Config } from '../../../base/config/config.ts';
import type { Caip2 } from '../../../base/values/primitives.ts';
import { listPayees } from '../../store/refunds.ts';

/**
 * The accounts that are known as the operator's on a network: the payees of the ledger and of the configuration, and the keys of the
 * configuration, which send spends and anchors. The others are what somebody has said: `stated`.
 */
export async function ownAccounts(
  pool: pg.Pool,
  network: Caip2,
  stated: readonly string[],
  config?: Config,
): Promise<ReadonlySet<string>> {
  const payees = await listPayees(pool, network);
  const accepted = config?.jobs?.acceptedTokens ?? [];
  const spend = config?.spend;
  const keys = [
    ...(spend?.network === network ? [spend.operatorKey] : []),
    ...(config?.log?.anchors ?? []).flatMap((anchor) =>
      anchor.kind === 'chain' && anchor.network === network ? [anchor.privateKey] : [],
    ),
  ];
  return new Set([
    ...stated,
    ...payees.map(({ pay_to: payTo }) => payTo),
    ...accepted.filter((one) => one.network === network).map(({ payTo }) => payTo),
    ...keys.map((key) => privateKeyToAddress(key).toLowerCase()),
  ]);
}
