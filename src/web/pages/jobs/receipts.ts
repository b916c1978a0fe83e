import { formatUnits } from 'viem/utils';
import { html, type Html } from '../../../base/values/html.ts';
import { findJob } from '../../../jobs/use-cases/catalog.ts';
import type { JobsContext } from '../../../jobs/use-cases/context.ts';
import { readReceipt } from '../../../jobs/use-cases/receipt.ts';
import type { Receipt } from '../../../jobs/http/schemas/receipt.ts';
import { badge, type Column, digitsOf, empty, shortId, table, time } from '../elements.ts';
import { isCursor, readable } from '../filters.ts';
import type { Pages } from '../serve.ts';
import type { View, Visit } from '../visit.ts';
import { jobName, jobPath } from './catalogue.ts';
import { openedReceipts } from './opened-receipts.ts';
import { latestPaidCalls, type OwnWallet, ownWallets, type PaidCall } from './paid-calls.ts';
import { openForm, receiptPath } from './receipt.ts';
import { standingOf } from './receipt-steps.ts';
import { tokenAmount } from './token-amount.ts';

const callsOnPage = 50;

/** The paid calls of who looks: those of the wallets that the user signed in with, and those that this browser has opened. */
export function receiptsPage(pages: Pages, current: () => JobsContext): void {
  const show = async (visit: Visit) => {
    const context = current();
    const wallets = await ownWallets(visit);
    const sections: Html[] = [];
    const listed = new Set<string>();
    for (const wallet of wallets) {
      const { section, calls } = await walletSection(visit, context, wallet);
      sections.push(section);
      for (const { quote_digest: digest } of calls) listed.add(digest);
    }
    const opened: Opened[] = [];
    for (const { digest } of openedReceipts(visit, context)) {
      if (listed.has(digest)) continue;
      const reading = await readReceipt(context, digest, false);
      if (reading) opened.push(reading.receipt);
    }
    return receiptsView(visit, context, sections, opened);
  };
  pages.show('/jobs/receipts', readable({ before: isCursor }, show));
}

type Opened = Pick<Receipt, 'quote_digest' | 'state' | 'service_id' | 'job_index'>;

async function walletSection(
  { query }: Visit,
  context: JobsContext,
  wallet: OwnWallet,
): Promise<{ readonly section: Html; readonly calls: readonly PaidCall[] }> {
  const asked = query.get('before') ?? '';
  const beforeSeq = query.get('wallet') === wallet.address && asked !== '' ? Number(asked) : undefined;
  const { calls, before } = await latestPaidCalls(context, wallet, beforeSeq, callsOnPage);
  const amounts = calls.map(({ amount, decimals }) => formatUnits(BigInt(amount), decimals));
  const digits = digitsOf(amounts, 0);
  const columns: Column<PaidCall>[] = [
    { label: 'When', cell: ({ settled_at: at }) => time(new Date(at)) },
    { label: 'Job', cell: (call) => jobOf(context, call) },
    { label: 'State', cell: (call) => stateOf(call) },
    { label: 'Receipt', cell: ({ quote_digest: digest }) => receiptLink(digest) },
    { label: 'Paid', isNumber: true, cell: (call) => tokenAmount(BigInt(call.amount), call, digits) },
  ];
  if (calls.length === 0 && beforeSeq === undefined)
    return {
      calls,
      section: empty(
        'No paid calls yet',
        html`What this wallet pays for is here a second later: ${shortId(wallet.address, 'the wallet')}`,
        html`<a class="button" href="/jobs">See what is sold</a>`,
      ),
    };
  const section = html`<section class="sheet">
    ${table('Paid calls', columns, calls)}
    <p class="hint">By the wallet ${shortId(wallet.address, 'the wallet')}</p>
    ${
      before !== undefined &&
      html`<p><a href="/jobs/receipts?wallet=${wallet.address}&before=${before}">Earlier ones</a></p>`
    }
  </section>`;
  return { section, calls };
}

function jobOf(
  context: JobsContext,
  { service_id: serviceId, job_index: jobIndex }: PaidCall | Opened,
): Html | string {
  if (typeof serviceId !== 'number' || typeof jobIndex !== 'number') return 'not known';
  const id = { serviceId, jobIndex };
  return html`<a href="${jobPath(id)}"
    >${jobName(findJob(context.catalog, id) ?? { ...id, name: undefined })}</a
  >`;
}

function stateOf({ state, refund_due: due }: PaidCall): Html {
  return html`${stateBadge(state as Receipt['state'])}
  ${due !== null && state !== 'settled' && badge('refund due', 'warn')}`;
}

function stateBadge(state: Receipt['state']): Html {
  const { label, tone } = standingOf(state);
  return badge(label, tone);
}

function receiptLink(digest: string): Html {
  return html`<a href="${receiptPath(digest)}" title="${digest}">Open</a>`;
}

function receiptsView(
  visit: Visit,
  context: JobsContext,
  sections: readonly Html[],
  opened: readonly Opened[],
): View {
  const columns: Column<Opened>[] = [
    { label: 'Job', cell: (receipt) => jobOf(context, receipt) },
    { label: 'State', cell: ({ state }) => stateBadge(state) },
    { label: 'Receipt', cell: ({ quote_digest: digest }) => receiptLink(digest) },
  ];
  const body = html`<p><a href="/jobs">Jobs</a></p>
    <div class="head"><h1>Receipts</h1></div>
    ${sections}
    ${
      opened.length > 0 &&
      html`<section class="sheet">
        ${table('Opened in this browser', columns, opened)}
        <p class="hint">Kept until you sign out or close the browser.</p>
      </section>`
    }
    ${sections.length === 0 && withoutWallet(visit)}
    <details class="sheet">
      <summary>Open a receipt with its token</summary>
      ${openForm(visit)}
    </details>`;
  return { kind: 'view', title: 'Receipts', section: 'jobs', body };
}

function withoutWallet({ visitor }: Visit): Html {
  return visitor
    ? empty(
        'This account has no wallet',
        'Receipts belong to the wallet that paid. Add it on the account page to see all of its paid calls and their results.',
        html`<a class="button" href="/account">To the account</a>`,
      )
    : empty(
        'Sign in to see your receipts',
        'Receipts belong to the wallet that paid. Sign in with it to see all of its paid calls and their results.',
        html`<a class="button" href="/sign-in?next=/jobs/receipts">Sign in with the wallet</a>`,
      );
}
