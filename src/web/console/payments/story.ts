import type { RecordedEvent } from '../../../ledger/rules/event.ts';
import type { PaymentState, QuoteState, ReceiptState } from '../../../payments/rules/quote-state.ts';
import { refundReason, refundRequestState, remainingAtoms } from '../../../payments/rules/refund.ts';
import { type CallDetails, nextAttemptAt } from '../../../payments/store/payment-search.ts';
import { html, type Html } from '../../../base/values/html.ts';
import { failedAttempts } from '../../pages/jobs/receipt-steps.ts';
import { tokenAmount } from '../../pages/jobs/token-amount.ts';
import { time } from '../../pages/elements.ts';
import type { Tone } from '../../pages/notices.ts';
import { networkName } from '../../pages/known-networks.ts';
import { durationText } from '../words.ts';

interface Told {
  readonly tone: Tone;
  readonly text: Html;
}

/** What happened to a quote and its payment, in one sentence: whether it was paid, whether it was delivered, and what is owed. */
export function story(
  quote: QuoteState,
  state: ReceiptState,
  events: readonly RecordedEvent[],
  call: CallDetails | undefined,
): Html {
  const { tone, text } = quote.payment
    ? ofPayment(quote.payment, events, call)
    : { tone: 'plain' as const, text: unpaid(quote, state) };
  const isAsked = quote.payment !== undefined && refundRequestState(quote.payment) === 'open';
  const asked = isAsked && ' The payer asks for the money back: the request below waits for a decision.';
  return html`<p class="notice ${isAsked ? 'warn' : tone}" data-story>${text}${asked}</p>`;
}

function unpaid({ quote }: QuoteState, state: ReceiptState): Html {
  const until = quote && time(new Date(quote.expires_at * 1_000));
  switch (state) {
    case 'refused':
      return html`Not paid: the caller was refused, and nothing was charged.`;
    case 'expired':
      return html`Not paid: the quote has expired, ${until}.`;
    default:
      return html`Not paid yet: the quote can be paid until ${until}.`;
  }
}

function ofPayment(
  payment: PaymentState,
  events: readonly RecordedEvent[],
  outboxCall: CallDetails | undefined,
): Told {
  const { status, startedAt, reason } = payment;
  const { amount, network } = payment.payment;
  const sum = html`${money(payment, BigInt(amount))} on ${networkName(network)}`;
  const begun = time(new Date(startedAt));
  const why = reason === undefined ? '' : ` (${reason.replaceAll('_', ' ')})`;
  switch (status) {
    case 'authorized':
      return {
        tone: 'plain',
        text: html`Not paid yet: the upstream answers first. Signed: ${sum}, ${begun}.`,
      };
    case 'settling':
      return {
        tone: 'warn',
        text: html`Being paid: ${sum}. The facilitator was asked to settle it ${begun}.`,
      };
    case 'settlement_unknown':
      return {
        tone: 'warn',
        text: html`It is not known yet whether ${sum} was paid${why}: sent ${begun}. The gateway asks the
        chain again and again.`,
      };
    case 'settlement_failed':
      return { tone: 'bad', text: html`Not paid: the payment of ${sum} failed${why}, ${begun}.` };
    case 'settled':
      return settled(payment, paidText(sum, events), events, outboxCall);
  }
}

function paidText(sum: Html, events: readonly RecordedEvent[]): Html {
  const paid = events.findLast(({ type }) => type === 'payment_settled' || type === 'payment_recovered');
  const at = paid && time(new Date(paid.at));
  return paid?.type === 'payment_recovered'
    ? html`Paid ${sum}, which was found on the chain on ${at}`
    : html`Paid ${sum} on ${at}`;
}

function settled(
  payment: PaymentState,
  paid: Html,
  events: readonly RecordedEvent[],
  outboxCall: CallDetails | undefined,
): Told {
  const { call, refunding, refunds } = payment;
  const due = refundReason(payment);
  if (due === undefined && !payment.isRefunded) return delivery(payment, paid, events, outboxCall);
  const isDelivered = call?.status === 'completed';
  const what = isDelivered ? 'delivered' : call ? 'not delivered' : 'no call was made';
  if (due === undefined) {
    const last = refunds.at(-1);
    return {
      tone: 'plain',
      text: html`${paid}, ${what}${last && html`, and refunded on ${time(new Date(last.at))}`}.`,
    };
  }
  const left = html`${refunds.length > 0 && 'the remaining '}${money(payment, remainingAtoms(payment))}`;
  return refunding
    ? { tone: 'warn', text: html`${paid}, ${what}: ${refunding.operator} is sending the refund of ${left}.` }
    : { tone: 'bad', text: html`${paid}, ${what}: a refund of ${left} is due.` };
}

function delivery(
  { call, startedAt, refunds }: PaymentState,
  paid: Html,
  events: readonly RecordedEvent[],
  outboxCall: CallDetails | undefined,
): Told {
  const failures = failedAttempts(events).length;
  const nextAt = outboxCall && nextAttemptAt(outboxCall);
  const last = (type: RecordedEvent['type']): RecordedEvent | undefined =>
    events.findLast((event) => event.type === type);
  const part = refunds.length > 0 && ', and refunded in part';
  if (failures > 0 && nextAt) {
    const why = outboxCall.reason === null ? '' : ` (${outboxCall.reason.replaceAll('_', ' ')})`;
    const many = failures === 1 ? '1 attempt' : `${failures} attempts`;
    return {
      tone: 'warn',
      text: html`${paid}${part}: ${many} failed${why}, and the next is on ${time(nextAt)}.`,
    };
  }
  switch (call?.status) {
    case 'completed': {
      const at = last('completed')?.at;
      const tookMs = at === undefined ? 0 : Math.max(0, Date.parse(at) - Date.parse(startedAt));
      return { tone: 'good', text: html`${paid}, delivered after ${durationText(tookMs)}${part}.` };
    }
    case 'delivered':
      return { tone: 'plain', text: html`${paid}${part}: a runner has the call.` };
    default:
      return { tone: 'plain', text: html`${paid}${part}: the call waits for its runner.` };
  }
}

function money({ payment }: PaymentState, atoms: bigint): Html {
  return tokenAmount(atoms, payment);
}
