import { foldQuote, type QuoteState } from '../../../payments/rules/quote-state.ts';
import { refundReason } from '../../../payments/rules/refund.ts';
import { includesRole } from '../../../base/values/operator-role.ts';
import { html, type Html } from '../../../base/values/html.ts';
import { isHex32 } from '../../../base/values/primitives.ts';
import { operatorTextPattern } from '../../../base/values/operator-words.ts';
import { discardCall } from '../../../calls/use-cases/discard-call.ts';
import { checkRequeue, notRequeuedTexts, requeueCall } from '../../../calls/use-cases/requeue-call.ts';
import {
  type OperatorResolutionResult,
  resolveSettlementByOperator,
} from '../../../payments/use-cases/resolve-settlement-by-operator.ts';
import type { CallDetails } from '../../../payments/store/payment-search.ts';
import { readStream } from '../../../ledger/store/streams.ts';
import type { NoticeCode } from '../../pages/notices.ts';
import { field, form } from '../../pages/elements.ts';
import { refundPath } from '../books/books-view.ts';
import type { Answer, View } from '../../pages/visit.ts';
import type { Console, ConsoleSite, OperatorVisit } from '../visit.ts';

interface Shown {
  readonly digest: string;
  readonly payment: QuoteState['payment'];
  readonly call: CallDetails | undefined;
}

const path = '/console/payments/:digest';
const about = {
  role: 'operator',
  subject: ({ params }: OperatorVisit): string | undefined => params['digest'],
  shownAt: pageOf,
} as const;

function pageOf(params: OperatorVisit['params']): string {
  return `/console/payments/${params['digest'] ?? ''}`;
}

function back({ params }: OperatorVisit, notice: NoticeCode): Answer {
  return { kind: 'redirect', to: pageOf(params), notice };
}

/** What an operator does about one payment: requeue its call, give it up, resolve its settlement. */
export function paymentActions(
  console: Console,
  { jobs }: ConsoleSite,
  show: (visit: OperatorVisit, mistake: string) => Promise<View>,
): void {
  if (!jobs) return;
  console.act(`${path}/requeue`, { ...about, action: 'requeue_call' }, async (visit) => {
    const context = jobs();
    const { name: operator } = visit.operator;
    const callId = await callOf(visit);
    if (callId === undefined) return show(visit, noCall);
    const { kind } = await requeueCall(context, callId, { operator });
    if (kind !== 'requeued')
      return show(visit, `The call of this payment: ${notRequeuedTexts[kind]}. Nothing was changed.`);
    context.onCallReleased();
    return back(visit, 'call_requeued');
  });

  console.act(`${path}/give-up`, { ...about, action: 'give_up_call' }, async (visit, { fields }) => {
    const why = fields.get('why')?.trim() ?? '';
    if (!operatorTextPattern.test(why)) return show(visit, textMistake);
    const by = { why, operator: visit.operator.name };
    const callId = await callOf(visit);
    if (callId === undefined) return show(visit, noCall);
    const { kind } = await discardCall(jobs(), callId, by);
    if (kind === 'not_found')
      return show(visit, 'This call is not in the outbox any more. Nothing was changed.');
    if (kind === 'with_runner')
      return show(
        visit,
        'A runner has this call under a lease: it can still be completed. Nothing was changed.',
      );
    return back(visit, 'call_given_up');
  });

  console.act(`${path}/resolve`, { ...about, action: 'resolve_settlement' }, async (visit, { fields }) => {
    const context = jobs();
    const digest = visit.params['digest'] ?? '';
    const evidence = fields.get('evidence')?.trim() ?? '';
    const transaction = fields.get('transaction')?.trim().toLowerCase() ?? '';
    if (!isHex32(digest)) return show(visit, 'There is no such quote.');
    if (!operatorTextPattern.test(evidence)) return show(visit, textMistake);
    const isUnpaid = fields.get('result') === 'unpaid';
    if (!isUnpaid && !isHex32(transaction))
      return show(visit, 'A transaction is 0x and 64 hexadecimal digits.');
    const result =
      isUnpaid || !isHex32(transaction)
        ? { kind: 'unpaid' as const }
        : { kind: 'paid' as const, transaction };
    const resolution = { result, evidence, operator: visit.operator.name };
    const { kind } = await resolveSettlementByOperator(
      context,
      digest,
      resolution,
      (network) => [...context.chains].find(([name]) => name === network)?.[1],
    );
    return kind === 'recorded' ? back(visit, 'settlement_resolved') : show(visit, resolveMistakes[kind]);
  });
}

/** The call of a quote's payment. */
export function callIdOf({ payment }: QuoteState): number | undefined {
  return payment?.call?.callId;
}

/** The call that the form of this page is about: read from the ledger, so that the event names the payment that was changed. */
async function callOf({ site, params }: OperatorVisit): Promise<number | undefined> {
  const digest = (params['digest'] ?? '').toLowerCase();
  if (!isHex32(digest)) return undefined;
  return callIdOf(foldQuote((await readStream(site.ledger.pool, digest)).events));
}

const noCall = 'This payment has no call. Nothing was changed.';

const textMistake =
  'Why you decide so is kept for ever: 1 to 200 visible ASCII characters, without "@". Nothing was changed.';

const resolveMistakes: Readonly<Record<Exclude<OperatorResolutionResult['kind'], 'recorded'>, string>> = {
  not_open: 'No settlement of this quote is open. Nothing was changed.',
  not_expired: 'Its authorization has not expired, so the money can still move. Nothing was recorded.',
  contradicted: 'The chain shows the opposite. Nothing was recorded.',
  log_unknown:
    'Which log of the transaction it is cannot be told: record it with `tollbook settlements resolve --log-index`. Nothing was recorded.',
  chain_unavailable: 'The chain could not be reached. Nothing was recorded; try again.',
  transfer_claimed: 'That transaction paid for something else. Nothing was recorded.',
  superseded: 'Another decision was recorded meanwhile. Look at the payment again.',
};

/** What can be done now, the likeliest first; without the permission the way to the refund alone, if one is due. */
export async function actionForms(
  visit: OperatorVisit,
  { digest, payment, call }: Shown,
): Promise<Html | undefined> {
  const isRefundDue = payment !== undefined && refundReason(payment) !== undefined;
  const mayChange = includesRole(visit.operator.role, 'operator');
  const isOpen = mayChange && (payment?.status === 'settling' || payment?.status === 'settlement_unknown');
  const isDead = mayChange && call?.status === 'dead';
  const isWaiting = mayChange && (isDead || call?.status === 'ready');
  if (!isRefundDue && !isOpen && !isWaiting) return undefined;
  const requeue = isDead ? await checkRequeue(visit.site.ledger, call.callId) : undefined;
  const canRequeue = requeue?.kind === 'possible';
  const at = (action: string): string => `/console/payments/${digest}/${action}`;
  return html`<section class="sheet">
    <h2>What to do</h2>
    ${canRequeue && isRefundDue && html`<p>Send the call to a runner again, or refund the payer: a refunded call is not delivered.</p>`}
    ${requeue && requeue.kind !== 'possible' && html`<p>The call cannot be requeued: ${notRequeuedTexts[requeue.kind]}.</p>`}
    <div class="actions">
      ${canRequeue && form(visit, at('requeue'), html`<button>Requeue the call</button>`)}
      ${isRefundDue && html`<a class="button ${canRequeue && 'plain'}" href="${refundPath({ quote_digest: digest, payment_nonce: payment.payment.nonce })}">Refund the payer</a>`}
    </div>
    ${isOpen && form(visit, at('resolve'), resolveFields)}
    ${
      isWaiting &&
      html`<details>
        <summary>Give the call up</summary>
        ${form(
          visit,
          at('give-up'),
          html`${field({ label: 'Why it is given up', name: 'why', maxLength: 200, autocomplete: 'off', hint: `It is never delivered then. ${payment?.isRefunded ? 'Its payment was refunded.' : 'Its refund stays due until it is sent.'}` })}<button
              class="danger"
              data-confirm="Press again: give call ${call?.callId ?? 0} up"
            >
              Give the call up
            </button>`,
        )}
      </details>`
    }
  </section>`;
}

const resolveFields = html`<h3>Resolve the settlement</h3>
  <fieldset class="choices">
    <legend>What happened</legend>
    <label><input type="radio" name="result" value="paid" checked /> it was paid by this transaction</label>
    <label><input type="radio" name="result" value="unpaid" /> it was not paid, and cannot be any more</label>
  </fieldset>
  ${field({ label: 'Transaction', name: 'transaction', maxLength: 66, isOptional: true, autocomplete: 'off' })}
  ${field({ label: 'Evidence', name: 'evidence', maxLength: 200, autocomplete: 'off', hint: 'How you know it. The gateway also asks the chain, which must not contradict you.' })}
  <button data-confirm="Press again: record it">Record it</button>`;
