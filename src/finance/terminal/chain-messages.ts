import type { NoTransfers } from '../use-cases/refunds/final-transfers.ts';

/** Messages for a transaction whose transfers could not be read. */
export const chainMessages: Readonly<Record<NoTransfers, string>> = {
  network_unknown: 'no RPC of that network is configured: name one with --rpc or --config',
  wrong_chain: 'the RPC for that network serves another chain',
  chain_unavailable: 'the chain could not be reached; nothing was recorded',
  transaction_unknown: 'the chain has no such transaction',
  transaction_failed: 'that transaction failed: it moved nothing',
  not_final: 'that transaction is not final yet: try again in a few minutes',
};
