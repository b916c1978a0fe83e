import type { RecordedEvent } from '../../../../ledger/rules/event.ts';
import { completionRowsOf, paymentRowsOf } from '../../projections/read-model.ts';
import type { ExpectedResult } from '../../../../calls/store/call-rows.ts';
import type { ExpectedRow } from '../../../../ledger/store/stored-rows.ts';
import type { OutboxEntry, OutboxStatus } from './compare-calls.ts';
import { paymentOf } from './payment-rows.ts';
import { claimsOfPayment, claimsOfStream, type StreamClaim } from './stream-claims.ts';

/** The rows that begin within a part of the ledger. */
export interface LedgerPart {
  readonly payments: ExpectedRow[];
  readonly paid_call: ExpectedRow[];
  readonly completion: ExpectedRow[];
  readonly holds: (ExpectedRow & { readonly chat_id: string })[];
  readonly claims: StreamClaim[];
  readonly calls: OutboxEntry[];
  readonly results: ExpectedResult[];
}

interface Bounds {
  readonly after: number;
  readonly last: number;
  /** Of the read models. */
  readonly cursor: number;
}

/** Folds whole streams into the rows of entities that begin within a part of the ledger: a payment may begin in the middle of its stream. */
export function foldPart(
  streams: readonly (readonly RecordedEvent[])[],
  { after, last, cursor }: Bounds,
): LedgerPart {
  const isHere = ({ seq }: { readonly seq: number }): boolean => seq > after && seq <= last;
  const part: LedgerPart = {
    payments: [],
    paid_call: [],
    completion: [],
    holds: [],
    claims: [],
    calls: [],
    results: [],
  };
  for (const events of streams) {
    const [first] = events;
    if (!first) continue;
    const projected = events.at(-1)!.seq <= cursor ? events : events.filter(({ seq }) => seq <= cursor);
    if (first.type === 'chat_admitted') {
      part.completion.push(
        ...completionRowsOf([projected])
          .filter(isHere)
          .map((row) => ({ ...row })),
      );
      part.holds.push(...[holdRowOf(events)].filter((row) => row !== undefined));
    } else if (first.type === 'quote_issued' || first.type === 'payment_recovered') {
      foldPayment(part, events, projected, isHere);
    } else if (isHere(first)) {
      part.results.push(...events.flatMap(resultOf));
      part.claims.push(...claimsOfStream(events));
      const triggered = triggeredCallOf(events);
      if (triggered) part.calls.push(triggered);
    }
  }
  return part;
}

function foldPayment(
  part: LedgerPart,
  events: readonly RecordedEvent[],
  projected: readonly RecordedEvent[],
  isHere: (row: { readonly seq: number }) => boolean,
): void {
  const { payments, calls } = paymentRowsOf(projected);
  for (const row of payments.filter(isHere))
    part.payments.push({
      ...row,
      asset: bytes(row.asset),
      payer: bytes(row.payer),
      pay_to: bytes(row.pay_to),
      transaction: bytes(row.transaction),
      refund_transaction: bytes(row.refund_transaction),
    });
  for (const row of calls.filter(isHere)) part.paid_call.push({ ...row });
  const stream = events[0]?.stream ?? '';
  const payment = paymentOf(events);
  if (!payment || !isHere(payment)) return;
  part.claims.push(...claimsOfPayment(stream, payment));
  part.calls.push(payment.outboxEntry);
  part.results.push(...events.flatMap(resultOf));
}

function resultOf(event: RecordedEvent): ExpectedResult[] {
  if (event.type !== 'completed') return [];
  const { call_id, attempt, result_sha256: sha256, result_bytes: size } = event.data;
  return sha256 === undefined || size === undefined ? [] : [{ call_id, attempt, sha256, bytes: size }];
}

/** As PostgreSQL reads bytes. */
function bytes(hex: string | null): string | null {
  return hex === null ? null : `\\x${hex.slice(2)}`;
}

/** What the outbox must have of a stream that a trigger began; undefined for another stream. */
function triggeredCallOf(events: readonly RecordedEvent[]): OutboxEntry | undefined {
  const [first] = events;
  if (first?.type !== 'call_triggered') return undefined;
  const { data, stream } = first;
  const { idempotency_key: payment, trigger: kind, trigger_name: name, trigger_id: id } = data;
  const statuses = statusesOf(events);
  const row = {
    service_id: data.service_id,
    job_index: data.job_index,
    network: null,
    asset: null,
    symbol: null,
    caller: null,
    trigger_kind: kind,
    trigger_name: name,
    trigger_id: id,
    // the key of a call that a trigger made names its stream
    idempotency_key: null,
    claims: [],
  };
  const call = statuses && {
    row,
    statuses,
    callId: data.call_id,
    mayBeMissing: false,
    bodySha256: data.body_sha256,
    bodyBytes: data.body_bytes,
  };
  return { payment, stream, call };
}

function statusesOf(events: readonly RecordedEvent[]): readonly OutboxStatus[] | undefined {
  let statuses: readonly OutboxStatus[] | undefined = ['ready', 'leased'];
  for (const { type } of events) {
    if (type === 'dead_lettered') statuses = ['dead'];
    if (type === 'operator_requeued') statuses = ['ready', 'leased'];
    if (type === 'completed' || type === 'operator_discarded') statuses = undefined;
  }
  return statuses;
}

/** The row of `tollbook.chat_hold` of a completion; undefined if nothing is held for it any more, or never was. */
function holdRowOf(events: readonly RecordedEvent[]): (ExpectedRow & { chat_id: string }) | undefined {
  const held = events.find(({ type }) => type === 'credit_held');
  if (held?.type !== 'credit_held') return undefined;
  const ended = events.some(({ type }) => type === 'credit_captured' || type === 'credit_released');
  const { chat_id, account_id, key_id = null, amount_micros: amount } = held.data;
  return ended || amount === '0' ? undefined : { chat_id, account_id, key_id, amount };
}
