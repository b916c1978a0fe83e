import { html, type Html } from '../../../base/values/html.ts';
import { findJob } from '../../../jobs/use-cases/catalog.ts';
import type { JobsContext } from '../../../jobs/use-cases/context.ts';
import type { Receipt } from '../../../jobs/http/schemas/receipt.ts';
import { badge, type Column, empty, shortId, table, time } from '../elements.ts';
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
    for (const wallet of wallets) sections.push(await walletSection(visit, context, wallet));
    return receiptsView(visit, context, sections);
  };
  pages.show('/jobs/receipts', readable({ before: isCursor }, show));
}

async function walletSection({ query }: Visit, context: JobsContext, wallet: OwnWallet): Promise<Html> {
  const asked = query.get('before') ?? '';
  const beforeSeq = query.get('wallet') === wallet.address && asked !== '' ? Number(asked) : undefined;
  const { calls, before } = await latestPaidCalls(context, wallet, beforeSeq, callsOnPage);
  const columns: Column<PaidCall>[] = [
    { label: 'When', cell: ({ settled_at: at }) => time(new Date(at)) },
    { label: 'Job', cell: (call) => jobOf(context, call) },
    { label: 'State', cell: (call) => stateOf(call) },
    {
      label: 'Receipt',
      cell: ({ quote_digest: digest }) => html`<a href="${receiptPath(digest)}">${digest.slice(0, 10)}…</a>`,
    },
    { label: 'Paid', isNumber: true, cell: (call) => tokenAmount(BigInt(call.amount), call) },
  ];
  if (calls.length === 0 && beforeSeq === undefined)
    return empty(
      'No paid calls yet',
      html`What the wallet ${shortId(wallet.address, 'the wallet')} pays for is here a second later.`,
      html`<a class="button" href="/jobs">See what is sold</a>`,
    );
  return html`<section class="sheet">
    <h2>Wallet ${shortId(wallet.address, 'the wallet')}</h2>
    ${table('Paid calls', columns, calls)}
    ${
      before !== undefined &&
      html`<p><a href="/jobs/receipts?wallet=${wallet.address}&before=${before}">Earlier ones</a></p>`
    }
  </section>`;
}

function jobOf(
  context: JobsContext,
  { service_id: serviceId, job_index: jobIndex }: PaidCall,
): Html | string {
  if (serviceId === null || jobIndex === null) return 'not known';
  const id = { serviceId, jobIndex };
  return html`<a href="${jobPath(id)}"
    >${jobName(findJob(context.catalog, id) ?? { ...id, name: undefined })}</a
  >`;
}

function stateOf({ state, refund_due: due }: PaidCall): Html {
  const { label, tone } = standingOf(state as Receipt['state']);
  return html`${badge(label, tone)} ${due !== null && state !== 'settled' && badge('refund due', 'warn')}`;
}

function receiptsView(visit: Visit, context: JobsContext, sections: readonly Html[]): View {
  const opened = openedReceipts(visit, context);
  const body = html`<p><a href="/jobs">Jobs</a></p>
    <div class="head"><h1>Receipts</h1></div>
    ${sections.length > 0 ? sections : withoutWallet(visit)}
    ${
      opened.length > 0 &&
      html`<section class="sheet">
        <h2>Opened in this browser</h2>
        <ul class="rows">
          ${opened.map(
            ({ digest }) => html`<li><a href="${receiptPath(digest)}">${digest.slice(0, 18)}…</a></li>`,
          )}
        </ul>
        <p class="hint">The last ones, until you sign out or close the browser.</p>
      </section>`
    }
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
        'Receipts belong to the wallet that paid. Add it on the account page, and all of its paid calls are here, with their results.',
        html`<a class="button" href="/account">To the account</a>`,
      )
    : empty(
        'Whose receipts?',
        'Receipts belong to the wallet that paid. Sign in with it, and all of its paid calls are here, with their results.',
        html`<a class="button" href="/sign-in?next=/jobs/receipts">Sign in with the wallet</a>`,
      );
}
