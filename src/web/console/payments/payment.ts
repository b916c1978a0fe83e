import { foldQuote, jobOf, type PaymentState, type QuoteState } from '../../../payments/rules/quote-state.ts';
import { refundReason, remainingAtoms } from '../../../payments/rules/refund.ts';
import { html, type Html } from '../../../base/values/html.ts';
import { isHex32 } from '../../../base/values/primitives.ts';
import { visibleText } from '../../../base/values/visible-text.ts';
import {
  readPaymentHistory,
  type PaymentHistory,
} from '../../../audit/use-cases/projections/payment-history.ts';
import { type CallDetails, findCallDetails } from '../../../payments/store/payment-search.ts';
import { sectionView } from '../layout.ts';
import { tokenAmount } from '../../pages/jobs/token-amount.ts';
import { copyButton, factList, shortId, time } from '../../pages/elements.ts';
import { problemView } from '../../pages/problem.ts';
import type { View } from '../../pages/visit.ts';
import type { Console, ConsoleSite, OperatorVisit } from '../visit.ts';
import { actionForms, callIdOf, paymentActions } from './actions.ts';
import { refundPath, transactionWithLink } from '../books/books-view.ts';
import { networkName } from '../../pages/known-networks.ts';
import { jobName } from '../words.ts';
import { stateBadge } from './state-badge.ts';
import { story } from './story.ts';
import { timeline } from './timeline.ts';

const paymentsPath = '/console/payments';

/** One payment's page, and its actions. */
export function paymentPages(console: Console, site: ConsoleSite): void {
  console.show(`${paymentsPath}/:digest`, (visit) => paymentView(visit));
  paymentActions(console, site, paymentView);
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
  const body = html`${story(quote, history.state, events)} ${refundLink(quote, digest)}
    ${await actionForms(visit, { digest, payment: quote.payment, call })}
    <div class="grid pair">${quote.payment && moneyOf(quote.payment)} ${callSection(visit, quote, call)}</div>
    <section class="sheet" data-rows>
      <h2>Events</h2>
      ${timeline(history.events, { site, token: quote.payment?.payment })}
    </section>
    ${await proofSection(site, history)}`;
  return sectionView(paymentsPath, `Payment ${digest.slice(0, 10)}`, body, {
    up: [paymentsPath, 'Payments'],
    heading: html`Payment ${shortId(digest, 'the digest of the quote')}`,
    beside: stateBadge(history.state),
    mistake,
    scripts: ['proof.js'],
  });
}

/** The refund that is due for a payment that was not delivered. */
function refundLink({ payment: state }: QuoteState, digest: string): Html | undefined {
  if (!state || refundReason(state) === undefined) return undefined;
  return html`<section class="sheet">
    <h2>Refund</h2>
    <p>
      ${tokenAmount(remainingAtoms(state), state.payment)} are due to the payer.
      <a
        class="button plain"
        href="${refundPath({ quote_digest: digest, payment_nonce: state.payment.nonce })}"
        >Refund it</a
      >
    </p>
  </section>`;
}

function moneyOf({ payment, status, startedAt, refunds, settled }: PaymentState): Html {
  const { amount, symbol, decimals, network } = payment;
  const money = (atoms: bigint): Html => tokenAmount(atoms, { symbol, decimals, network });
  return html`<section class="sheet">
    <h2>Money</h2>
    ${factList([
      ['Amount', html`${money(BigInt(amount))} on ${networkName(network)}`],
      ['Settlement', html`${stateBadge(status)} begun ${time(new Date(startedAt))}`],
      ['From', shortId(payment.payer, 'the payer')],
      ['To', shortId(payment.pay_to, 'the payee')],
      settled && ['Transaction', transactionWithLink(network, settled.transaction)],
      ...refunds.map((refund): [string, Html] => [
        'Refunded',
        html`${money(refund.amount)} to ${shortId(refund.to, 'the wallet refunded')} by
        ${transactionWithLink(network, refund.transaction)}`,
      ]),
    ])}
  </section>`;
}

const dueLabels: Readonly<Record<string, string>> = { dead: 'Dead since', leased: 'Lease ends' };

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
            ['In the outbox', stateBadge(call.status)],
            [dueLabels[call.status] ?? 'Due', time(call.dueAt)],
            ['Attempts', call.attempt],
            ['Runner', call.runner ?? undefined],
            ['Last outcome', call.reason?.replaceAll('_', ' ')],
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
