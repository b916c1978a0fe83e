import { foldQuote, jobOf, paidAmount, type QuoteState } from '../../../payments/rules/quote-state.ts';
import { html, type Html } from '../../../base/values/html.ts';
import { isHex32 } from '../../../base/values/primitives.ts';
import { visibleText } from '../../../base/values/visible-text.ts';
import {
  readPaymentHistory,
  type PaymentHistory,
} from '../../../audit/use-cases/projections/payment-history.ts';
import { type CallDetails, findCallDetails, nextAttemptAt } from '../../../payments/store/payment-search.ts';
import { sectionView } from '../layout.ts';
import { tokenAmount } from '../../pages/jobs/token-amount.ts';
import { copyButton, factList, shortId, time } from '../../pages/elements.ts';
import { problemView } from '../../pages/problem.ts';
import type { View } from '../../pages/visit.ts';
import type { Console, ConsoleSite, OperatorVisit } from '../visit.ts';
import { actionForms, callIdOf, paymentActions } from './actions.ts';
import { transactionWithLink } from '../books/books-view.ts';
import { networkName } from '../../pages/known-networks.ts';
import { jobName } from '../words.ts';
import { requestActions, requestSection } from './refund-request.ts';
import { stateBadge } from './state-badge.ts';
import { story } from './story.ts';
import { timeline } from './timeline.ts';

const paymentsPath = '/console/payments';

/** One payment's page, and its actions. */
export function paymentPages(console: Console, site: ConsoleSite): void {
  console.show(`${paymentsPath}/:digest`, (visit) => paymentView(visit));
  paymentActions(console, site, paymentView);
  requestActions(console, site, paymentView);
}

/** The page of a quote and its payment; with an action's refusal. */
async function paymentView(visit: OperatorVisit, mistake?: string): Promise<View> {
  const { site, params } = visit;
  const digest = (params['digest'] ?? '').toLowerCase();
  const history = isHex32(digest) ? await readPaymentHistory(site.ledger.pool, site.log, digest) : undefined;
  if (!history) return problemView(404, 'The ledger has no such quote.', { title: 'Not found' });
  const events = history.events.map(({ event }) => event);
  const quote = foldQuote(events);
  const callId = callIdOf(quote);
  const call = callId === undefined ? undefined : await findCallDetails(site.ledger.pool, callId);
  const body = html`${story(quote, history.state, events, call)} ${await requestSection(visit, digest, quote)}
    ${await actionForms(visit, { digest, payment: quote.payment, call })}
    <div class="grid pair">${moneyOf(quote, digest)} ${callSection(visit, quote, call)}</div>
    <section class="sheet" data-rows>
      <h2>Events</h2>
      ${timeline(history.events, { site, token: quote.payment?.payment })}
    </section>
    ${await proofSection(site, history)}`;
  return sectionView(paymentsPath, `Payment ${digest.slice(0, 10)}`, body, {
    up: [paymentsPath, 'Payments'],
    heading: quote.payment ? html`Payment of ${paidMoney(quote.payment)}` : 'Quote',
    beside: stateBadge(history.state),
    mistake,
    scripts: ['proof.js'],
  });
}

function paidMoney(state: NonNullable<QuoteState['payment']>): Html {
  return tokenAmount(BigInt(paidAmount(state)), state.payment);
}

/** The money of the payment; of a quote without one its digest alone. */
function moneyOf({ payment: state }: QuoteState, digest: string): Html {
  const quote: [string, Html] = ['Quote', shortId(digest, 'the digest of the quote')];
  if (!state) return html`<section class="sheet">${factList([quote])}</section>`;
  const { payment, startedAt, refunds, settled } = state;
  return html`<section class="sheet">
    <h2>Money</h2>
    ${factList([
      ['Amount', html`${paidMoney(state)} on ${networkName(payment.network)}`],
      ['Sent', time(new Date(startedAt))],
      ['From', shortId(payment.payer, 'the payer')],
      ['To', shortId(payment.pay_to, 'the payee')],
      settled && ['Transaction', transactionWithLink(payment.network, settled.transaction)],
      ...refunds.map((refund): [string, Html] => [
        'Refunded',
        html`${tokenAmount(refund.amount, payment)} to ${shortId(refund.to, 'the wallet refunded')} by
        ${transactionWithLink(payment.network, refund.transaction)}`,
      ]),
      quote,
    ])}
  </section>`;
}

function dueLabel(call: CallDetails): string {
  if (call.status === 'dead') return 'Not delivered since';
  if (call.status === 'leased') return 'With its runner until';
  return nextAttemptAt(call) ? 'Next attempt' : 'Due since';
}

function callSection({ site }: OperatorVisit, quote: QuoteState, call: CallDetails | undefined): Html {
  const callId = callIdOf(quote);
  const job = jobOf(quote);
  const bought = job && (['Job', jobName(site, job)] as const);
  return html`<section class="sheet">
    <h2>${callId === undefined ? 'Call' : `Call ${callId}`}</h2>
    ${
      call
        ? factList([
            bought,
            [dueLabel(call), time(call.dueAt)],
            ['Attempts', call.attempt],
            ['Runner', call.runner ?? undefined],
            // the runner's words begin with it
            call.error === null && ['Last outcome', call.reason?.replaceAll('_', ' ')],
            call.error !== null && ['The runner’s words', html`<q dir="auto">${visibleText(call.error)}</q>`],
          ])
        : html`${factList([bought])}
            <p class="muted">
              ${
                callId === undefined
                  ? 'No call was made for this quote.'
                  : 'It is not in the outbox any more: it was completed or given up.'
              }
            </p>`
    }
  </section>`;
}

/** The data that the module checks in the browser: from each leaf on this page up to the signed head. */
async function proofSection(site: ConsoleSite, { head, events }: PaymentHistory): Promise<Html> {
  if (!head)
    return html`<section class="sheet">
      <h2>Proof</h2>
      <p class="muted">This ledger is not sealed, or has no signed head yet.</p>
    </section>`;
  const keys = await site.logKeys();
  const sealed = events.filter(({ proof }) => proof).length;
  return html`<section class="sheet" data-proof data-log-keys="${keys.join(' ')}">
    <h2>Proof</h2>
    <p data-proof-verdict role="status">
      ${sealed} of ${events.length} events are in the log up to its newest signed head. Checking them needs
      JavaScript.
    </p>
    <details>
      <summary>The checkpoint</summary>
      <pre class="code" tabindex="0" data-checkpoint>${head.note}</pre>
      ${copyButton(head.note, 'the checkpoint')}
    </details>
  </section>`;
}
