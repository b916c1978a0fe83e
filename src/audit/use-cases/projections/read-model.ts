import { type RecordedEvent, typesListing } from '../../../ledger/rules/event.ts';
import { refundReason, refundRequestState } from '../../../payments/rules/refund.ts';
import { refundedAtoms } from '../../../payments/rules/payment-progress.ts';
import { foldQuote, jobOf, paidAmount, type PaymentState } from '../../../payments/rules/quote-state.ts';
import type {
  CallRow,
  PaymentRow,
  WithdrawnCall,
  AccountCredit,
  CompletionRow,
} from '../../../ledger/store/projection.ts';
import {
  type CreditBalance,
  foldCredit,
  noCredit,
  postingOf,
} from '../../../accounts/rules/credit/postings.ts';

const changing: ReadonlySet<string> = new Set(typesListing('readModels', 'payments'));

/** The payment and the call of one stream: a fold over the given events. */
export function paymentRowsOf(events: readonly RecordedEvent[]): {
  payments: PaymentRow[];
  calls: CallRow[];
  withdrawn: WithdrawnCall[];
} {
  const state = foldQuote(events);
  const start = events.find(({ type }) => type === 'settlement_started' || type === 'payment_recovered');
  // an event that changes nothing here counts in no step, whatever other events the step has
  const last = events.findLast(({ type }) => changing.has(type));
  const { payment } = state;
  if (!last || !payment || !start) return { payments: [], calls: [], withdrawn: [] };
  const job = jobOf(state);
  const { network, asset, symbol, decimals, payer, pay_to } = payment.payment;
  const { settled, refunds } = payment;
  const call = callRow(payment, events, start.seq);
  const payments: PaymentRow[] = [
    {
      seq: start.seq,
      at: start.at,
      service_id: job?.serviceId ?? null,
      job_index: job?.jobIndex ?? null,
      network,
      asset,
      symbol,
      decimals,
      amount: paidAmount(payment),
      payer,
      pay_to,
      state: stateOf(payment),
      transaction: settled?.transaction ?? null,
      block_number: settled?.proof ? String(settled.proof.blockNumber) : null,
      call_id: payment.call?.callId ?? null,
      settled_at: settled?.at ?? null,
      refunded_at: refunds.at(-1)?.at ?? null,
      refund_transaction: refunds.at(-1)?.transaction ?? null,
      refunded_amount: String(refundedAtoms(payment)),
      ...refundDueOf(payment, call),
      refund_started_at: payment.refunding?.at ?? null,
      refund_requested_at: openRequestOf(payment),
      quote_source: state.quote?.source ?? null,
      last_seq: last.seq,
    },
  ];
  const calls: CallRow[] =
    call && job ? [{ ...call, service_id: job.serviceId, job_index: job.jobIndex }] : [];
  return { payments, calls, withdrawn: withdrawnFrom(events, calls) };
}

/** Calls that were enqueued and belong to no payment any more. */
function withdrawnFrom(events: readonly RecordedEvent[], calls: readonly CallRow[]): WithdrawnCall[] {
  const left = new Set(calls.map(({ call_id: id }) => id));
  return events.flatMap(({ type, data }) =>
    type === 'enqueued' && !left.has(data.call_id) ? { call_id: data.call_id, status: null } : [],
  );
}

/** The state of a payment: that of its refund as a whole, else of its call, else of its settlement. */
function stateOf({ status, call, isRefunded }: PaymentState): string {
  if (status === 'settled' && isRefunded) return 'refunded';
  return status === 'settled' && call ? call.status : status;
}

/** Whether a refund is due, and since when. */
function refundDueOf(
  payment: PaymentState,
  call: Pick<CallRow, 'ended_at'> | undefined,
): Pick<PaymentRow, 'refund_due' | 'refund_due_since'> {
  const reason = refundReason(payment);
  if (!reason) return { refund_due: null, refund_due_since: null };
  const since = reason === 'granted' ? payment.refundGrantedAt : call?.ended_at;
  return { refund_due: reason, refund_due_since: since ?? payment.settled?.at ?? null };
}

/** When its payer asked for its money, while that waits for an operator. */
function openRequestOf(payment: PaymentState): string | null {
  const state = refundRequestState(payment);
  const isOpen = state === 'open' || state === 'due' || state === 'granted';
  return (isOpen && payment.refundRequest?.at) || null;
}

function callRow(
  { call }: PaymentState,
  events: readonly RecordedEvent[],
  seq: number,
): Omit<CallRow, 'service_id' | 'job_index'> | undefined {
  if (!call) return undefined;
  const ownEvents = events.filter(({ data }) => 'call_id' in data && data.call_id === call.callId);
  const enqueued = ownEvents.find(({ type }) => type === 'enqueued');
  if (!enqueued) return undefined;
  const attempts = ownEvents.flatMap(({ data }) => ('attempt' in data ? data.attempt : []));
  const isEnded = call.status === 'completed' || call.status === 'dead_lettered';
  // not the last event of the call: a dead letter that is given up ended before, and no step reads that it was given up
  const end = isEnded && ownEvents.findLast(({ type }) => type === call.status);
  return {
    call_id: call.callId,
    seq,
    status: call.status,
    attempts: Math.max(0, ...attempts),
    enqueued_at: enqueued.at,
    ended_at: end ? end.at : null,
  };
}

/** How these events change the credit of each account that they name. */
export function accountCreditOf(events: readonly RecordedEvent[]): AccountCredit[] {
  const balances = foldCredit(events);
  const names = new Map<number, string>();
  const last = new Map<number, number>();
  for (const event of events) {
    if (event.type === 'credit_account_opened') names.set(event.data.account_id, event.data.name);
    const id = event.type === 'credit_account_opened' ? event.data.account_id : postingOf(event)?.accountId;
    if (id !== undefined) last.set(id, event.seq);
  }
  return [...last]
    .toSorted(([a], [b]) => a - b)
    .map(([id, seq]) => ({
      account_id: id,
      name: names.get(id) ?? null,
      ...totalsOf(balances.get(id) ?? noCredit),
      last_seq: seq,
    }));
}

/** Credit from outside is negative in the books and positive in the read model. */
function totalsOf({ available, held, granted, bought, used, expired }: CreditBalance) {
  return {
    balance: String(available),
    held: String(held),
    granted: String(-granted),
    topped_up: String(-bought),
    captured: String(used),
    expired: String(expired),
  };
}

/** The completions of accounts among whole streams, in their present state. */
export function completionRowsOf(streams: readonly (readonly RecordedEvent[])[]): CompletionRow[] {
  return streams.flatMap((events) => rowOf(events) ?? []);
}

/** Undefined for a stream other than an account's completion. Of two settlements of a completion the last counts. */
function rowOf(events: readonly RecordedEvent[]): CompletionRow | undefined {
  const [first] = events;
  if (first?.type !== 'chat_admitted' || first.data.account_id === undefined) return undefined;
  const { account_id, key_id = 0, model } = first.data;
  const of = { account_id, seq: first.seq, at: first.at, chat_id: first.stream.slice('chat:'.length) };
  const end = events.findLast(({ type }) => type === 'chat_completed' || type === 'chat_failed');
  if (end?.type !== 'chat_completed')
    return { ...of, key_id, model, status: end ? 'failed' : 'running', ...nothing };
  const { ending: status, prompt_tokens, completion_tokens, cached_tokens = 0 } = end.data;
  const { cost_micros: cost, uncovered_micros: uncovered = '0' } = end.data;
  const tokens = { prompt_tokens, completion_tokens, cached_tokens };
  return { ...of, key_id, model, status, ...tokens, cost: String(BigInt(cost) - BigInt(uncovered)) };
}

const nothing = { prompt_tokens: null, completion_tokens: null, cached_tokens: null, cost: null };
