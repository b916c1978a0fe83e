import type pg from 'pg';
import type { EventData } from '../domain/events/event.ts';
import { type Caip2, chainIdOf, type Hex } from '../domain/values/primitives.ts';
import type { AcceptedToken } from '../domain/values/token.ts';
import { placeData } from '../domain/payments/transfer-place.ts';
import type { LedgerDatabase } from '../store/database.ts';
import type { Lane } from '../store/lane.ts';
import { findRefundsDueTo, listPayees } from '../store/refunds.ts';
import { readTransferHolders, transferClaim } from '../store/streams.ts';
import {
  type Chains,
  type MinedTransfers,
  type NoTransfers,
  readMined,
  type Refused,
  refused,
  requireFinal,
} from './final-transfers.ts';
import { projectToHead } from '../projections/project.ts';

/** An operator's word that a transaction moved income away from where it is paid to. */
export interface SweepOrder {
  readonly network: Caip2;
  readonly transaction: Hex;
  readonly operator: string;
  /** Recorded as a sweep even where it looks like a refund that nobody recorded. */
  readonly isNoRefund: boolean;
}

export type SweepRefusal =
  | NoTransfers
  /** Nothing in it left an address that is paid to. */
  | 'no_sweep'
  /** It gives a payer exactly what is owed back. */
  | 'refund_due'
  /** All of it is payments and refunds already. */
  | 'transfer_claimed';

export type Sweep = EventData<'operator_sweep_recorded'>;

export interface SweepsRecorded {
  readonly kind: 'recorded';
  readonly recorded: readonly Sweep[];
  /** Recorded before, and not now. */
  readonly repeated: readonly Sweep[];
  /** Transfers that are something else, with the stream that says what. */
  readonly skipped: readonly { readonly sweep: Sweep; readonly stream: string }[];
}

interface Ledger {
  readonly pool: pg.Pool;
  readonly db: LedgerDatabase;
  readonly lane: Lane;
}

type Known = Pick<AcceptedToken, 'network' | 'asset' | 'symbol' | 'decimals' | 'payTo'>;

/**
 * Records what a final transaction moved away from addresses that are paid to, each transfer as a sweep of its own. Nothing
 * of it is recorded where a transfer looks like a refund that is due. `accepted` are the configured tokens; those of
 * earlier configurations are known from the ledger.
 */
export async function recordSweep(
  ledger: Ledger,
  order: SweepOrder,
  chains: Chains,
  accepted: readonly Known[],
): Promise<SweepsRecorded | Refused<SweepRefusal>> {
  const { network, transaction } = order;
  const mined = await readMined(chains, network, transaction);
  if (mined.kind === 'refused') return mined;
  await projectToHead(ledger);
  const leaving = await findLeaving(ledger, network, mined, accepted);
  const sweeps = leaving.map((found) => ({ ...found, network, transaction, operator: order.operator }));
  if (sweeps.length === 0) return refused('no_sweep');
  const early = await requireFinal(chains, network, mined);
  if (early) return early;
  const holders = await readTransferHolders(ledger.pool, network, transaction);
  const free = sweeps.filter(({ log_index }) => !holders.has(log_index));
  const due = order.isNoRefund ? undefined : await findDue(ledger, network, free);
  return due ?? appendAll(ledger, sweeps, holders);
}

/** What left addresses that are paid to, for any other address. */
async function findLeaving(
  { pool }: Ledger,
  network: Caip2,
  mined: MinedTransfers,
  accepted: readonly Known[],
) {
  const moved = mined.transfers.filter(({ from, to, value }) => from !== to && value > 0n);
  const known = [
    // what was signed says best what a token was
    ...(await listPayees(pool, network)),
    ...accepted.filter((one) => one.network === network).map((one) => ({ ...one, pay_to: one.payTo })),
  ];
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
  { pool }: Ledger,
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
  { lane }: Ledger,
  sweeps: readonly Sweep[],
  holders: ReadonlyMap<number, string>,
): Promise<SweepsRecorded | Refused<SweepRefusal>> {
  const recorded: Sweep[] = [];
  const repeated: Sweep[] = [];
  const skipped: { sweep: Sweep; stream: string }[] = [];
  for (const sweep of sweeps) {
    const stream = streamOf(sweep);
    const holder = holders.get(sweep.log_index) ?? (await appendOne(lane, sweep));
    if (holder === undefined) recorded.push(sweep);
    else if (holder === stream) repeated.push(sweep);
    else skipped.push({ sweep, stream: holder });
  }
  if (recorded.length + repeated.length > 0) return { kind: 'recorded', recorded, repeated, skipped };
  return refused('transfer_claimed', skipped.map(({ stream }) => stream).join(' '));
}

/** Undefined where it is recorded now; otherwise the stream that has the transfer. */
async function appendOne(lane: Lane, sweep: Sweep): Promise<string | undefined> {
  const { network, transaction, log_index } = sweep;
  const stream = streamOf(sweep);
  const told = await lane.append({
    stream,
    expect: 0,
    events: [{ type: 'operator_sweep_recorded', data: sweep }],
    claims: [transferClaim(network as Caip2, transaction, log_index, 'sweep')],
  });
  if (told.outcome === 'ok') return undefined;
  return 'stream' in told ? told.stream : stream;
}

/** A sweep's stream is named by its transfer: nobody can begin it twice. */
function streamOf({ network, transaction, log_index }: Sweep): string {
  return `sweep:${chainIdOf(network) ?? 0}:${transaction}:${log_index}`;
}
