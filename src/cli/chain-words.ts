import type { NoTransfers } from '../refunds/final-transfers.ts';

/** Why a transaction could not be looked up, for a person. */
export const chainWords: Readonly<Record<NoTransfers, string>> = {
  network_unknown: 'no RPC of that network is known: --rpc names one, or the configuration',
  wrong_chain: 'the RPC given for that network serves another chain',
  chain_unavailable: 'the chain cannot be asked now; nothing was recorded',
  transaction_unknown: 'the chain has never heard of that transaction',
  transaction_failed: 'that transaction failed: it moved nothing',
  not_final: 'that transaction is not final yet: ask again in a while',
};
