import type pg from 'pg';
import type { Fingerprint } from '../../../payments/rules/payment.ts';
import { transactionKey } from '../../rules/reconcile/reconcile.ts';
import { type ChainTransfer } from '../../../payments/rules/chain-transfer.ts';
import type { AcceptedToken } from '../../../base/values/token.ts';
import type { TransferMethod } from '../../../base/values/transfer-method.ts';
import type { Address, Caip2, Hex } from '../../../base/values/primitives.ts';
import type { ChainScanner } from '../../../payments/peers/chain/transfer-scan.ts';
import { blockAt, pinBlocks } from '../reconcile/blocks.ts';
import { answered, ReconcileError } from '../reconcile/reconcile-error.ts';
import { scanTransfers } from '../reconcile/scan-transfers.ts';
import type { Lane } from '../../../ledger/store/lane.ts';
import { createPaymentLookup } from '../../../payments/store/payment-lookup.ts';
import { recoverPayment } from '../../../payments/store/recover-payment.ts';
import { readTransferHolders } from '../../../payments/store/claims.ts';

/** A token at a payee. */
export type SearchedAccount = Pick<AcceptedToken, 'asset' | 'payTo' | 'symbol' | 'decimals'>;

export interface NetworkToSearch {
  readonly chain: ChainScanner;
  readonly accounts: readonly SearchedAccount[];
  /** Unix milliseconds: payments of the lost events have landed within. */
  readonly fromMs: number;
  readonly untilMs: number;
  readonly onProgress: (done: bigint, all: bigint) => void;
}

/** A payment that landed and that no event explains. */
export interface LostPayment extends Fingerprint, SearchedAccount {
  readonly asset: Address;
  readonly transferMethod: TransferMethod;
  readonly transfer: ChainTransfer;
  readonly blockTimeSecs: number;
}

export interface NetworkSearch {
  readonly fromBlock: bigint;
  readonly toBlock: bigint;
  /** A final block is after `untilMs`: no lost payment can land any more. */
  readonly isComplete: boolean;
  readonly lost: readonly LostPayment[];
  /** Transfers from a payee without a refund, a sweep or a payment on record. */
  readonly leaving: readonly ChainTransfer[];
}

/**
 * Searches the final blocks of a period for payments to our payees that the ledger does not know. Reads all logs twice: a node
 * that leaves out one makes a customer lose money.
 * @throws ReconcileError if the chain does not answer
 */
export async function searchNetwork(pool: pg.Pool, search: NetworkToSearch): Promise<NetworkSearch> {
  const { chain, accounts, fromMs, untilMs, onProgress } = search;
  const blocks = await pinBlocks(chain, { fromMs, toMs: untilMs }, undefined);
  const payees = [...new Set(accounts.map(({ payTo }) => payTo))];
  const query = { assets: [...new Set(accounts.map(({ asset }) => asset))], payees };
  const scan = {
    chain,
    query,
    from: blocks.from,
    to: blocks.to,
    twice: true,
    resumeFile: undefined,
    onProgress,
  };
  const unclaimed: ChainTransfer[] = [];
  for await (const transfers of scanTransfers(scan))
    unclaimed.push(...(await withoutClaim(pool, chain.network as Caip2, transfers)));
  const isPayee = (address: string): boolean => payees.some((payee) => payee === address);
  const arriving = unclaimed.filter(({ to, amount }) => isPayee(to) && amount > 0n);
  return {
    fromBlock: blocks.from,
    toBlock: blocks.to,
    isComplete: blocks.isCovered,
    lost: await findLost(pool, search, arriving),
    leaving: unclaimed.filter(({ from, to, amount }) => isPayee(from) && from !== to && amount > 0n),
  };
}

/** The transfers that no payment, refund or sweep has claimed. */
async function withoutClaim(
  pool: pg.Pool,
  network: Caip2,
  transfers: readonly ChainTransfer[],
): Promise<ChainTransfer[]> {
  const byTransaction = Map.groupBy(transfers, ({ transaction }) => transaction);
  const free: ChainTransfer[] = [];
  for (const [transaction, all] of byTransaction) {
    const holders = await readTransferHolders(pool, network, transaction);
    free.push(...all.filter(({ logIndex }) => holders(logIndex) === undefined));
  }
  return free;
}

async function findLost(
  pool: pg.Pool,
  { chain, accounts }: NetworkToSearch,
  arriving: readonly ChainTransfer[],
): Promise<LostPayment[]> {
  const lookup = createPaymentLookup(pool);
  const lost: LostPayment[] = [];
  for (const transfers of Map.groupBy(arriving, transactionKey).values()) {
    const [first] = transfers;
    if (!first) continue;
    const transaction = first.transaction as Hex;
    const evidence = answered(
      chain.network,
      `the transfers of ${transaction}`,
      await chain.evidence({
        transaction,
        assets: [...new Set(transfers.map(({ asset }) => asset as Address))],
        from: [...new Set(transfers.map(({ from }) => from as Address))],
        place: { blockNumber: first.blockNumber, blockHash: first.blockHash as Hex },
      }),
    );
    if (evidence.kind !== 'mined' || !transfers.every((one) => isShown(one, evidence.transfers)))
      throw new ReconcileError(
        'logs_incomplete',
        `the RPC for ${chain.network} has a log of ${transaction} in a final block, but not among the logs of that block: use another RPC`,
      );
    for (const { asset, payer, nonce, logIndex, transferMethod } of evidence.authorizations) {
      const transfer = transfers.find((one) => one.logIndex === logIndex && one.asset === asset);
      const account = accounts.find((one) => one.asset === asset && one.payTo === transfer?.to);
      if (!transfer || !account) continue;
      const network = chain.network as Caip2;
      const name = { network, transferMethod, payer: payer as Address, nonce: nonce as Hex };
      const fingerprint = { ...name, asset: account.asset };
      const known = await lookup.find(fingerprint, undefined);
      if (known.streams.length > 0) continue;
      const { timestampSecs } = await blockAt(chain, transfer.blockNumber);
      lost.push({ ...account, ...fingerprint, transfer, blockTimeSecs: timestampSecs });
    }
  }
  return lost;
}

function isShown({ logIndex, asset }: ChainTransfer, transfers: readonly ChainTransfer[]): boolean {
  return transfers.some((one) => one.logIndex === logIndex && one.asset === asset);
}

/** Records a lost payment. False if it is on record already. */
export async function recordLostPayment(lane: Lane, lost: LostPayment, generation: number): Promise<boolean> {
  const { transfer, blockTimeSecs } = lost;
  const { transaction, amount } = transfer;
  const landed = { ...lost, amount, transaction, place: { ...transfer, blockTimeSecs } };
  const { outcome } = await lane.append(recoverPayment(landed, { generation }), { urgent: true });
  return outcome === 'ok';
}
