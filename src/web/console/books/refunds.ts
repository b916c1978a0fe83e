import { cursorOf, pageLinks, tableSheet } from '../tables.ts';
import { refundReasonTexts } from '../../../payments/rules/refund.ts';
import { html, type Html } from '../../../base/values/html.ts';
import { visibleText } from '../../../base/values/visible-text.ts';
import { noticeOf } from '../../pages/document.ts';
import { tokenAmount } from '../../pages/jobs/token-amount.ts';
import { ageText } from '../../../base/values/age-text.ts';
import { badge, type Column, empty, shortId, time } from '../../pages/elements.ts';
import type { View } from '../../pages/visit.ts';
import { type ListedRefund, listRefundsDue } from '../../../finance/use-cases/refunds/list-refunds-due.ts';
import type { Console, ConsoleSite, OperatorVisit } from '../visit.ts';
import { booksView, refundPath, refundsPath } from './books-view.ts';
import { refundPages } from './refund.ts';

const shownRows = 50;

/** What is owed to payers, and how it is given back. */
export function refundsPages(console: Console, site: ConsoleSite): void {
  if (!site.jobs) return;
  console.show(refundsPath, listView);
  refundPages(console, site.jobs);
}

async function listView({ site, query }: OperatorVisit): Promise<View> {
  const { pool } = site.ledger;
  const after = cursorOf(query, 'after') ?? 0;
  const { rows, contradicted, changed, listed } = await listRefundsDue(pool, after, shownRows);
  const next = listed.length < shownRows ? undefined : listed.at(-1);
  const columns: Column<ListedRefund>[] = [
    {
      label: 'Due since',
      cell: (row) =>
        html`<a href="${refundPath(row)}">${time(new Date(row.since))}</a>
          <span class="line hint">for ${ageText(row.age_secs)}</span>`,
    },
    { label: 'Amount', isNumber: true, cell: (row) => tokenAmount(BigInt(row.amount), row) },
    { label: 'To the payer', cell: ({ payer }) => shortId(payer, 'the payer') },
    {
      label: 'Why',
      cell: (row) => html`${refundReasonTexts[row.why] ?? row.why} ${hindranceOf(row)} ${wordsOf(row)}`,
    },
  ];
  const many = `${rows.length} refunds${next === undefined ? '' : ' or more'} are due: open each to send it.`;
  const toSend = rows.length === 1 && next === undefined ? '1 refund is due: open it to send it.' : many;
  const body = html`${rows.length > 0 && after === 0 && noticeOf({ tone: 'bad', text: toSend })}
  ${changed.length > 0 && noticeOf({ tone: 'bad', text: changedText(changed) })}
  ${contradicted.length > 0 && noticeOf({ tone: 'bad', text: contradictedText(contradicted) })}
  ${
    rows.length + changed.length === 0
      ? empty('No refund is due', 'A payment whose call was given up is here a moment later.')
      : tableSheet('Owed to payers, the oldest payment first', columns, rows)
  }
  ${pageLinks(refundsPath, 'after', { isFirst: after === 0, next }, ['The oldest', 'Later ones'])}`;
  return booksView(site, refundsPath, 'Refunds due', body);
}

function changedText(seqs: readonly number[]): string {
  return (
    `The events ${seqs.join(', ')} are not those that the log has sealed: somebody has changed them. Their payments are not shown here. ` +
    'Pay nothing before the command tollbook verify finds the ledger sound.'
  );
}

function contradictedText(seqs: readonly number[]): string {
  return (
    `The read models say something else about the payments that events ${seqs.join(', ')} started: somebody has changed them. ` +
    'This page shows what the events say. Pay nothing before the command tollbook verify finds the ledger sound.'
  );
}

/** What the payer wrote, if it asks for the refund. */
function wordsOf({ requested }: ListedRefund): Html | false {
  return (
    requested?.reason != null &&
    html`<span class="line hint">the payer: <q dir="auto">${visibleText(requested.reason)}</q></span>`
  );
}

/** Why a wallet is not asked for it now. */
function hindranceOf({ block_number: block, under_way: started }: ListedRefund): Html | false {
  if (started) return badge(`being sent for ${ageText(started.age_secs)}`, 'warn');
  return block === null && badge('not proven on the chain', 'warn');
}
