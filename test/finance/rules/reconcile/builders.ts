import type { LedgerEvent } from '../../../../src/ledger/rules/event.ts';
import type { ItemClass } from '../../../../src/finance/rules/reconcile/reconcile.ts';
import type { ChainTransfer, Evidence } from '../../../../src/payments/rules/chain-transfer.ts';
import { hex32Of, paidJob } from '../../../support/synthetic-ledger.ts';

export const network = 'eip155:84532';
/** The token and the payee of every payment. */
export const asset = `0x${'5f'.repeat(20)}`;
export const otherAsset = `0x${'6e'.repeat(20)}`;
export const payTo = `0x${'90'.repeat(20)}`;
export const stranger = `0x${'77'.repeat(20)}`;
export const vault = `0x${'88'.repeat(20)}`;
/** Another payee of ours, which the ledger knows by its quotes. */
export const otherPayTo = `0x${'91'.repeat(20)}`;

/** Before, in and after the period: events come in this order, those of one phase in any. */
type Phase = 0 | 1 | 2;

/** One thing that happened, as ledger and chain have it, and what must be said of it. */
export interface Planted {
  readonly events: readonly { readonly stream: string; readonly event: LedgerEvent; readonly phase: Phase }[];
  /** On the chain; those outside of the period's blocks are only in receipts. */
  readonly transfers?: readonly ChainTransfer[];
  readonly authorizations?: readonly { readonly transfer: ChainTransfer; readonly nonce: string }[];
  readonly evidence?: readonly { readonly transaction: string; readonly is: Evidence }[];
  /** Class by the quote or the transaction that the item is of. */
  readonly expected: readonly (readonly [ItemClass, string])[];
}

export interface Job {
  readonly stream: string;
  readonly quote: LedgerEvent;
  readonly verified: LedgerEvent;
  readonly started: Extract<LedgerEvent, { type: 'settlement_started' }>;
  readonly settled: Extract<LedgerEvent, { type: 'payment_settled' }>;
  readonly enqueued: LedgerEvent;
  readonly delivered: LedgerEvent;
  readonly completed: LedgerEvent;
  /** The transfer that the payment authorizes, if the ledger says. */
  readonly transfer: ChainTransfer;
  readonly named: object;
}

export function jobOf(n: number): Job {
  const jobEvents = paidJob(n);
  const [quote, verified, started, settled, enqueued, delivered, completed] = jobEvents.map(
    ({ event }) => event,
  );
  if (started?.type !== 'settlement_started' || settled?.type !== 'payment_settled')
    throw new Error('no job');
  const { data } = settled;
  return {
    stream: jobEvents[0]!.stream,
    quote: quote!,
    verified: verified!,
    started,
    settled,
    enqueued: enqueued!,
    delivered: delivered!,
    completed: completed!,
    transfer: {
      network,
      asset,
      from: data.payer,
      to: payTo,
      amount: BigInt(data.amount),
      transaction: data.transaction,
      blockNumber: BigInt(data.block_number ?? 0),
      blockHash: data.block_hash ?? '',
      logIndex: data.log_index ?? 0,
    },
    named: { network, asset, payer: data.payer, payment_nonce: data.payment_nonce },
  };
}

export const make = (type: string, data: object) => ({ type, data }) as LedgerEvent;

/** The settlement with other data; `undefined` removes a field. */
export function settledWith({ settled }: Job, change: object): LedgerEvent {
  return { ...settled, data: { ...settled.data, ...change } };
}

export const reportedOnly = {
  evidence: 'facilitator',
  block_number: undefined,
  block_hash: undefined,
  log_index: undefined,
};

export function eventsOf(job: Job, events: readonly LedgerEvent[], phase: Phase = 1): Planted['events'] {
  return [job.quote, job.verified, ...events].map((event) => ({ stream: job.stream, event, phase }));
}

export function completedWith(job: Job, settled: LedgerEvent = job.settled): LedgerEvent[] {
  return [job.started, settled, job.enqueued, job.delivered, job.completed];
}

/** The chain's record that the payment's own nonce moved its transfer. */
export function authorized({ transfer, settled }: Job): NonNullable<Planted['authorizations']>[number] {
  return { transfer, nonce: settled.data.payment_nonce };
}

export function minedWith(transfers: readonly ChainTransfer[]): Evidence {
  return { kind: 'mined', transfers, authorizations: [] };
}

/** The receipt of a transfer in a block before the period. */
export function shownBefore(transfer: ChainTransfer): NonNullable<Planted['evidence']>[number] {
  const blockNumber = 999n;
  return { transaction: transfer.transaction, is: minedWith([{ ...transfer, blockNumber }]) };
}

export function outTransfer(n: number, to: string): ChainTransfer {
  const { transfer } = jobOf(n);
  return { ...transfer, from: payTo, to, transaction: hex32Of(`out ${n}`), logIndex: 3 };
}

export function sweepOf(out: ChainTransfer, change: object = {}): Planted['events'] {
  const data = {
    network,
    asset,
    symbol: 'USDC',
    decimals: 6,
    pay_to: payTo,
    swept_to: out.to,
    amount: String(out.amount),
    transaction: out.transaction,
    block_number: String(out.blockNumber),
    block_hash: out.blockHash,
    log_index: out.logIndex,
    operator: 'ada',
    ...change,
  };
  const stream = `sweep:84532:${out.transaction}:${out.logIndex}`;
  return [{ stream, event: make('operator_sweep_recorded', data), phase: 1 }];
}

/** What an operator recorded of a transfer to the payee. */
export function recordOf(came: ChainTransfer, as: string, change: object = {}): Planted['events'][number] {
  const data = {
    as,
    network,
    asset,
    symbol: 'USDC',
    decimals: 6,
    pay_to: came.to,
    received_from: came.from,
    amount: String(came.amount),
    ...placeIn(came),
    operator: 'ada',
    ...change,
  };
  return { stream: streamOf(came), event: make('operator_transfer_recorded', data), phase: 1 };
}

/** The record is taken back. */
export function reversalOf(came: ChainTransfer): Planted['events'][number] {
  const { transaction, logIndex: log_index } = came;
  const data = { network, transaction, log_index, why: 'wrong', operator: 'ada' };
  return { stream: streamOf(came), event: make('operator_transfer_reversed', data), phase: 1 };
}

/** The transfer that gave the money back. */
export function returnedBy(back: ChainTransfer): object {
  return { returned: { from: back.from, ...placeIn(back) } };
}

function placeIn({ transaction, blockNumber, blockHash, logIndex }: ChainTransfer) {
  return { transaction, block_number: String(blockNumber), block_hash: blockHash, log_index: logIndex };
}

function streamOf({ transaction, logIndex }: ChainTransfer): string {
  return `transfer:84532:${transaction}:${logIndex}`;
}

/** Prepaid credits that their contract pays out to the payee. */
export function spendOf(
  { from: contract, amount, transaction, blockNumber, blockHash }: ChainTransfer,
  operator: string,
  isLanded = true,
) {
  const place = { transaction, block_number: String(blockNumber), block_hash: blockHash };
  const data = { network, contract, operator, amount: String(amount), ...(isLanded && place) };
  return [{ stream: `spend:${transaction}`, event: make('spend_paid_out', data), phase: 1 as const }];
}

export function refundOf(job: Job, out: ChainTransfer): LedgerEvent {
  return make('refunded', {
    ...job.named,
    amount: String(out.amount),
    refunded_from: out.from,
    refunded_to: out.to,
    transaction: out.transaction,
    block_number: String(out.blockNumber),
    block_hash: out.blockHash,
    log_index: out.logIndex,
    operator: 'ada',
  });
}

/** A dead letter whose refund is recorded as whole and to its payer, and what its transaction has really moved. */
export function refundWith(n: number, moved: Partial<ChainTransfer>, is: ItemClass): Planted {
  const job = jobOf(n);
  const dead = make('dead_lettered', { call_id: n + 1, attempt: 1, reason: 'attempts_exhausted' });
  const out = { ...outTransfer(n, job.transfer.from), amount: job.transfer.amount };
  const events = eventsOf(job, [job.started, job.settled, job.enqueued, dead, refundOf(job, out)]);
  const expected = [
    ['matched', job.stream],
    [is, job.stream],
  ] as const;
  return { events, transfers: [job.transfer, { ...out, ...moved }], expected };
}

/** A facilitator named the transaction of another payment of the same payer and amount, which went on so. */
export function reportNaming(n: number, goesOn: (other: Job) => LedgerEvent[], is: ItemClass): Planted {
  const [job, other] = [jobOf(n), jobOf(n + 150_000)];
  const named = settledWith(job, { ...reportedOnly, transaction: other.transfer.transaction });
  const expected = [
    ['matched', job.stream],
    [is, other.stream],
  ] as const;
  return {
    events: [...eventsOf(job, completedWith(job, named)), ...eventsOf(other, goesOn(other))],
    transfers: [job.transfer, other.transfer],
    authorizations: [authorized(job), authorized(other)],
    expected,
  };
}
