import { accountsPath } from '../chat/accounts.ts';
import { tableSheet } from '../tables.ts';
import { BooksError } from '../../../audit/rules/bookkeeping/books-error.ts';
import { includesRole } from '../../../base/values/operator-role.ts';
import type { ClosedPeriod } from '../../../finance/rules/periods/periods.ts';
import { leavesUnexplained, type ReportJson } from '../../../finance/rules/reconcile/report.ts';
import { html, type Html } from '../../../base/values/html.ts';
import { operatorTextPattern } from '../../../base/values/operator-words.ts';
import { type Period, periodName } from '../../../base/values/period.ts';
import { findTimeZone, utc } from '../../../base/values/time-zone.ts';
import { ExportError, openDatabaseSource } from '../../../finance/use-cases/books/source.ts';
import { noticeOf } from '../../pages/document.ts';
import type { NoticeCode } from '../../pages/notices.ts';
import {
  badge,
  buttonForm,
  type Column,
  count,
  empty,
  factList,
  field,
  form,
  shortId,
  time,
  timeSpan,
} from '../../pages/elements.ts';
import { notFound } from '../../pages/problem.ts';
import type { Answer, View } from '../../pages/visit.ts';
import { closePeriod } from '../../../finance/use-cases/periods/close-period.ts';
import { comparePeriod } from '../../../finance/use-cases/periods/compare-period.ts';
import { readPeriods } from '../../../finance/use-cases/periods/read-periods.ts';
import { reopenPeriod, reviewPeriod } from '../../../finance/use-cases/periods/move-period.ts';
import { findReportByHash } from '../../../audit/store/reconciliations.ts';
import type { ActionOptions, Console, OperatorVisit } from '../visit.ts';
import { balancesOf } from './balances.ts';
import { exportLinks } from './exports.ts';
import { booksPath, booksView, breaksText, openItemsText, periodsPath } from './books-view.ts';
import { openBreaksOf, reportOf } from './stored-report.ts';

type ShowRun = (visit: OperatorVisit, mistake: string) => Promise<View>;

/** Periods: closed with a stored report, reviewed by another person, opened again. `showRun`: the page of a run, which has the form to close. */
export function periodPages(console: Console, showRun: ShowRun): void {
  console.show(periodsPath, listView);
  console.show(`${periodsPath}/:seq`, (visit) => periodView(visit));

  const ofRun: Omit<ActionOptions, 'action'> = {
    role: 'finance',
    shownAt: (params) => `${booksPath}/reconciliations/${params['id'] ?? ''}`,
    subject: ({ params }) => params['id'],
  };
  console.act(
    `${booksPath}/reconciliations/:id/close`,
    { ...ofRun, action: 'close_period' },
    async (visit, { fields }) => {
      const closed = await close(visit, fields);
      return typeof closed === 'string' ? showRun(visit, closed) : closed;
    },
  );

  const about: Omit<ActionOptions, 'action'> = {
    role: 'finance',
    shownAt: pageOf,
    subject: ({ params }) => params['seq'],
  };
  console.act(`${periodsPath}/:seq/review`, { ...about, action: 'review_period' }, (visit) =>
    withStanding(visit, review),
  );
  console.act(`${periodsPath}/:seq/reopen`, { ...about, action: 'reopen_period' }, (visit, { fields }) =>
    withStanding(visit, (closed) => reopen(visit, closed, fields.get('reason')?.trim() ?? '')),
  );
}

/** What was done, or why it was not. */
type Done = NoticeCode | { readonly mistake: string };

async function withStanding(
  visit: OperatorVisit,
  act: (closed: ClosedPeriod, visit: OperatorVisit) => Promise<Done>,
): Promise<Answer> {
  const closed = await findClosed(visit);
  if (!closed) return notFound('period');
  if (closed.reopening)
    return periodView(
      visit,
      'This period was opened again, so its close does not hold. Nothing was recorded.',
    );
  const done = await act(closed, visit);
  return typeof done === 'string'
    ? { kind: 'redirect', to: pageOf(visit.params), notice: done }
    : periodView(visit, done.mistake);
}

/** The answer if it was closed, else the reason why it was not. */
async function close(visit: OperatorVisit, fields: URLSearchParams): Promise<Answer | string> {
  const { site, operator } = visit;
  const stored = await reportOf(visit);
  if (!stored) return notFound('reconciliation');
  const zone = findTimeZone(fields.get('zone')?.trim() ?? '');
  if (!zone) return 'There is no such time zone. Nothing was recorded.';
  const despite = fields.get('despite')?.trim() ?? '';
  if (despite !== '' && !operatorTextPattern.test(despite)) return textMistake;
  const { from, to } = stored.report.period;
  const ends = { fromMs: Date.parse(from), toMs: Date.parse(to) };
  const period: Period = zone === utc ? ends : { ...ends, zone };
  const order = {
    period,
    report: stored.report,
    operator: operator.name,
    despite: despite === '' ? undefined : despite,
  };
  const closed = await closePeriod(site.ledger, order).catch(reasonOf);
  if (closed.kind === 'refused') return `Not closed: ${closed.message}. Nothing was recorded.`;
  const { periods } = await readPeriods(site.ledger.pool);
  const closedAt = `${periodsPath}/${periods.find(period)?.close.seq ?? ''}`;
  return { kind: 'redirect', to: closedAt, notice: 'period_closed' };
}

/** Compares the ledger with the close, and records the review if they agree. The chains are compared by the command. */
async function review(closed: ClosedPeriod, { site, operator }: OperatorVisit): Promise<Done> {
  const { ledger } = site;
  const early = (await readPeriods(ledger.pool)).periods.refuseReview(closed.period, operator.name);
  if (early) return { mistake: `Not reviewed: ${early.message}.` };
  const source = await openDatabaseSource(ledger.pool);
  const compared = await comparePeriod(source, closed).catch(reasonOf);
  if ('kind' in compared) return { mistake: `Not reviewed: ${compared.message}.` };
  const differing = compared.filter(({ result }) => result === 'differs');
  if (differing.length > 0) {
    const words = differing.map((one) => `${one.of}: ${one.words ?? 'differs'}`).join('; ');
    return { mistake: `Not reviewed: it does not match the close. ${words}` };
  }
  const moved = await reviewPeriod(ledger, closed, { operator: operator.name, reconciled: false });
  return moved.kind === 'recorded' ? 'period_reviewed' : { mistake: `Not reviewed: ${moved.message}.` };
}

async function reopen(
  { site, operator }: OperatorVisit,
  { period }: ClosedPeriod,
  reason: string,
): Promise<Done> {
  if (!operatorTextPattern.test(reason)) return { mistake: textMistake };
  const moved = await reopenPeriod(site.ledger, period, { operator: operator.name, reason });
  return moved.kind === 'recorded' ? 'period_reopened' : { mistake: `Not opened again: ${moved.message}.` };
}

const textMistake =
  'The reason is kept for ever: 1 to 200 visible ASCII characters, without "@". Nothing was recorded.';

/** A ledger without books is not a fault of this program. */
function reasonOf(error: unknown): { readonly kind: 'refused'; readonly message: string } {
  if (error instanceof ExportError || error instanceof BooksError)
    return { kind: 'refused', message: error.message };
  throw error;
}

function pageOf(params: OperatorVisit['params']): string {
  return `${periodsPath}/${params['seq'] ?? ''}`;
}

async function findClosed({ site, params }: OperatorVisit): Promise<ClosedPeriod | undefined> {
  const { periods } = await readPeriods(site.ledger.pool);
  return periods.all.find(({ close: event }) => String(event.seq) === params['seq']);
}

async function listView(visit: OperatorVisit): Promise<View> {
  const { site } = visit;
  const { periods } = await readPeriods(site.ledger.pool);
  const columns: Column<ClosedPeriod>[] = [
    {
      label: 'Period',
      cell: (closed) => html`<a href="${periodsPath}/${closed.close.seq}">${nameShown(closed.period)}</a>`,
    },
    { label: 'State', cell: stateBadge },
    { label: 'Closed by', cell: ({ close: { data, at } }) => byWhom(data.operator, at) },
    { label: 'Reviewed by', cell: ({ review: said }) => (said ? byWhom(said.data.operator, said.at) : '') },
    { label: 'Breaks', isNumber: true, cell: ({ close: { data } }) => count(data.breaks) },
  ];
  const body =
    periods.all.length === 0
      ? site.jobs
        ? empty(
            'No period is closed',
            html`A period is closed on the page of its reconciliation.
              <a href="${booksPath}">Reconcile one</a>, and open its report.`,
          )
        : empty(
            'Nothing to close',
            html`This gateway sells no jobs, and a period is closed with the reconciliation of its payments
              for jobs. The credit of each customer is under <a href="${accountsPath}">Accounts</a>.`,
          )
      : html`${waitingNotice(visit, periods.all)}
        ${tableSheet('Closed, the latest first', columns, periods.all.toReversed())}`;
  return booksView(site, periodsPath, 'Periods', body);
}

/** With its zone, if that is not UTC. */
function nameOf(period: Period): string {
  const { zone = utc } = period;
  return zone.name === utc.name ? periodName(period) : `${periodName(period)} in ${zone.name}`;
}

/** The same as a heading: ends within a day are times. */
function nameShown(period: Period): Html {
  const { fromMs, toMs } = period;
  return periodName(period).includes('T')
    ? timeSpan(new Date(fromMs), new Date(toMs))
    : html`${nameOf(period)}`;
}

function byWhom(operator: string, at: string): Html {
  return html`${operator}, <span class="hint">${time(new Date(at))}</span>`;
}

function stateBadge({ review: said, reopening }: ClosedPeriod): Html {
  if (reopening) return badge('opened again', 'warn');
  return said ? badge('reviewed', 'good') : badge('waits for review', 'warn');
}

async function periodView(visit: OperatorVisit, mistake?: string): Promise<View> {
  const closed = await findClosed(visit);
  if (!closed) return notFound('period');
  const { site, operator } = visit;
  const { close: closing, review: reviewed, reopening } = closed;
  const { head, breaks, breaks_explained: explained, open_items: open, despite, ...data } = closing.data;
  const stored = await findReportByHash(site.ledger.pool, data.report_sha256);
  const run = stored && `${booksPath}/reconciliations/${stored.id}`;
  const mayAct = includesRole(operator.role, 'finance');
  const body = html`${standingNotice(closed, visit)}
    <section class="sheet">
      <h2>The close</h2>
      ${factList([
        [
          'Closed',
          [
            byWhom(data.operator, closing.at),
            despite !== undefined && html`<br />although not all was explained: “${despite}”`,
          ],
        ],
        reviewed && [
          'Reviewed',
          [byWhom(reviewed.data.operator, reviewed.at), !reviewed.data.reconciled && ', without the chains'],
        ],
        reopening && [
          'Opened again',
          html`${byWhom(reopening.data.operator, reopening.at)}<br />${reopening.data.reason}`,
        ],
        [
          'Breaks',
          html`${breaksText(breaks, explained)}
          ${run !== undefined && breaks > 0 && html`<a href="${run}">See them</a>`}`,
        ],
        ['Open items', openItemsText(open)],
        ['Log when closed', html`${count(head.size)} events of ${head.origin}`],
        ['SHA-256 of the report', shortId(plainHex(data.report_sha256), 'the hash of the report')],
      ])}
    </section>
    ${stored ? await balancesOfReport(visit, stored.report) : noticeOf({ tone: 'warn', text: 'The report of this close is not stored here, so its balances are not known.' })}
    <section class="sheet">
      <h2>Exports</h2>
      ${mayAct && exportLinks(closed.period)}
      <details>
        <summary>SHA-256 as closed</summary>
        ${factList(Object.entries(data.exports).map(([format, sha256]) => [format, html`<code class="hash">${plainHex(sha256)}</code>`]))}
      </details>
    </section>
    ${mayAct && !reopening && movesOf(visit, closed)}`;
  const parts = { heading: nameShown(closed.period), beside: stateBadge(closed), mistake };
  return booksView(site, periodsPath, nameOf(closed.period), body, parts);
}

/** As `sha256sum` prints it. */
function plainHex(hash: string): string {
  return hash.replace(/^0x/, '');
}

/** The closes without a review, and who can review them. */
function waitingNotice(visit: OperatorVisit, all: readonly ClosedPeriod[]): Html {
  const waiting = all.filter(({ review: said, reopening }) => !said && !reopening);
  const [first] = waiting;
  if (!first) return noticeOf({ tone: 'good', text: 'No closed period waits for a review.' });
  if (waiting.length > 1)
    return html`<p class="notice warn">
      ${waiting.length} closed periods wait for a review, each by another person than the one who closed it.
    </p>`;
  return html`<p class="notice warn">
    The close of <a href="${periodsPath}/${first.close.seq}">${nameShown(first.period)}</a> waits for its
    review. ${reviewerText(first, visit)}
  </p>`;
}

/** Who can review a close, for this operator. */
function reviewerText({ close: { data } }: ClosedPeriod, { operator }: OperatorVisit): string {
  if (data.operator.toLowerCase() === operator.name.toLowerCase())
    return 'You closed it, so another person has to review it.';
  return includesRole(operator.role, 'finance')
    ? `${data.operator} closed it, so you can review it.`
    : 'An operator of finance who did not close it has to review it.';
}

/** Whether the close holds, and whose turn it is. */
function standingNotice(closed: ClosedPeriod, visit: OperatorVisit): Html {
  const { close: closing, review: said, reopening } = closed;
  const { breaks, breaks_explained: explained } = closing.data;
  const open = breaks - explained;
  const withBreaks =
    open === 0 ? '' : ` with ${open === 1 ? '1 unexplained break' : `${open} unexplained breaks`}`;
  if (reopening)
    return noticeOf({ tone: 'warn', text: 'This period was opened again: its close does not hold.' });
  return said
    ? noticeOf({
        tone: open === 0 ? 'good' : 'warn',
        text: `This period is closed${withBreaks}, and another person has reviewed it.`,
      })
    : noticeOf({
        tone: open === 0 ? 'plain' : 'warn',
        text: `This period is closed${withBreaks}, and not reviewed. ${reviewerText(closed, visit)}`,
      });
}

async function balancesOfReport({ site }: OperatorVisit, text: string): Promise<Html> {
  const report = JSON.parse(text) as ReportJson;
  return balancesOf(report, await openBreaksOf(site.ledger.pool, report));
}

function movesOf(visit: OperatorVisit, { close: closing, review: reviewed }: ClosedPeriod): Html {
  const isOwn = closing.data.operator.toLowerCase() === visit.operator.name.toLowerCase();
  return html`${
      !reviewed &&
      !isOwn &&
      html`<section class="sheet">
        <h2>Review</h2>
        <p>
          Compares the ledger’s head and every export with the close, and records that you did. The chains are
          compared by <code>tollbook period review --config</code>.
        </p>
        ${buttonForm(visit, `${pageOf(visit.params)}/review`, 'Compare, and record the review')}
      </section>`
    }
    <details class="sheet">
      <summary>Open it again</summary>
      ${form(
        visit,
        `${pageOf(visit.params)}/reopen`,
        html`${field({ label: 'Reason', name: 'reason', maxLength: 200, autocomplete: 'off', hint: 'The close does not hold any more then. It stays on record, with your name.' })}
          <button class="danger" data-confirm="Press again: open it again">Open it again</button>`,
      )}
    </details>`;
}

/** The exports of a run's period, and the form that closes it; no form for an operator without the permission. */
export function exportsAndClose(visit: OperatorVisit, id: number, report: ReportJson): Html | undefined {
  if (!includesRole(visit.operator.role, 'finance')) return undefined;
  const open = report.breaks - report.breaks_explained;
  const { query } = visit;
  const period = { fromMs: Date.parse(report.period.from), toMs: Date.parse(report.period.to) };
  return html`<section class="sheet">
      <h2>Exports of the period</h2>
      ${exportLinks(period)}
    </section>
    <details class="sheet">
      <summary>Close this period with this report</summary>
      <p>Records the hash of this report and of every export, with your name. Another person reviews it.</p>
      ${form(
        visit,
        `${booksPath}/reconciliations/${id}/close`,
        html`${field({ label: 'Time zone', name: 'zone', value: query.get('zone') ?? utc.name, maxLength: 60, autocomplete: 'off', hint: 'Where the days of its exports begin, such as Europe/Berlin.' })}
          ${(open > 0 || leavesUnexplained(report)) && despiteField(open, query.get('despite'))}
          <button data-confirm="Press again: close it">Close the period</button>`,
      )}
    </details>`;
}

/** A close with something unexplained is refused without a reason. */
function despiteField(open: number, value: string | null): Html {
  const what = open === 0 ? 'An amount is' : open === 1 ? '1 break is' : `${open} breaks are`;
  return field({
    label: 'Why it is closed although not all is explained',
    name: 'despite',
    value,
    maxLength: 200,
    autocomplete: 'off',
    hint: `${what} not explained in this report. Explain it above and reconcile again, or say why it is closed nevertheless.`,
  });
}
