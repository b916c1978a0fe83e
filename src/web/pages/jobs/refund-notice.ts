import { html, type Html } from '../../../base/values/html.ts';
import { visibleText } from '../../../base/values/visible-text.ts';
import type { Receipt } from '../../../jobs/http/schemas/receipt.ts';
import { time } from '../elements.ts';
import type { Tone } from '../notices.ts';

type RefundRequest = NonNullable<Receipt['refund_request']>;

/** What became of it; a decision's time follows the first words. */
const answers: Readonly<Record<RefundRequest['state'], readonly [Tone, begin: string, rest: string]>> = {
  open: ['plain', 'The operator has not decided yet', '. This receipt shows the decision.'],
  due: ['plain', 'The refund is due', ' without a decision. This receipt shows it.'],
  granted: ['good', 'The operator agreed', ': the refund is due. This receipt shows it.'],
  declined: ['bad', 'The operator declined', '.'],
  delivered: ['plain', 'The job was done after that', ', so it is not paid back.'],
  refunded: ['good', 'It was paid back', '.'],
};

/** What became of the payer's request for its money; undefined if it did not ask. */
export function refundNotice({ refund_request: request }: Receipt, isOpened: boolean): Html | undefined {
  if (!request) return undefined;
  const { state, requested_at: at, decided_at: decidedAt, reason, why } = request;
  const [tone, begin, rest] = answers[state];
  const decided = state !== 'refunded' && decidedAt !== undefined && html` (${time(new Date(decidedAt))})`;
  return html`<div class="notice ${tone}">
    <p>
      <b>${isOpened ? 'You asked for your money back' : 'The payer asked for the money back'}</b>
      (${time(new Date(at))})${reason !== undefined && html`: <q dir="auto">${visibleText(reason)}</q>`}.
    </p>
    <p>${begin}${decided}${rest}${why !== undefined && html` Its reason: <q>${visibleText(why)}</q>`}</p>
  </div>`;
}
