import type { EventData } from '../../../ledger/rules/event.ts';
import { type Caip2, chainIdOf, type Hex } from '../../../base/values/primitives.ts';
import { placeData } from '../../../payments/rules/chain-transfer.ts';
import type { Lane } from '../../../ledger/store/lane.ts';
import { findRefundsDueTo, type KnownPayee } from '../../../payments/store/refunds.ts';
import { sweepClaim } from '../../../payments/store/recorded-claims.ts';
import { readTransferHolders } from '../../../payments/store/claims.ts';
import {
  type Chains,
  knownPayees,
  type KnownToken,
  type MinedTransfers,
  type NoTransfers,
  readMined,
  recordTransferCost,
  type Refused,
  refused,
  requireFinal,
  tokensOf,
  type TransferCost,
} from './final-transfers.ts';
import { projectToHead } from '../../../audit/use-cases/projections/project.ts';
import type { Ledger, LedgerWriter } from '../../../ledger/store/ledger.ts';

/** An operator's statement that a transaction moved income from payees to other addresses. */
export interface SweepOrder {
  readonly network: Caip2;
  readonly transaction: Hex;
  readonly operator: string;
  /** Record it as a sweep even if it looks like an unrecorded refund. */
  readonly isNoRefund: boolean;
}

export type SweepRefusal =
  | NoTransfers
  /** No transfer of it is from a payee. */
  | 'no_sweep'
  /** A transfer is to a payer to whom at least as much is due as a refund. */
  | 'refund_due'
  /** All its transfers are recorded as payments or refunds. */
  | 'transfer_claimed';

export type Sweep = EventData<'operator_sweep_recorded'>;

export interface SweepsRecorded {
  readonly kind: 'recorded';
  readonly recorded: readonly Sweep[];
  /** Recorded by an earlier command. */
  readonly repeated: readonly Sweep[];
  /** Transfers that another stream claims, with that stream. */
  readonly skipped: readonly { readonly sweep: Sweep; readonly stream: string }[];
  /** What the transaction cost. */
  readonly cost: TransferCost;
}

/**
 * Records the transfers of a final transaction from payees, each as one sweep. Nothing is recorded if a transfer matches a
 * refund that is due. `accepted` are the configured tokens; those of earlier configurations come from the ledger.
 */
export async function recordSweep(
  ledger: Ledger,
  order: SweepOrder,
  chains: Chains,
  accepted: readonly KnownToken[],
): Promise<SweepsRecorded | Refused<SweepRefusal>> {
  const { network, transaction } = order;
  await projectToHead(ledger);
  const known = await knownPayees(ledger.pool, network, accepted);
  const mined = await readMined(chains, network, transaction, tokensOf(known));
  if (mined.kind === 'refused') return mined;
  const leaving = findLeaving(mined, known);
  const sweeps = leaving.map((found) => ({ ...found, network, transaction, operator: order.operator }));
  const [first] = sweeps;
  if (!first) return refused('no_sweep');
  const notFinal = await requireFinal(chains, network, mined);
  if (notFinal) return notFinal;
  const holders = await readTransferHolders(ledger.pool, network, transaction);
  const free = sweeps.filter(({ log_index }) => holders(log_index) === undefined);
  const due = order.isNoRefund ? undefined : await findDue(ledger, network, free);
  const answer = due ?? (await appendAll(ledger, sweeps, holders));
  if (answer.kind === 'refused') return answer;
  const { operator } = order;
  const of = { network, transaction, purpose: 'sweep', operator } as const;
  return { ...answer, cost: await recordTransferCost(ledger, chains, of, first.pay_to) };
}

/** The transfers from payees to other addresses. */
function findLeaving(mined: MinedTransfers, known: readonly KnownPayee[]) {
  const moved = mined.transfers.filter(({ from, to, value }) => from !== to && value > 0n);
  return moved.flatMap((transfer) => {
    const { asset, from, to, value } = transfer;
    const payee = known.find((one) => one.asset === asset && one.pay_to === from);
    if (!payee) return [];
    const { symbol, decimals } = payee;
    const parties = { asset, symbol, decimals, pay_to: from, swept_to: to };
    return [{ ...parties, amount: String(value), ...placeData({ ...mined, ...transfer }) }];
  });
}

async function findDue(
  { pool }: LedgerWriter,
  network: Caip2,
  sweeps: readonly Sweep[],
): Promise<Refused<SweepRefusal> | undefined> {
  for (const { asset, swept_to: payer, amount } of sweeps) {
    const digests = await findRefundsDueTo(pool, { network, asset, payer, amount: BigInt(amount) });
    if (digests.length > 0) return refused('refund_due', digests.join(' '));
  }
  return undefined;
}

async function appendAll(
  { lane }: LedgerWriter,
  sweeps: readonly Sweep[],
  holders: (logIndex: number) => string | undefined,
): Promise<Omit<SweepsRecorded, 'cost'> | Refused<SweepRefusal>> {
  const recorded: Sweep[] = [];
  const repeated: Sweep[] = [];
  const skipped: { sweep: Sweep; stream: string }[] = [];
  for (const sweep of sweeps) {
    const stream = streamOf(sweep);
    const holder = holders(sweep.log_index) ?? (await appendOne(lane, sweep));
    if (holder === undefined) recorded.push(sweep);
    else if (holder === stream) repeated.push(sweep);
    else skipped.push({ sweep, stream: holder });
  }
  if (recorded.length + repeated.length > 0) return { kind: 'recorded', recorded, repeated, skipped };
  return refused('transfer_claimed', skipped.map(({ stream }) => stream).join(' '));
}

/** Undefined if it is recorded now; otherwise the stream that claims the transfer. */
async function appendOne(lane: Lane, sweep: Sweep): Promise<string | undefined> {
  const stream = streamOf(sweep);
  const appended = await lane.append({
    stream,
    expect: 0,
    events: [{ type: 'operator_sweep_recorded', data: sweep }],
    claims: [sweepClaim(sweep)],
  });
  if (appended.outcome === 'ok') return undefined;
  return 'stream' in appended ? appended.stream : stream;
}

/** The stream is named by the transfer, so a sweep can be recorded only once. */
function streamOf({ network, transaction, log_index }: Sweep): string {
  return `sweep:${chainIdOf(network) ?? 0}:${transaction}:${log_index}`;
}
