import { type EndRefusal, endRefund } from '../../../finance/use-cases/refunds/end-refund.ts';
import { type RefundRefusal, recordRefund } from '../../../finance/use-cases/refunds/record-refund.ts';
import {
  type SendRefusal,
  noteSentRefund,
  readRefunding,
  type RefundOf,
  startRefund,
} from '../../../finance/use-cases/refunds/send-refund.ts';
import { formatUnits } from 'viem/utils';
import { includesRole } from '../../../base/values/operator-role.ts';
import { type Refunding, refundedAtoms } from '../../../payments/rules/payment-progress.ts';
import { foldQuote, paidAmount, type PaymentState } from '../../../payments/rules/quote-state.ts';
import { refundReason, refundReasonTexts, remainingAtoms } from '../../../payments/rules/refund.ts';
import { html, type Html } from '../../../base/values/html.ts';
import { operatorTextPattern } from '../../../base/values/operator-words.ts';
import { type Caip2, type Hex, isHex32, parseAddress } from '../../../base/values/primitives.ts';
import type { JobsContext } from '../../../jobs/use-cases/context.ts';
import { walletNetworks } from '../../pages/known-networks.ts';
import { walletSteps } from '../../pages/payment.ts';
import { noticeOf } from '../../pages/document.ts';
import { tokenAmount } from '../../pages/jobs/token-amount.ts';
import type { NoticeCode } from '../../pages/notices.ts';
import { badge, factList, field, form, shortId, time } from '../../pages/elements.ts';
import { notFound } from '../../pages/problem.ts';
import type { Answer, Data, View } from '../../pages/visit.ts';
import { readMined, requireFinal } from '../../../finance/use-cases/refunds/final-transfers.ts';
import { readStream } from '../../../ledger/store/streams.ts';
import type { Console, OperatorVisit } from '../visit.ts';
import { chainMistakes } from './record-money.ts';
import { networkText } from '../../pages/known-networks.ts';
import { booksView, refundsPath, transactionWithLink } from './books-view.ts';

/** Why a wallet is not asked. */
const sendMistakes: Readonly<Record<SendRefusal, string>> = {
  not_due: 'No refund of this payment is due any more.',
  payment_unproven:
    'Only the facilitator says that this was paid, or an operator, and you gave no reason: no block proves it.',
  payment_not_final:
    'The block of this payment is not final yet, so a reorg may still take the payment back. Try again in a while.',
  not_shown:
    'The chain does not show this payment, so there may be nothing to refund. Pay nothing before the command tollbook verify finds the ledger sound and a reconciliation has explained it.',
  changed:
    'The events are not all those that the log has sealed: somebody has changed, moved or removed some. Pay nothing before the command tollbook verify finds the ledger sound.',
  under_way:
    'This refund is being sent already, by you in another page or by somebody else. Load this page again.',
  not_started: 'No operator is sending this refund now. Load this page again.',
  superseded: 'Something else was recorded of this payment at the same moment. Load this page again.',
  chain_unavailable: 'The chain could not be asked. Nothing was changed; try again.',
};

/** Why a refund is not given up. */
const endMistakes: Readonly<Record<EndRefusal, string>> = {
  not_started: 'No operator is sending this refund now. Load this page again.',
  landed: 'Its transaction is in a block, so it has moved money: record it. Nothing was changed.',
  pending:
    'Its transaction waits for a block, or its nonce is not spent in a final one, so it may still move money. Nothing was changed.',
  look_alike:
    'A transfer of as much to the payer is on the chain that nothing has claimed: if it is this refund, record it. Nothing was changed.',
  unproven: 'The chain does not prove that it cannot land. Nothing was changed.',
  said_before: 'You have said so before: another operator has to say so too. Nothing was changed.',
  superseded: 'Something else was recorded of this payment at the same moment. Load this page again.',
  chain_unavailable: 'The chain could not be asked. Nothing was changed; try again.',
};

/** Why a refund is not recorded by a transaction. */
const recordMistakes: Readonly<Record<RefundRefusal, string>> = {
  ...chainMistakes,
  quote_unknown: 'There is no such quote.',
  payment_unknown: 'This quote has no such payment.',
  not_paid: 'This quote is not paid: there is nothing to refund.',
  payment_unproven:
    'The chain does not show the payment: only a facilitator reported it, or its block was replaced.',
  refunded_before: 'The whole payment was already refunded by other transactions.',
  refund_under_way: 'Another refund of this payment is started, of another amount. It has to end first.',
  amount_of_other_token: 'The amount is in another token than the payment.',
  too_much: 'This is more than is left of the payment.',
  to_payee: 'This address is a payee of yours: money that goes there is not refunded.',
  delivered:
    'Its call was completed. A refund of goodwill is recorded by the command tollbook refunds record.',
  call_open: 'Its call may still be delivered: give it up first.',
  other_address: 'This transaction does not transfer the token to the payer.',
  other_amount: 'This transaction transfers another amount than what is left of the payment.',
  other_token: 'This transaction transfers another token to the payer.',
  no_transfer: 'This transaction has no such transfer.',
  moved_nothing: 'This transfer is from an address to itself.',
  before_payment: 'This transfer is older than the payment.',
  transfer_claimed: 'This transfer is already recorded for another purpose.',
  other_sender: 'Its refund was started for another transaction: record that one, or give it up first.',
  superseded: 'Another command was recorded meanwhile; try again.',
};

const path = `${refundsPath}/:digest/:nonce`;

/** One refund: sent by the operator's wallet, or recorded by its transaction. Each step is recorded before the next one. */
export function refundPages(console: Console, jobs: () => JobsContext): void {
  const about = { role: 'finance', shownAt: pageOf, subject } as const;
  console.showPresent(path, (visit) => refundView(visit, jobs()));
  console.showPresent(`${path}/transaction`, (visit) => progressOf(visit, jobs()));

  console.act(`${path}/start`, { ...about, action: 'start_refund' }, async (visit, { fields }) => {
    const of = named(visit);
    const sender = parseAddress(fields.get('sender') ?? '');
    const evidence = fields.get('evidence')?.trim() || undefined;
    if (!of) return data(404, 'There is no such payment. Nothing was sent.');
    if (evidence !== undefined && !operatorTextPattern.test(evidence)) return data(400, evidenceMistake);
    const by = { ...of, sender, evidence, operator: visit.operator.name };
    const { chains, config } = jobs();
    const started = await startRefund(visit.site.ledger, by, chains, config.log?.attestedBy);
    if (started.kind === 'refused')
      return data(409, `${sendMistakes[started.code]} Nothing was sent by this page.`);
    return { kind: 'data', status: 200, json: { network: started.network, call: started.call } };
  });

  console.act(`${path}/sent`, { ...about, action: 'note_sent_refund' }, async (visit, { fields }) => {
    const of = named(visit);
    const transaction = fields.get('transaction')?.toLowerCase() ?? '';
    if (!of || !isHex32(transaction)) return data(400, 'This is not a transaction. It was not recorded.');
    const by = { ...of, transaction, operator: visit.operator.name };
    const noted = await noteSentRefund(visit.site.ledger, by, jobs().chains);
    return noted.kind === 'refused' ? data(409, sendMistakes[noted.code]) : data(200, 'recorded');
  });

  console.act(`${path}/drop`, { ...about, action: 'drop_refund' }, async (visit, { fields }) => {
    const of = named(visit);
    const why = fields.get('why')?.trim() ?? '';
    if (!of) return notFound('payment');
    if (!operatorTextPattern.test(why)) return refundView(visit, jobs(), whyMistake);
    const by = { ...of, why, operator: visit.operator.name };
    const ended = await endRefund(visit.site.ledger, by, jobs().chains);
    if (ended.kind === 'refused') return refundView(visit, jobs(), endMistakes[ended.code]);
    return back(visit, ended.kind === 'abandoned' ? 'refund_dropped' : 'refund_said_not_sent');
  });

  console.act(`${path}/record`, { ...about, action: 'record_refund' }, async (visit, { fields }) => {
    const of = named(visit);
    const transaction = fields.get('transaction')?.trim().toLowerCase() ?? '';
    if (!of) return notFound('payment');
    if (!isHex32(transaction))
      return refundView(
        visit,
        jobs(),
        'A transaction is 0x and 64 hexadecimal digits. Nothing was recorded.',
      );
    const by = { ...of, transaction, operator: visit.operator.name };
    const answer = await recordRefund(visit.site.ledger, { ...by, isGoodwill: false }, jobs().chains);
    return answer.kind === 'refused'
      ? refundView(visit, jobs(), `${recordMistakes[answer.code]} Nothing was recorded.`)
      : { kind: 'redirect', to: pageOf(visit.params) };
  });
}

const whyMistake =
  'Why you know that it was not sent is kept for ever: 1 to 200 visible ASCII characters, without "@". Nothing was recorded.';

const evidenceMistake =
  'Why it is refunded is kept for ever: 1 to 200 visible ASCII characters, without "@". Nothing was sent.';

function data(status: number, message: string): Data {
  return { kind: 'data', status, json: { message } };
}

function pageOf(params: OperatorVisit['params']): string {
  return `${refundsPath}/${params['digest'] ?? ''}/${params['nonce'] ?? ''}`;
}

function subject({ params }: OperatorVisit): string {
  return params['digest'] ?? '';
}

function back({ params }: OperatorVisit, notice: NoticeCode): Answer {
  return { kind: 'redirect', to: pageOf(params), notice };
}

function named({ params }: OperatorVisit): RefundOf | undefined {
  const { digest: quoteDigest = '', nonce: paymentNonce = '' } = params;
  return isHex32(quoteDigest) && isHex32(paymentNonce) ? { quoteDigest, paymentNonce } : undefined;
}

/** How far the transaction of a refund is, for the module of the page. */
async function progressOf(visit: OperatorVisit, { chains }: JobsContext): Promise<Answer> {
  const of = named(visit);
  const { state: refunded } = of ? await readRefunding(visit.site.ledger.pool, of) : {};
  const transaction = refunded?.refunding?.transaction as Hex | undefined;
  const answer = (state: string, text = ''): Data => ({
    kind: 'data',
    status: 200,
    json: { state, text, transaction },
  });
  if (!refunded) return answer('none');
  if (transaction === undefined) return answer('started');
  const network = refunded.payment.network as Caip2;
  const mined = await readMined(chains, network, transaction, []);
  if (mined.kind === 'refused')
    return mined.code === 'transaction_failed'
      ? answer('failed', 'The transaction failed, so nothing was sent. Say so below, then send it again.')
      : answer('waiting', mined.detail ?? recordMistakes[mined.code]);
  const early = await requireFinal(chains, network, mined);
  return early ? answer('waiting', early.detail ?? recordMistakes[early.code]) : answer('final');
}

async function refundView(visit: OperatorVisit, context: JobsContext, mistake?: string): Promise<View> {
  const { site, params } = visit;
  const of = named(visit);
  const quote = foldQuote(of ? (await readStream(site.ledger.pool, of.quoteDigest)).events : []);
  const state = quote.payment;
  if (!of || state?.payment.nonce !== of.paymentNonce) return notFound('payment');
  const { refunding } = state;
  const reason = refundReason(state);
  const body = html`${refunding ? sendingNotice(state, refunding) : owedNotice(state)}
  ${includesRole(visit.operator.role, 'finance') && waysOf(visit, { context, state, isDue: reason !== undefined })}
  ${factsOf(state, of.quoteDigest)}`;
  return booksView(site, refundsPath, `Refund ${(params['digest'] ?? '').slice(0, 10)}`, body, {
    up: [refundsPath, 'Refunds due'],
    heading: html`Refund of
    ${tokenAmount(state.isRefunded ? refundedAtoms(state) : remainingAtoms(state), state.payment)}`,
    beside: refundBadge(state),
    mistake,
    scripts: ['refund.js'],
  });
}

function refundBadge(state: PaymentState): Html | false {
  if (state.refunding)
    return badge(state.refunding.transaction === undefined ? 'not known whether sent' : 'being sent', 'warn');
  if (state.isRefunded) return badge('refunded', 'good');
  return refundReason(state) === undefined && badge('not due');
}

/** What is owed, in one sentence. */
function owedNotice(state: PaymentState): Html {
  const reason = refundReason(state);
  const last = state.refunds.at(-1);
  if (reason !== undefined)
    return html`<p class="notice bad">
      ${tokenAmount(remainingAtoms(state), state.payment)} are due to the payer:
      ${refundReasonTexts[reason] ?? reason}.
    </p>`;
  return state.isRefunded && last
    ? html`<p class="notice good" role="status">
        The refund is recorded. ${tokenAmount(refundedAtoms(state), state.payment)} were paid back on
        ${time(new Date(last.at))}, and nothing is left to do.
      </p>`
    : html`<p class="notice">No refund is due.</p>`;
}

function factsOf(state: PaymentState, quoteDigest: string): Html {
  const { payment, settled, refunds, refunding } = state;
  const { network, payer } = payment;
  const reason = refundReason(state);
  return html`<section class="sheet">
    <h2>The payment</h2>
    ${factList([
      ['Paid', html`${tokenAmount(BigInt(paidAmount(state)), payment)} on ${networkText(network)}`],
      settled && ['Transaction', transactionWithLink(network, settled.transaction)],
      ['Payer', shortId(payer, 'the payer')],
      // else the first line of the page says it
      refunding && reason !== undefined && ['Why', refundReasonTexts[reason] ?? reason],
      ...refunds.flatMap(({ amount, transaction }): [string, Html][] => [
        ['Refunded', tokenAmount(amount, payment)],
        ['By transaction', transactionWithLink(network, transaction)],
      ]),
    ])}
    <p><a href="/console/payments/${quoteDigest}">All events of the payment</a></p>
  </section>`;
}

interface Ways {
  readonly context: JobsContext;
  readonly state: PaymentState;
  readonly isDue: boolean;
}

function waysOf(visit: OperatorVisit, ways: Ways): Html | undefined {
  const { state, isDue } = ways;
  const { refunding } = state;
  if (refunding)
    return html`${walletSheet(visit, ways)}
      <section class="sheet">
        <h2>It was sent</h2>
        ${recordForm(visit, refunding.transaction)}
      </section>
      <section class="sheet">
        <h2>It was not sent</h2>
        ${form(
          visit,
          `${pageOf(visit.params)}/drop`,
          html`${field({ label: 'How you know', name: 'why', maxLength: 200, autocomplete: 'off', hint: 'Such as: the wallet lists no transfer, and none waits. The gateway asks the chain too; if the chain cannot prove it, a second operator has to say the same. Then the refund can be sent again.' })}
            <button class="danger" data-confirm="Press again: it was not sent, and never will be">
              It was not sent
            </button>`,
        )}
      </section>`;
  if (!isDue) return undefined;
  if (!state.settled?.proof && state.settled?.evidence !== 'operator')
    return noticeOf({
      tone: 'warn',
      text: 'Only the facilitator says that this was paid: no block proves it yet, so no wallet is asked.',
    });
  return html`${walletSheet(visit, ways)}
    <details class="sheet">
      <summary>It was sent already</summary>
      ${recordForm(visit, undefined)}
    </details>`;
}

/** That a refund is being sent, and what to do meanwhile. */
function sendingNotice({ payment }: PaymentState, refunding: Refunding): Html {
  const { operator, amount, at, sender, transaction, notSentBy } = refunding;
  const begun = html`${operator} began to send
  ${tokenAmount(amount, payment)}${sender !== undefined && html` from ${shortId(sender, 'the sender')}`} on
  ${time(new Date(at))}`;
  return html`<div class="notice warn" role="alert">
    ${
      transaction === undefined
        ? html`Do not send it again. ${begun}, and it is not known whether the wallet has sent it. Look into
          that wallet, then enter below the transaction that it sent, or say that it sent none.`
        : html`${begun} by transaction ${transactionWithLink(payment.network, transaction)}. The refund is
          recorded once the transaction is final.`
    }
    ${notSentBy !== undefined && html`${notSentBy} says that it was not sent: another operator has to say so too.`}
  </div>`;
}

function recordForm(visit: OperatorVisit, transaction: string | undefined): Html {
  return form(
    visit,
    `${pageOf(visit.params)}/record`,
    html`${field({ label: 'Transaction', name: 'transaction', value: transaction ?? visit.query.get('transaction'), maxLength: 66, autocomplete: 'off', hint: 'The gateway asks the chain: it must be final, and have sent exactly this amount to the payer.' })}
      <button>Record the refund</button>`,
  );
}

const steps = [
  ['connect', 'Connect the wallet'],
  ['check', 'Check the network and what the wallet has'],
  ['claim', 'Record that you send it'],
  ['send', 'Confirm the transfer in the wallet'],
  ['final', 'Wait until the chain shows it as final'],
  ['record', 'Record the refund'],
] as const;

/** Sends the refund, or follows the sent one: assets/refund.js makes it work. */
function walletSheet(visit: OperatorVisit, { context, state }: Ways): Html {
  const { refunding: sending } = state;
  const { network, asset, symbol, decimals, payer: to } = state.payment;
  const token = { network, asset, symbol, decimals, to, amount: String(remainingAtoms(state)) };
  const networks = walletNetworks(context.settings.networks);
  return html`<section
    class="sheet pay"
    data-refund="${pageOf(visit.params)}"
    data-token="${JSON.stringify(token)}"
    data-networks="${JSON.stringify(networks)}"
    data-state="${sending === undefined ? 'due' : 'sending'}"
    data-transaction="${sending?.transaction ?? ''}"
  >
    <h2>${sending ? 'What the wallet sent' : 'Send it with a wallet'}</h2>
    <div class="notice" data-without-wallet>
      ${
        sending
          ? 'This page follows the transaction with JavaScript.'
          : html`This needs JavaScript and a wallet in this browser. Without one, send it in another way, such
              as by <code>tollbook refunds batch</code>, and record its transaction below.`
      }
    </div>
    ${
      !sending &&
      html`<form method="post" action="${pageOf(visit.params)}/start" hidden>
        <input type="hidden" name="form" value="${visit.token}" />
        <fieldset data-wallets hidden>
          <legend>Wallet</legend>
          <div class="choices"></div>
        </fieldset>
        ${
          !state.settled?.proof &&
          field({
            label: 'Why it is refunded',
            name: 'evidence',
            maxLength: 200,
            autocomplete: 'off',
            hint: 'No block proves that this was paid, only an operator says so. What you know is kept for ever.',
          })
        }
        <button>Send ${formatUnits(remainingAtoms(state), decimals)} ${symbol} from the wallet</button>
      </form>`
    }
    ${walletSteps(steps)}
  </section>`;
}
