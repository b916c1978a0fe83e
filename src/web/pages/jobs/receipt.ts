import { Readable } from 'node:stream';
import { html, type Html, type Shown } from '../../../base/values/html.ts';
import { type Hex, isHex32 } from '../../../base/values/primitives.ts';
import { readProvenReceipt } from '../../../jobs/http/receipt.ts';
import type { Receipt } from '../../../jobs/http/schemas/receipt.ts';
import { findJob } from '../../../jobs/use-cases/catalog.ts';
import type { JobsContext } from '../../../jobs/use-cases/context.ts';
import { readReceipt } from '../../../jobs/use-cases/receipt.ts';
import { findResult } from '../../../calls/use-cases/result-file.ts';
import { findCallDetails, nextAttemptAt } from '../../../payments/store/payment-search.ts';
import { isReceiptToken } from '../../../payments/use-cases/receipt-keys.ts';
import { networkName, walletNetworks } from '../known-networks.ts';
import { count, exactTime, factList, field, form, shortId, time } from '../elements.ts';
import { notFound } from '../problem.ts';
import type { Pages } from '../serve.ts';
import type { Answer, View, Visit } from '../visit.ts';
import { jobName, jobPath } from './catalogue.ts';
import { openedReceipts, withReceipt } from './opened-receipts.ts';
import { hasPaid, ownWallets } from './paid-calls.ts';
import { proofView } from './proof-view.ts';
import { eventText, failedAttempts, standingOf, stepList } from './receipt-steps.ts';
import { refundHeadline, refundNotice } from './refund-notice.ts';
import { resultView } from './result-view.ts';
import { tokenAmount } from './token-amount.ts';

/** One paid call: its state, its payment, its result for the payer, and its proof. */
/** The operator gave the call up, or its answer says that it failed. */
function grantedText({ state }: Receipt): string {
  return state === 'completed'
    ? 'The job was done, and its answer says that it failed.'
    : 'The operator stopped the job.';
}

export function receiptPages(pages: Pages, current: () => JobsContext): void {
  const path = '/jobs/receipts/:digest';
  pages.show(path, async (visit) => {
    const context = current();
    const found = await findReceipt(visit, context);
    const receipt = found && (await readProvenReceipt(context, visit.site.log, found.digest, found.isOpened));
    return receipt
      ? receiptView(visit, context, receipt, { ...found, attempts: await readAttempts(context, receipt) })
      : notFound('receipt', ['/jobs/receipts', 'Receipts']);
  });

  pages.show(`${path}/result`, async (visit) => {
    const found = await findReceipt(visit, current());
    const result = found?.isOpened ? await findResult(current(), found.digest) : undefined;
    if (!found || !result) return notFound('result');
    const whole = result.read({ from: 0, end: result.bytes });
    const bytes = Readable.from(whole, { objectMode: false });
    return { kind: 'file', name: `result-${found.digest.slice(2, 12)}`, bytes, length: result.bytes };
  });

  pages.take('/jobs/receipts', { secrets: ['token'], shownAt: '/jobs/receipts' }, (visit, { fields }) =>
    openReceipt(visit, current(), fields),
  );
}

/** Shows the result in this browser from now on, to who has the receipt's token. */
function openReceipt(visit: Visit, context: JobsContext, fields: URLSearchParams): Answer {
  const digest = (fields.get('digest') ?? '').trim().toLowerCase();
  const token = (fields.get('token') ?? '').trim();
  if (!isHex32(digest)) return { kind: 'redirect', to: '/jobs/receipts', notice: 'no_receipt' };
  const to = receiptPath(digest);
  if (!isReceiptToken(context.receiptKeys, digest, token, context.log))
    return { kind: 'redirect', to, notice: 'wrong_receipt_token' };
  const opened = openedReceipts(visit, context);
  return { kind: 'redirect', to, cookies: [withReceipt(visit.site.publicUrl(), opened, { digest, token })] };
}

export function receiptPath(digest: string): string {
  return `/jobs/receipts/${digest}`;
}

interface Found {
  readonly digest: Hex;
  /** To who paid: with the result. */
  readonly isOpened: boolean;
}

/** A receipt is open to a browser that has its token and to a user who has signed in with the wallet that paid. */
async function findReceipt(visit: Visit, context: JobsContext): Promise<Found | undefined> {
  const digest = (visit.params['digest'] ?? '').toLowerCase();
  if (!isHex32(digest)) return undefined;
  if (openedReceipts(visit, context).some((one) => one.digest === digest)) return { digest, isOpened: true };
  const reading = await readReceipt(context, digest, false);
  return reading && { digest, isOpened: hasPaid(await ownWallets(visit), reading.receipt) };
}

interface Attempts {
  readonly failed: number;
  /** When the next one begins, if that is in the future. */
  readonly nextAt: Date | undefined;
}

/** Those that failed of a job that is still tried; undefined if there is none. */
async function readAttempts({ pool }: JobsContext, receipt: Receipt): Promise<Attempts | undefined> {
  const { state, events, call_id: callId } = receipt;
  const failed = failedAttempts(events).length;
  if (failed === 0 || callId === undefined || (state !== 'enqueued' && state !== 'delivered'))
    return undefined;
  const call = await findCallDetails(pool, callId);
  return { failed, nextAt: call && nextAttemptAt(call) };
}

function attemptsText({ failed, nextAt }: Attempts): Html {
  const many = failed === 1 ? 'One attempt' : html`${count(failed)} attempts`;
  return html`${many} failed${nextAt && html`, and the next is on ${time(nextAt)}`}.`;
}

function receiptView(
  visit: Visit,
  context: JobsContext,
  receipt: Receipt,
  { isOpened, attempts }: Found & { readonly attempts: Attempts | undefined },
): View {
  const { quote_digest: digest, state, events, refund_request: request } = receipt;
  const standing = standingOf(state);
  const { label, text, outlook, isOpen = false } = standing;
  const ifDoneFirst =
    isOpen && request?.state === 'open' && 'If the job is done first, nothing is paid back.';
  const waits = attempts?.nextAt !== undefined;
  const headline = refundHeadline(receipt) ?? (waits ? 'Paid, not done yet' : standing.headline);
  const body = html`<p><a href="/jobs">Jobs</a> / <a href="/jobs/receipts">Receipts</a></p>
    <section
      class="sheet"
      data-follow="${digest}"
      data-events="${events.length}"
      data-open="${isOpen ? 'yes' : ''}"
    >
      <h1>${headline}</h1>
      <p>
        ${!waits && (request?.state === 'granted' ? grantedText(receipt) : text)}
        ${attempts && attemptsText(attempts)} ${(!request || request.state === 'declined') && outlook}
        ${ifDoneFirst}
        ${isOpened && state === 'completed' && 'Its result is below, and nothing is left to do.'}
      </p>
      ${refundNotice(receipt, isOpened)} ${state !== 'completed' && stepList(standing)}
      ${isOpen && html`<p><a class="button plain" href="?">Look again</a></p>`}
      ${resultPart(visit, receipt, isOpened)}
    </section>
    <section class="sheet">
      <h2>Receipt</h2>
      ${factList(factsOf(context, receipt))}
    </section>
    <details class="sheet">
      <summary>What happened</summary>
      ${factList(events.map(({ type, at }) => [exactTime(new Date(at)), eventText(type)]))}
    </details>
    ${proofView(receipt, `${context.publicUrl()}/x402/receipts/${digest}`)}`;
  return { kind: 'view', title: `Receipt: ${label}`, section: 'jobs', body, scripts: ['jobs.js'] };
}

function factsOf(context: JobsContext, receipt: Receipt): [string, Shown][] {
  const { service_id: serviceId, job_index: jobIndex, payment, events, quote_digest: digest } = receipt;
  const refunded = receipt.refunds?.reduce((sum, { amount }) => sum + BigInt(amount), 0n);
  const id = serviceId === undefined || jobIndex === undefined ? undefined : { serviceId, jobIndex };
  const job = id && findJob(context.catalog, id);
  const settled = events.find(({ type }) => type === 'payment_settled');
  return Object.entries({
    Job: id && html`<a href="${jobPath(id)}">${jobName(job ?? { ...id, name: undefined })}</a>`,
    Paid: payment && paidAmount(context, payment),
    'Paid back':
      payment && refunded !== undefined && paidAmount(context, { ...payment, amount: String(refunded) }),
    When: settled && time(new Date(settled.at)),
    'By wallet': payment && shortId(payment.payer, 'the wallet'),
    Network: payment && networkName(payment.network, context.settings.networks),
    Transaction: payment && transaction(context, payment),
    Receipt: shortId(digest, 'the digest of the receipt'),
  });
}

type Payment = NonNullable<Receipt['payment']>;

/** In the token's own units if its decimals are not configured any more. */
function paidAmount({ settings }: JobsContext, { network, asset, symbol, amount }: Payment): Html {
  const token = settings.acceptedTokens.find((one) => one.network === network && one.asset === asset);
  return tokenAmount(BigInt(amount), { symbol, network, decimals: token?.decimals ?? 0 });
}

/** If the chain is public, with a link to a block explorer. */
function transaction(
  { settings }: JobsContext,
  { network, transaction: hash }: { readonly network: string; readonly transaction: string },
): Html {
  const [explorer] = walletNetworks(settings.networks)[network]?.blockExplorerUrls ?? [];
  return html`${shortId(hash, 'the hash of the transaction')}
  ${
    explorer !== undefined &&
    html`<a href="${explorer}/tx/${hash}" rel="noreferrer noopener" target="_blank">See it on the chain</a>`
  }`;
}

function resultPart(visit: Visit, receipt: Receipt, isOpened: boolean): Html | undefined {
  const { quote_digest: digest, state } = receipt;
  if (state !== 'completed') return undefined;
  return html`<h2>Result</h2>
    ${isOpened ? resultView(receipt, `${receiptPath(digest)}/result`) : openForm(visit, digest)}`;
}

/** @param digest of the receipt; to be typed if it is left out */
export function openForm(visit: Visit, digest?: string): Html {
  const fields = html`${
      digest === undefined
        ? field({
            label: 'Receipt',
            name: 'digest',
            hint: 'Its digest: 0x and 64 digits.',
            maxLength: 66,
            autocomplete: 'off',
          })
        : html`<input type="hidden" name="digest" value="${digest}" />`
    }
    ${field({ label: 'Receipt token', name: 'token', hint: 'The program that paid got it as receipt_token.', maxLength: 60, autocomplete: 'off' })}
    <button class="plain">Show the result</button>`;
  return html`<p>${whoSees(visit, digest)}</p>
    ${form(visit, '/jobs/receipts', fields)}`;
}

function whoSees({ visitor, path }: Visit, digest: string | undefined): Html | string {
  if (digest === undefined) return 'Anybody who has the token of a receipt can see its result.';
  if (visitor)
    return 'Only its payer may see the result, and your account does not have the wallet that paid.';
  return html`Only its payer may see the result. <a href="/sign-in?next=${path}">Sign in</a> with the wallet
    that paid, or give the receipt’s token.`;
}
