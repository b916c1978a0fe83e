import type { Caip2, Hex } from '../../../base/values/primitives.ts';
import type { Receipt } from '../../../jobs/http/schemas/receipt.ts';
import { type ListedPayment, listLatestPayments } from '../../../ledger/store/payments.ts';
import { listWallets } from '../../../accounts/store/sign-in-ways.ts';
import type { Ledger } from '../../../ledger/store/ledger.ts';
import type { Visit } from '../visit.ts';

/** A wallet with which its user has signed in. */
export interface OwnWallet {
  readonly address: string;
  /** The only chain on which a contract has shown to be itself; undefined for a key. */
  readonly onlyOn: Caip2 | undefined;
}

/** The wallets of who is signed in: a sign-in is the wallet's own signature, as a request for its paid calls needs it. */
export async function ownWallets({ site, visitor }: Visit): Promise<readonly OwnWallet[]> {
  if (!visitor) return [];
  const wallets = await listWallets(site.identity.pool, visitor.userId);
  return wallets.map(({ address, chainId }) => ({
    address,
    onlyOn: chainId === 0 ? undefined : `eip155:${chainId}`,
  }));
}

/** Whether one of these wallets has paid. */
export function hasPaid(wallets: readonly OwnWallet[], { payment }: Pick<Receipt, 'payment'>): boolean {
  return wallets.some(
    ({ address, onlyOn }) =>
      payment?.payer === address && (onlyOn === undefined || onlyOn === payment.network),
  );
}

/** A settled payment of a wallet. */
export type PaidCall = ListedPayment & { readonly settled_at: string; readonly quote_digest: Hex };

/** The settled payments of a wallet, the newest first; those before a place in the ledger, where one is given. */
export async function latestPaidCalls(
  { pool }: Pick<Ledger, 'pool'>,
  { address: payer, onlyOn: network }: OwnWallet,
  beforeSeq: number | undefined,
  limit: number,
): Promise<{ readonly calls: readonly PaidCall[]; readonly before: number | undefined }> {
  const { rows } = await listLatestPayments(pool, { payer, network }, beforeSeq, limit);
  // an unsettled one may not be by the wallet that it names
  const calls = rows.filter((row): row is PaidCall => row.settled_at !== null);
  return { calls, before: rows.length === limit ? rows.at(-1)?.seq : undefined };
}
