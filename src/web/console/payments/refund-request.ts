import { includesRole } from '../../../base/values/operator-role.ts';
import { operatorTextPattern } from '../../../base/values/operator-words.ts';
import { html, type Html } from '../../../base/values/html.ts';
import { isHex32 } from '../../../base/values/primitives.ts';
import { visibleText } from '../../../base/values/visible-text.ts';
import {
  decideRequest,
  decisionRefusalTexts,
  type RequestDecision,
} from '../../../finance/use-cases/refunds/decide-request.ts';
import { readAsked } from '../../../finance/use-cases/refunds/list-requests.ts';
import type { QuoteState } from '../../../payments/rules/quote-state.ts';
import type { RefundRequestState } from '../../../payments/rules/refund.ts';
import { field, form, time } from '../../pages/elements.ts';
import type { NoticeCode } from '../../pages/notices.ts';
import type { Answer, View } from '../../pages/visit.ts';
import type { Console, ConsoleSite, OperatorVisit } from '../visit.ts';

const path = '/console/payments/:digest';
const about = {
  role: 'finance',
  subject: ({ params }: OperatorVisit): string | undefined => params['digest'],
  shownAt: pageOf,
} as const;

function pageOf(params: OperatorVisit['params']): string {
  return `/console/payments/${params['digest'] ?? ''}`;
}

/** What an operator says to the payer of a payment who asks for its refund. */
export function requestActions(
  console: Console,
  { jobs }: ConsoleSite,
  show: (visit: OperatorVisit, mistake: string) => Promise<View>,
): void {
  if (!jobs) return;
  const decide = async (
    visit: OperatorVisit,
    said: { readonly kind: 'grant' } | { readonly kind: 'decline'; readonly why: string },
    notice: NoticeCode,
  ): Promise<Answer> => {
    const quoteDigest = (visit.params['digest'] ?? '').toLowerCase();
    if (!isHex32(quoteDigest)) return show(visit, 'There is no such quote.');
    const decision: RequestDecision = { ...said, quoteDigest, operator: visit.operator.name };
    const answer = await decideRequest(jobs(), decision);
    if (answer.kind === 'decided') return { kind: 'redirect', to: pageOf(visit.params), notice };
    return show(visit, `The request: ${decisionRefusalTexts[answer.code]}. Nothing was recorded.`);
  };
  console.act(`${path}/grant-refund`, { ...about, action: 'grant_refund' }, (visit) =>
    decide(visit, { kind: 'grant' }, 'refund_granted'),
  );
  console.act(`${path}/decline-refund`, { ...about, action: 'decline_refund' }, async (visit, { fields }) => {
    const why = fields.get('why')?.trim() ?? '';
    return operatorTextPattern.test(why)
      ? decide(visit, { kind: 'decline', why }, 'refund_declined')
      : show(visit, whyMistake);
  });
}

const whyMistake =
  'Why you decline is kept for ever: 1 to 200 visible ASCII characters, without "@". Nothing was recorded.';

const stateTexts: Readonly<Record<RefundRequestState, string>> = {
  open: 'No operator has decided yet.',
  due: 'The refund is due, whatever is decided: refund the payer, or send the call again.',
  granted: 'It was granted: the refund is due.',
  declined: 'It was declined.',
  delivered: 'The call was delivered after the request, so nothing is left to decide.',
  refunded: 'The payment was refunded.',
};

/** What the payer of a payment asks for, in its own words, and the forms of the decision; undefined if it does not ask. */
export async function requestSection(
  visit: OperatorVisit,
  digest: string,
  quote: QuoteState,
): Promise<Html | undefined> {
  const asked = await readAsked(visit.site.ledger, digest, quote);
  if (!asked) return undefined;
  const decision = quote.payment?.refundRequest?.decision;
  const mayDecide = asked.state === 'open' && includesRole(visit.operator.role, 'finance');
  const waits = quote.payment?.call?.status !== 'completed';
  const at = (action: string): string => `/console/payments/${digest}/${action}`;
  return html`<section class="sheet" data-refund-request>
    <h2>The payer asks for a refund</h2>
    <p>
      ${time(new Date(asked.at))}:
      ${asked.reason === undefined ? 'its reason is deleted.' : html`<q dir="auto">${visibleText(asked.reason)}</q>`}
    </p>
    <p>
      ${stateTexts[asked.state]}
      ${decision && decision.kind !== 'delivered' && html`${decision.operator} decided on ${time(new Date(decision.at))}${decision.kind === 'declined' && html`: ${visibleText(decision.why)}`}.`}
    </p>
    ${
      mayDecide &&
      html`${form(
          visit,
          at('grant-refund'),
          html`<button
              data-confirm="Press again: ${waits ? 'give the call up, and refund' : 'the refund is due'}"
            >
              Grant the refund
            </button>
            ${waits && html`<p class="hint">The call is never delivered then.</p>`}`,
        )}
        <details>
          <summary>Decline it</summary>
          ${form(
            visit,
            at('decline-refund'),
            html`${field({ label: 'Why it is declined', name: 'why', maxLength: 200, autocomplete: 'off', hint: 'The payer reads it.' })}<button
                class="danger"
              >
                Decline it
              </button>`,
          )}
        </details>`
    }
  </section>`;
}
