import type pg from 'pg';
import type { NoteSigner } from '../../../base/values/log/checkpoint.ts';
import { originIn } from '../../../base/values/log/log-generation.ts';
import type { AcceptedToken } from '../../../base/values/token.ts';
import type { Address } from '../../../base/values/primitives.ts';
import type { ChainScanner } from '../../../payments/peers/chain/transfer-scan.ts';
import { projectToHead } from '../../../audit/use-cases/projections/project.ts';
import { ReconcileError } from '../reconcile/reconcile-error.ts';
import { identityData, readIdentity } from '../../../ledger/store/database-identity.ts';
import { listPaidAccounts, readRecovery, type Recovery } from '../../../ledger/store/recovery.ts';
import type { Loss } from './find-loss.ts';
import {
  type LostPayment,
  type NetworkSearch,
  recordLostPayment,
  type SearchedAccount,
  searchNetwork,
} from './search-network.ts';
import type { Ledger } from '../../../ledger/store/ledger.ts';

export interface RecoveryOrder {
  readonly loss: Loss;
  readonly sinceSecs: number;
  readonly operator: string;
  readonly why?: string;
  /** The signer of the log's first generation; undefined if nothing is sealed. */
  readonly signer: NoteSigner | undefined;
  /** The generation when the order was decided on. */
  readonly after: number;
}

/**
 * Begins the next generation of the log, ends the halt, and records that this database continues the ledger. Undefined if
 * another command has begun a generation meanwhile.
 */
export async function beginRecovery(ledger: Ledger, order: RecoveryOrder): Promise<Recovery | undefined> {
  const { loss, sinceSecs, operator, why, signer, after } = order;
  const { anchored, keptSeq, lostFrom, lostTo, reason } = loss;
  const generation = after + 1;
  const database = identityData(await readIdentity(ledger.pool));
  const { outcome } = await ledger.lane.append(
    {
      stream: `recovery:${generation}`,
      expect: 0,
      events: [
        {
          type: 'ledger_recovered',
          data: {
            generation,
            ...(signer && {
              origin: originIn(signer.name, generation - 1),
              new_origin: originIn(signer.name, generation),
            }),
            ...(anchored && {
              anchored_size: anchored.size,
              anchored_root: `0x${anchored.root.toString('hex')}`,
            }),
            kept_seq: keptSeq,
            ...(lostFrom !== undefined && { lost_from: lostFrom }),
            ...(lostTo !== undefined && { lost_to: lostTo }),
            since: sinceSecs,
            reason,
            operator,
            ...(why !== undefined && { why }),
            database,
          },
        },
      ],
    },
    { urgent: true },
  );
  return outcome === 'ok' ? readRecovery(ledger.pool) : undefined;
}

export interface SearchOptions {
  /** By network. */
  readonly chains: ReadonlyMap<string, ChainScanner>;
  /** The tokens of the configuration, in addition to those of the payments on record. */
  readonly accepted: readonly AcceptedToken[];
  /** Unix seconds. */
  readonly sinceSecs: number;
  /** Unix seconds: no payment that was lost can land later. */
  readonly untilSecs: number;
  readonly onProgress: (network: string, done: bigint, all: bigint) => void;
}

export type SearchResult = { readonly network: string } & (
  | { readonly kind: 'searched'; readonly search: NetworkSearch }
  /** The chain could not be read completely. */
  | { readonly kind: 'failed'; readonly words: string }
);

/**
 * Payments are searched from this long before the last event that was kept: clocks differ, and events may have been recorded
 * here after the loss and before it was noticed. Transfers that are on record are not found again.
 */
const marginSecs = 86_400;

/** Searches every network of the configuration and of the ledger, except those of `skip`. */
export async function* searchNetworks(
  ledger: Ledger,
  options: SearchOptions,
  skip: ReadonlySet<string>,
): AsyncGenerator<SearchResult> {
  await projectToHead(ledger);
  const accounts = await accountsByNetwork(ledger.pool, options.accepted);
  for (const [network, own] of accounts) {
    if (skip.has(network)) continue;
    const chain = options.chains.get(network);
    if (!chain) {
      const words = `no RPC is known for ${network}: name one with --rpc ${network}=URL`;
      yield { network, kind: 'failed', words };
      continue;
    }
    yield { network, ...(await searchOne(ledger.pool, chain, own, options)) };
  }
}

async function searchOne(
  pool: pg.Pool,
  chain: ChainScanner,
  accounts: readonly SearchedAccount[],
  { sinceSecs, untilSecs, onProgress }: SearchOptions,
): Promise<{ kind: 'searched'; search: NetworkSearch } | { kind: 'failed'; words: string }> {
  try {
    const search = await searchNetwork(pool, {
      chain,
      accounts,
      fromMs: Math.max(0, sinceSecs - marginSecs) * 1_000,
      untilMs: untilSecs * 1_000,
      onProgress: (done, all) => onProgress(chain.network, done, all),
    });
    return { kind: 'searched', search };
  } catch (error) {
    if (error instanceof ReconcileError) return { kind: 'failed', words: error.message };
    throw error;
  }
}

async function accountsByNetwork(
  pool: pg.Pool,
  accepted: readonly AcceptedToken[],
): Promise<ReadonlyMap<string, readonly SearchedAccount[]>> {
  const configured = accepted.map(({ network, asset, payTo, symbol, decimals }) => ({
    network: network as string,
    asset,
    payTo,
    symbol,
    decimals,
  }));
  const paid = (await listPaidAccounts(pool)).map(({ network, asset, pay_to, symbol, decimals }) => ({
    network,
    asset: asset as Address,
    payTo: pay_to as Address,
    symbol,
    decimals,
  }));
  return Map.groupBy([...configured, ...paid], ({ network }) => network);
}

export interface RecordedSearch {
  readonly recorded: readonly LostPayment[];
  /** By another command, meanwhile. */
  readonly repeated: readonly LostPayment[];
}

/** Records the payments found on a network, and, once no more can land there, that the network was searched. */
export async function recordSearch(
  { lane }: Ledger,
  { data: { generation } }: Recovery,
  network: string,
  { lost, isComplete, fromBlock, toBlock }: NetworkSearch,
): Promise<RecordedSearch> {
  const recorded: LostPayment[] = [];
  const repeated: LostPayment[] = [];
  for (const payment of lost)
    ((await recordLostPayment(lane, payment, generation)) ? recorded : repeated).push(payment);
  if (isComplete)
    await lane.append({
      stream: `recovery:${generation}`,
      events: [
        {
          type: 'network_searched',
          data: {
            generation,
            network,
            from_block: String(fromBlock),
            to_block: String(toBlock),
            found: lost.length,
          },
        },
      ],
    });
  return { recorded, repeated };
}
