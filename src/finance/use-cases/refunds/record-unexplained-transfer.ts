import type pg from 'pg';
import type { EventData, LedgerEvent, RecordedEvent } from '../../../ledger/rules/event.ts';
import { placeData } from '../../../payments/rules/chain-transfer.ts';
import { foldQuote } from '../../../payments/rules/quote-state.ts';
import { type Address, type Caip2, chainIdOf, type Hex } from '../../../base/values/primitives.ts';
import type { Transfer } from '../../../payments/peers/chain/chain.ts';
import { projectToHead } from '../../../audit/use-cases/projections/project.ts';
import { createPaymentLookup } from '../../../payments/store/payment-lookup.ts';
import { unexplainedTransferClaims } from '../../../payments/store/recorded-claims.ts';
import { type KnownPayee, listStreams } from '../../../payments/store/refunds.ts';
import { readStream } from '../../../ledger/store/streams.ts';
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
  tryAgain,
} from './final-transfers.ts';
import type { Ledger, LedgerWriter } from '../../../ledger/store/ledger.ts';

/** An operator's explanation of a transfer to a payee that does not belong to a payment. */
export interface UnexplainedTransferOrder extends Omit<ReversalOrder, 'why'> {
  readonly use:
    | { readonly as: 'suspense' | 'income' | 'own' }
    /** `by`: the transaction that gave it back. */
    | { readonly as: 'returned'; readonly by: Hex };
}

export type UnexplainedTransferRefusal =
  | NoTransfers
  /** No transfer of it is to a payee. */
  | 'no_transfer'
  /** Several transfers of it could be meant. */
  | 'transfer_ambiguous'
  /** The transfer is recorded as a payment, a sweep, a refund or a return. */
  | 'transfer_claimed'
  /** The authorization of a payment that is in the ledger moved it. */
  | 'payment_known'
  /** It is from another payee. */
  | 'from_payee'
  /** It is from the payee to itself. */
  | 'to_itself'
  /** It is recorded otherwise. */
  | 'recorded_otherwise'
  /** The other transaction gives nothing of it back to its sender. */
  | 'no_return'
  /** The transfer that should have given it back is the older one. */
  | 'returned_before'
  | 'superseded';

export type UnexplainedTransferAnswer =
  | {
      readonly kind: 'recorded' | 'repeated';
      readonly record: UnexplainedTransferRecord;
      /** What its transaction cost, if the operator sent money: back, or own money. */
      readonly cost?: TransferCost;
    }
  | Refused<UnexplainedTransferRefusal>;

/**
 * Records an operator's explanation of a final transfer that no payment explains. Concurrent commands record a transfer once:
 * its claim decides. Money in suspense can be recorded again, as income or as returned. `accepted` are the configured tokens.
 */
export async function recordUnexplainedTransfer(
  ledger: Ledger,
  order: UnexplainedTransferOrder,
  chains: Chains,
  accepted: readonly KnownToken[],
): Promise<UnexplainedTransferAnswer> {
  await projectToHead(ledger);
  const known = await knownPayees(ledger.pool, order.network, accepted);
  const mined = await readMined(chains, order.network, order.transaction, tokensOf(known));
  if (mined.kind === 'refused') return mined;
  const answer = await tryAgain(() => tryUnexplainedTransfer(ledger, order, chains, { mined, known }));
  return answer.kind === 'refused' ? answer : { ...answer, ...(await costOf(ledger, order, chains, answer)) };
}

/** Undefined if a stranger sent the money: then the stranger paid for the transaction. */
async function costOf(
  ledger: LedgerWriter,
  { network, operator }: UnexplainedTransferOrder,
  chains: Chains,
  { record }: { readonly record: UnexplainedTransferRecord },
): Promise<{ readonly cost?: TransferCost }> {
  const { as, returned, received_from: from } = record;
  const sent = returned ?? (as === 'own' ? { transaction: record.transaction, from } : undefined);
  if (!sent) return {};
  const of = { network, transaction: sent.transaction as Hex, purpose: 'transfer', operator } as const;
  return { cost: await recordTransferCost(ledger, chains, of, sent.from) };
}

async function tryUnexplainedTransfer(
  ledger: LedgerWriter,
  order: UnexplainedTransferOrder,
  chains: Chains,
  { mined, known }: { readonly mined: MinedTransfers; readonly known: readonly KnownPayee[] },
): Promise<UnexplainedTransferAnswer> {
  const chosen = await chooseTransfer(ledger, order, mined, known);
  if (chosen.kind === 'refused') return chosen;
  const { came } = chosen;
  const stream = transferStream(came);
  const { version, record } = standing((await readStream(ledger.pool, stream)).events);
  if (record && isRecorded(record, order)) return { kind: 'repeated', record };
  if (record && (record.as !== 'suspense' || order.use.as === 'own' || order.use.as === 'suspense'))
    return refused('recorded_otherwise', record.as);
  const refusal =
    (await requireFinal(chains, order.network, mined)) ??
    (await findPayment(ledger.pool, order, mined, came));
  if (refusal) return refusal;
  const base = { ...came, operator: order.operator };
  const suspense: UnexplainedTransferRecord = { as: 'suspense', ...base };
  let wanted: UnexplainedTransferRecord = { as: order.use.as, ...base };
  if (order.use.as === 'returned') {
    const back = await findReturn(ledger.pool, chains, order.use.by, { came, mined });
    if (back.kind === 'refused') return back;
    wanted = { ...wanted, returned: back.returned };
  }
  const events: LedgerEvent[] = [{ type: 'operator_transfer_recorded', data: wanted }];
  // the books show that it came before they show that it went
  if (!record && order.use.as === 'returned')
    events.unshift({ type: 'operator_transfer_recorded', data: suspense });
  const [own, ...others] = unexplainedTransferClaims(wanted);
  const claims = record || !own ? others : [own, ...others];
  const { outcome } = await ledger.lane.append({ stream, expect: version, events, claims });
  return outcome === 'ok' ? { kind: 'recorded', record: wanted } : refused('superseded');
}

function isRecorded(record: UnexplainedTransferRecord, { use }: UnexplainedTransferOrder): boolean {
  return record.as === use.as && (use.as !== 'returned' || record.returned?.transaction === use.by);
}

type Came = Omit<UnexplainedTransferRecord, 'as' | 'operator' | 'returned'>;

/** The one transfer to a payee that the order names. */
async function chooseTransfer(
  { pool }: LedgerWriter,
  order: UnexplainedTransferOrder,
  mined: MinedTransfers,
  known: readonly KnownPayee[],
): Promise<{ readonly kind: 'chosen'; readonly came: Came } | Refused<UnexplainedTransferRefusal>> {
  const { network, transaction, logIndex } = order;
  const isPayee = (address: string): boolean => known.some(({ pay_to }) => pay_to === address);
  const arriving = mined.transfers.flatMap((transfer) => {
    const token = known.find(({ asset }) => asset === transfer.asset);
    if (!token || transfer.value === 0n || !isPayee(transfer.to)) return [];
    return logIndex === undefined || transfer.logIndex === logIndex ? [{ transfer, token }] : [];
  });
  if (arriving.length === 0) return refused('no_transfer');
  const holders = await readTransferHolders(pool, network, transaction);
  const free = arriving.filter(({ transfer }) => {
    const holder = holders(transfer.logIndex);
    return (
      holder === undefined ||
      holder === transferStream({ network, transaction, log_index: transfer.logIndex })
    );
  });
  const [first, another] = free;
  if (!first)
    return refused('transfer_claimed', arriving.map(({ transfer }) => holders(transfer.logIndex)).join(' '));
  if (another)
    return refused('transfer_ambiguous', free.map(({ transfer }) => String(transfer.logIndex)).join(' '));
  const { transfer, token } = first;
  const { asset, from, to, value } = transfer;
  if (from === to && order.use.as !== 'own') return refused('to_itself');
  if (from !== to && isPayee(from)) return refused('from_payee', from);
  const { symbol, decimals } = token;
  const terms = { network, asset, symbol, decimals, pay_to: to, received_from: from, amount: String(value) };
  return { kind: 'chosen', came: { ...terms, transaction, ...placeData({ ...mined, ...transfer }) } };
}

/** Refuses a transfer that a payment in the ledger has moved, unless that payment is recorded as failed. */
async function findPayment(
  pool: pg.Pool,
  { network }: UnexplainedTransferOrder,
  { authorizations }: MinedTransfers,
  { asset, log_index: logIndex }: Came,
): Promise<Refused<UnexplainedTransferRefusal> | undefined> {
  const used = authorizations.find((one) => one.logIndex === logIndex && one.asset === asset);
  if (!used) return undefined;
  const { transferMethod, payer, nonce } = used;
  const fingerprint = { network, transferMethod, asset: used.asset, payer, nonce };
  const { streams } = await createPaymentLookup(pool).find(fingerprint, undefined);
  for (const stream of streams) {
    const { payment } = foldQuote((await readStream(pool, stream)).events);
    if (payment?.status !== 'settlement_failed') return refused('payment_known', stream);
  }
  return undefined;
}

/** The final transfer that gave the money back: the same token and amount, to its sender, and not before it came. */
async function findReturn(
  pool: pg.Pool,
  chains: Chains,
  by: Hex,
  { came, mined }: { readonly came: Came; readonly mined: MinedTransfers },
): Promise<
  | { readonly kind: 'found'; readonly returned: NonNullable<UnexplainedTransferRecord['returned']> }
  | Refused<UnexplainedTransferRefusal>
> {
  const network = came.network as Caip2;
  const back = await readMined(chains, network, by, [came.asset as Address]);
  if (back.kind === 'refused') return back;
  const holders = await readTransferHolders(pool, network, by);
  const isReturn = ({ asset, from, to, value }: Transfer): boolean =>
    asset === came.asset && to === came.received_from && from !== to && String(value) === came.amount;
  const fitting = back.transfers.filter(isReturn);
  if (fitting.length === 0)
    return refused('no_return', `of ${came.amount} atoms of ${came.asset} to ${came.received_from}`);
  const free = fitting.find(({ logIndex }) => holders(logIndex) === undefined);
  if (!free) return refused('transfer_claimed', fitting.map(({ logIndex }) => holders(logIndex)).join(' '));
  if (isBefore({ ...back, ...free }, { ...mined, logIndex: came.log_index }))
    return refused('returned_before');
  const notFinal = await requireFinal(chains, network, back);
  if (notFinal) return notFinal;
  return {
    kind: 'found',
    returned: { from: free.from, transaction: by, ...placeData({ ...back, ...free }) },
  };
}

interface Place {
  readonly blockNumber: bigint;
  readonly logIndex: number;
}

/** Logs are numbered through their block. */
function isBefore(one: Place, other: Place): boolean {
  return one.blockNumber === other.blockNumber
    ? one.logIndex < other.logIndex
    : one.blockNumber < other.blockNumber;
}

/** An operator's statement that a record of a transfer is wrong. */
export interface ReversalOrder {
  readonly network: Caip2;
  readonly transaction: Hex;
  /** Which of its transfers; needed if several could be meant. */
  readonly logIndex: number | undefined;
  readonly why: string;
  readonly operator: string;
}

export type ReversalRefusal = 'not_recorded' | 'transfer_ambiguous' | 'superseded';

/**
 * Reverses the record of an unexplained transfer. This frees its transfers for other records, such as the payment
 * that it turned out to be.
 */
export async function reverseUnexplainedTransfer(
  ledger: LedgerWriter,
  order: ReversalOrder,
): Promise<
  { readonly kind: 'reversed'; readonly record: UnexplainedTransferRecord } | Refused<ReversalRefusal>
> {
  return tryAgain(async () => {
    const found = await findStanding(ledger.pool, order);
    if (found.kind === 'refused') return found;
    const { stream, version, record } = found;
    const { network, transaction, log_index } = record;
    const { why, operator } = order;
    const { outcome } = await ledger.lane.append({
      stream,
      expect: version,
      events: [
        { type: 'operator_transfer_reversed', data: { network, transaction, log_index, why, operator } },
      ],
      freed: unexplainedTransferClaims(record),
    });
    return outcome === 'ok' ? { kind: 'reversed', record } : refused('superseded');
  });
}

interface Standing {
  readonly kind: 'standing';
  readonly stream: string;
  readonly version: number;
  readonly record: UnexplainedTransferRecord;
}

async function findStanding(
  pool: pg.Pool,
  { network, transaction, logIndex }: ReversalOrder,
): Promise<Standing | Refused<ReversalRefusal>> {
  const found: Standing[] = [];
  for (const stream of await listStreams(pool, transferStreams({ network, transaction }))) {
    const { version, record } = standing((await readStream(pool, stream)).events);
    if (record && (logIndex === undefined || record.log_index === logIndex))
      found.push({ kind: 'standing', stream, version, record });
  }
  const [first, another] = found;
  if (!first) return refused('not_recorded');
  return another
    ? refused('transfer_ambiguous', found.map(({ record }) => String(record.log_index)).join(' '))
    : first;
}

/** An operator's record of an unexplained transfer. */
export type UnexplainedTransferRecord = EventData<'operator_transfer_recorded'>;

/** A transfer's place on the chain. */
export interface TransferPlace {
  readonly network: string;
  readonly transaction: string;
  readonly log_index: number;
}

/** The stream has the transfer's name, so it holds all records of the transfer. */
function transferStream({ network, transaction, log_index: logIndex }: TransferPlace): string {
  return `${transferStreams({ network, transaction })}${logIndex}`;
}

/** The common prefix of the streams of a transaction's transfers. */
function transferStreams({ network, transaction }: Omit<TransferPlace, 'log_index'>): string {
  return `transfer:${chainIdOf(network) ?? 0}:${transaction}:`;
}

/** The valid record of a transfer: undefined if nothing was recorded, or if the record was reversed. */
function standing(events: readonly RecordedEvent[]): {
  readonly version: number;
  readonly record: UnexplainedTransferRecord | undefined;
} {
  const last = events.at(-1);
  const record = last?.type === 'operator_transfer_recorded' ? last.data : undefined;
  return { version: last?.version ?? 0, record };
}
