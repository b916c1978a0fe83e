import { accountsPath } from '../chat/accounts.ts';
import { cursorOf, pageLinks, pageRows, tableSheet } from '../tables.ts';
import { Readable } from 'node:stream';
import { allClasses } from '../../../finance/rules/reconcile/reconcile.ts';
import { leavesUnexplained, type ReportJson } from '../../../finance/rules/reconcile/report.ts';
import type { ClassJson } from '../../../finance/rules/reconcile/tally.ts';
import { includesRole } from '../../../base/values/operator-role.ts';
import { html, type Html, type Shown } from '../../../base/values/html.ts';
import { noticeOf } from '../../pages/document.ts';
import { badge, type Column, count, empty, factList, shortId, time, timeSpan } from '../../pages/elements.ts';
import type { Answer, View } from '../../pages/visit.ts';
import { notFound } from '../../pages/problem.ts';
import { readExplanations } from '../../../finance/use-cases/reconcile/explain-break.ts';
import { latestReconciliations, type ReconciliationRow } from '../../../audit/store/reconciliations.ts';
import type { Console, ConsoleSite, OperatorVisit } from '../visit.ts';
import { networkName } from '../../pages/known-networks.ts';
import { balancesOf } from './balances.ts';
import { exportsAndClose } from './periods.ts';
import { breakPages, itemsTable } from './breaks.ts';
import { booksPath, booksView, breaksText, openItemsText, words } from './books-view.ts';
import { reconcileAction, reconcileAgain, reconcileForm, runNotice } from './make-reconciliation.ts';
import { breaksIn, openBreaksOf, readReport, reportOf, type StoredReport } from './stored-report.ts';

const shownRows = 50;
/** Open items of a class that are shown; the report has more. */
const shownItems = 20;

/** The stored reconciliations: a list, each run with its balances and breaks, and each break. */
export function reconciliationPages(console: Console, site: ConsoleSite): void {
  console.show(booksPath, (visit) => listView(visit));
  if (site.jobs) reconcileAction(console, listView);
  console.show(`${booksPath}/reconciliations/:id`, (visit) => runView(visit));
  console.show(`${booksPath}/reconciliations/:id/report.json`, reportFile);
  breakPages(console, site);
}

async function listView(visit: OperatorVisit, mistake?: string, typed?: URLSearchParams): Promise<View> {
  const { site, query } = visit;
  const before = cursorOf(query, 'before');
  const rows = await latestReconciliations(site.ledger.pool, before, shownRows + 1);
  const { shown, next } = pageRows(rows, shownRows, ({ id }) => id);
  const columns: Column<ReconciliationRow>[] = [
    {
      label: 'Made',
      cell: ({ id, at }) => html`<a href="${booksPath}/reconciliations/${id}">${time(new Date(at))}</a>`,
    },
    { label: 'Period', cell: ({ from, to }) => timeSpan(new Date(from), new Date(to)) },
    { label: 'Result', cell: ({ result }) => resultBadge(result) },
    { label: 'Breaks', isNumber: true, cell: ({ breaks }) => count(breaks) },
    { label: 'Open items', isNumber: true, cell: ({ open_items: open }) => count(open) },
    { label: 'Events', isNumber: true, cell: ({ size }) => count(size) },
  ];
  const mayMake = site.jobs !== undefined && includesRole(visit.operator.role, 'finance');
  const body = html`${before === undefined && shown[0] && (await lastNotice(visit, shown[0]))}
  ${mistake === undefined && (await runNotice(site, shown[0]))}
  ${
    shown.length === 0
      ? !site.jobs
        ? empty(
            'Nothing to reconcile',
            html`Payments for jobs are compared with a chain, and this gateway sells no jobs. The credit of
              each customer is under <a href="${accountsPath}">Accounts</a>.`,
          )
        : empty(
            'No reconciliation was made yet',
            html`So it is not known whether the ledger and the chains agree.
              ${mayMake ? 'The form below compares them for a period, as the command' : 'They are compared for a period by the command'}
              <code>tollbook reconcile</code>${mayMake && ' does'}. The report is listed here.`,
          )
      : tableSheet('Stored reports', columns, shown)
  }
  ${
    mayMake &&
    html`<section class="sheet">
      <h2>Reconcile a period</h2>
      ${reconcileForm(visit, shown[0]?.to, typed ?? query)}
    </section>`
  }
  ${pageLinks(booksPath, 'before', { isFirst: before === undefined, next }, ['The latest', 'Earlier'])}`;
  return booksView(site, booksPath, 'Reconciliations', body, { mistake });
}

/** Whether the last reconciliation leaves something to explain. */
async function lastNotice({ site }: OperatorVisit, { id, to }: ReconciliationRow): Promise<Html> {
  const report = await readReport(site.ledger.pool, id);
  const open = report ? await openBreaksOf(site.ledger.pool, report) : 0;
  const last = html`<a href="${booksPath}/reconciliations/${id}">The last reconciliation</a>, up to
    ${time(new Date(to))},`;
  if (open === 0 && report && leavesUnexplained(report))
    return html`<p class="notice bad">${last} leaves an amount that no item explains.</p>`;
  return open === 0
    ? html`<p class="notice good">${last} leaves no break to explain.</p>`
    : html`<p class="notice bad">
        ${last} has ${open === 1 ? '1 break that no operator has' : `${open} breaks that no operator has`}
        explained.
      </p>`;
}

function resultBadge(result: ReportJson['result'], explained = false): Html {
  if (result === 'clean') return badge('clean', 'good');
  if (result === 'open_items') return badge('open items', 'warn');
  return explained ? badge('breaks, all explained', 'warn') : badge('breaks', 'bad');
}

async function reportFile(visit: OperatorVisit): Promise<Answer> {
  const stored = await reportOf(visit);
  if (!stored) return notFound('reconciliation');
  const bytes = Buffer.from(stored.text);
  const name = `reconciliation-${stored.id}.json`;
  return { kind: 'file', name, bytes: Readable.from([bytes]), length: bytes.length };
}

/** The page of a run; with an action's refusal. */
export async function runView(visit: OperatorVisit, mistake?: string): Promise<View> {
  const stored = await reportOf(visit);
  if (!stored) return notFound('reconciliation');
  const { id, report, sha256 } = stored;
  const { period, breaks, breaks_explained: explained } = report;
  const open = await openBreaksOf(visit.site.ledger.pool, report);
  const beside = html`<span class="inline"
    >${resultBadge(report.result, open === 0)}
    <a class="button plain" href="${booksPath}/reconciliations/${id}/report.json"
      >Download the report</a
    ></span
  >`;
  const sealed = report.ledger.checkpoint === null ? badge('not sealed', 'warn') : badge('sealed', 'good');
  const mayMake = visit.site.jobs !== undefined && includesRole(visit.operator.role, 'finance');
  const body = html`${verdictOf(report, open)} ${await breaksOf(visit, stored)} ${openItems(report)}
    ${balancesOf(report, open)}
    <section class="sheet">
      <h2>What was compared</h2>
      ${factList([
        ['Ledger', html`${count(report.ledger.size)} events, ${sealed}`],
        ...report.networks.map(networkFact),
        explained > 0 && ['Breaks', breaksText(breaks, explained)],
        ['Open items', openItemsText(report.open_items)],
        ['SHA-256 of the report', shortId(sha256, 'the hash of the report')],
      ])}
      ${mayMake && reconcileAgain(visit, period)}
    </section>
    ${exportsAndClose(visit, id, report)}`;
  return booksView(visit.site, booksPath, `Reconciliation ${id}`, body, { beside, mistake });
}

/** Whether ledger and chains agree, in one sentence. */
function verdictOf(report: ReportJson, open: number): Html {
  const { ledger, period, networks, breaks, open_items: items } = report;
  const { fault } = ledger;
  if (fault !== null)
    return noticeOf({ tone: 'bad', text: `The ledger is wrong at event ${fault.seq}: ${fault.words}` });
  const span = html`from ${timeSpan(new Date(period.from), new Date(period.to))}`;
  if (open > 0)
    return html`<p class="notice bad">
      Ledger and chains differ ${span}: ${open === 1 ? '1 break is' : `${open} breaks are`} not explained.
      ${open === 1 ? 'Explain it' : 'Explain them'} in the table below.
    </p>`;
  if (leavesUnexplained(report))
    return html`<p class="notice bad">
      Ledger and chains differ ${span} by an amount that no item explains: the balances show it.
    </p>`;
  if (!networks.every(({ is_covered: isCovered }) => isCovered))
    return html`<p class="notice warn">
      Ledger and chains do not differ so far; not every block ${span} is final yet. Reconcile again later.
    </p>`;
  if (breaks > 0)
    return html`<p class="notice warn">Ledger and chains differ ${span}, and every break is explained.</p>`;
  return html`<p class="notice good">
    Ledger and chains agree
    ${span}${items > 0 && `, but for what is still open: ${items === 1 ? '1 item' : `${items} items`}`}.
  </p>`;
}

const completenessTexts = {
  balance: 'its logs and balances agree with each other',
  two_passes: 'every log was read twice',
  sample: 'the node has no state to compare the logs with',
} as const;

function networkFact(network: ReportJson['networks'][number]): [Shown, Shown] {
  const { network: name, from_block: from, to_block: to, is_covered: isCovered, completeness } = network;
  const early = !isCovered && badge('the period is not final yet', 'warn');
  return [networkName(name), html`blocks ${from} to ${to}: ${completenessTexts[completeness]} ${early}`];
}

/** The breaks, the unexplained ones first. */
async function breaksOf(visit: OperatorVisit, { id, report }: StoredReport): Promise<Html> {
  const all = breaksIn(report);
  const counted = allClasses.reduce((sum, name) => sum + countOfBreaks(report.classes[name]), 0);
  if (counted === 0) return html``;
  const sorted = all.toSorted(
    (a, b) => Number(Boolean(a.item.explained)) - Number(Boolean(b.item.explained)),
  );
  const after = cursorOf(visit.query, 'after') ?? 0;
  const shown = sorted.slice(after, after + shownRows);
  const next = after + shownRows < sorted.length ? after + shownRows : undefined;
  const ids = shown.flatMap(({ item }) => item.break_id ?? []);
  const explanations = await readExplanations(visit.site.ledger.pool, ids);
  const path = `${booksPath}/reconciliations/${id}`;
  const isExplainable = includesRole(visit.operator.role, 'finance');
  return html`<section class="sheet" data-rows>
    ${itemsTable(`Breaks: ${counted}`, report, shown, (item) => ({
      href: `${path}/breaks/${item.break_id ?? ''}`,
      said: explanations.get(item.break_id ?? ''),
      isExplainable,
    }))}
    ${counted > all.length && html`<p class="hint">${counted - all.length} more are only counted: the report has them by sender.</p>`}
    ${pageLinks(path, 'after', { isFirst: after === 0, next }, ['The first', 'More'])}
  </section>`;
}

function countOfBreaks(found: ClassJson | undefined): number {
  return found?.kind === 'break' ? found.count : 0;
}

function openItems(report: ReportJson): Html {
  const open = allClasses.flatMap((name) => {
    const found = report.classes[name];
    return found?.kind === 'open' ? [{ name, found }] : [];
  });
  return html`${open.map(
    ({ name, found }) =>
      html`<section class="sheet" data-rows>
        ${itemsTable(
          `Open: ${words(name)}, ${found.count}`,
          report,
          found.items.slice(0, shownItems).map((item) => ({ name, item })),
        )}
        ${found.count > shownItems && html`<p class="hint">And ${found.count - shownItems} more, in the report.</p>`}
      </section>`,
  )}`;
}
