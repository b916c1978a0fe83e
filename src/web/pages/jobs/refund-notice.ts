import { html, type Html } from '../../../base/values/html.ts';
import { visibleText } from '../../../base/values/visible-text.ts';
import type { Receipt } from '../../../jobs/http/schemas/receipt.ts';
import { time } from '../elements.ts';
import type { Tone } from '../notices.ts';
import { tokenAmount } from './token-amount.ts';

type RefundRequest = NonNullable<Receipt['refund_request']>;

interface Answer {
  readonly tone: Tone;
  /** Before that of the call's state, while the money is what matters most. */
  readonly headline?: string;
  /** A decision's time follows these words. */
  readonly begin: string;
  readonly rest: string;
}

/** What became of it. */
const answers: Readonly<Record<RefundRequest['state'], Answer>> = {
  open: {
    tone: 'plain',
    headline: 'Refund asked for, not decided yet',
    begin: 'The operator has not decided yet',
    rest: '. This receipt shows the decision.',
  },
  due: {
    tone: 'plain',
    headline: 'Refund asked for, and due',
    begin: 'The refund is due without a decision',
    rest: '. This receipt shows it once it is sent.',
  },
  granted: {
    tone: 'good',
    headline: 'Refund granted, not sent yet',
    begin: 'The operator agreed',
    rest: '. Nothing is left for the payer to do: this receipt shows the refund once it is sent.',
  },
  declined: { tone: 'bad', headline: 'Refund declined', begin: 'The operator declined', rest: '.' },
  delivered: { tone: 'plain', begin: 'The job was done after that', rest: ', so it is not paid back.' },
  refunded: { tone: 'good', begin: 'It was paid back', rest: '.' },
};

/** The page's first line while the payer waits for its money or was refused it. */
export function refundHeadline({ refund_request: request }: Receipt): string | undefined {
  return request && answers[request.state].headline;
}

/** What became of the payer's request for its money; undefined if it did not ask. */
export function refundNotice(
  { refund_request: request, payment }: Receipt,
  isOpened: boolean,
): Html | undefined {
  if (!request) return undefined;
  const { state, requested_at: at, decided_at: decidedAt, reason, why } = request;
  const { tone, begin, rest } = answers[state];
  const decided = state !== 'refunded' && decidedAt !== undefined && html` (${time(new Date(decidedAt))})`;
  return html`<div class="notice ${tone}">
    <p>
      <b>${isOpened ? 'You asked for your money back' : 'The payer asked for the money back'}</b>
      (${time(new Date(at))})${reason !== undefined && html`: <q dir="auto">${visibleText(reason)}</q>`}.
    </p>
    <p>
      ${begin}${decided}${state === 'granted' && payment && html`: ${tokenAmount(BigInt(payment.amount), payment)} go back to the wallet that paid`}${rest}${why !== undefined && html` Its reason: <q>${visibleText(why)}</q>`}
    </p>
  </div>`;
}
