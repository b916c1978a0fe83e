import { cursorOf, pageLinks, tableSheet } from '../tables.ts';
import {
  type BatchReport,
  countChosen,
  type DeadLetterChoice,
  listDeadLetters,
  maxChanged,
  mostCounted,
} from '../../../calls/use-cases/dead-letters.ts';
import {
  checkRequeue,
  notRequeuedTexts,
  requeueCall,
  requeueCalls,
} from '../../../calls/use-cases/requeue-call.ts';
import { failureCause, failureCausePattern } from '../../../base/values/failure-cause.ts';
import { includesRole } from '../../../base/values/operator-role.ts';
import { html, type Html } from '../../../base/values/html.ts';
import { operatorTextPattern } from '../../../base/values/operator-words.ts';
import { visibleText } from '../../../base/values/visible-text.ts';
import { discardCalls } from '../../../calls/use-cases/discard-call.ts';
import { type Filters, isCursor } from '../../pages/filters.ts';
import { runnerName } from '../../../base/values/runner-name.ts';
import { pathWith } from '../../pages/own-path.ts';
import {
  buttonForm,
  type Column,
  empty,
  field,
  form,
  hidden,
  selectField,
  time,
  withThousands,
} from '../../pages/elements.ts';
import { noticeOf } from '../../pages/document.ts';
import type { Answer, View } from '../../pages/visit.ts';
import type { DeadLetterRow } from '../../../calls/store/dead-letters.ts';
import { sectionView } from '../layout.ts';
import type { Console, OperatorVisit } from '../visit.ts';
import { jobsOf } from '../contexts.ts';
import { tokenAmount } from '../../pages/jobs/token-amount.ts';
import { networkName } from '../../pages/known-networks.ts';
import type { PaymentState } from '../../../payments/rules/quote-state.ts';
import { remainingAtoms } from '../../../payments/rules/refund.ts';
import { jobField, jobName } from '../words.ts';
import { callLink, outboxPath } from './links.ts';

/** One request goes through as many batches as fit into this time; the next one begins after them. */
const longestMs = 20_000;
/** The most that a report lists. */
const mostListed = 200;

type SkipReason = keyof typeof notRequeuedTexts;

interface BatchesDone {
  readonly done: number;
  readonly skips: number;
  /** The first of them. */
  readonly skipped: readonly { readonly callId: number; readonly why: SkipReason }[];
  /** The call id after which there are more; undefined after the last dead letter. */
  readonly next: number | undefined;
}

/** Goes through batch after batch. */
async function runBatches(
  after: number,
  step: (after: number) => Promise<BatchReport<SkipReason>>,
): Promise<BatchesDone> {
  const untilMs = performance.now() + longestMs;
  const skipped: { callId: number; why: SkipReason }[] = [];
  let [done, skips] = [0, 0];
  let next: number | undefined = after;
  while (next !== undefined && performance.now() < untilMs) {
    const report: BatchReport<SkipReason> = await step(next);
    done += report.done;
    skips += report.skipped.length;
    skipped.push(...report.skipped.slice(0, mostListed - skipped.length));
    ({ next } = report);
  }
  return { done, skips, skipped, next };
}

export const deadPath = '/console/calls/dead';
const shownRows = 50;

/** Dead letters, all of them or those of a cause, a job or a runner; and the actions on all that match. */
export function deadLetterPages(console: Console): void {
  console.show(deadPath, (visit) => deadView(visit), 'viewer', readableFilters);

  const many = {
    role: 'operator',
    shownAt: deadPath,
    filters: readableFilters,
    subject: (_: OperatorVisit, fields: URLSearchParams) => subjectOf(fields),
  } as const;
  console.act(`${deadPath}/requeue`, { ...many, action: 'requeue_calls' }, async (visit, { fields }) => {
    const context = jobsOf(visit);
    const by = { operator: visit.operator.name };
    const choice = choiceOf(fields);
    const mistake = await countMistake(visit, fields);
    if (mistake !== undefined) return deadView({ ...visit, query: fields }, mistake);
    const done = await runBatches(cursorOf(fields, 'after') ?? 0, (after) =>
      requeueCalls(context, { choice, after, max: maxChanged, isDryRun: false, by }),
    );
    context.onCallReleased();
    return reportView(visit, { fields, done, verb: 'requeue' });
  });

  console.act(`${deadPath}/give-up`, { ...many, action: 'give_up_calls' }, async (visit, { fields }) => {
    const why = fields.get('why')?.trim() ?? '';
    const isBad = !operatorTextPattern.test(why);
    if (isBad) return deadView({ ...visit, query: fields }, whyMistake);
    const by = { why, operator: visit.operator.name };
    const choice = choiceOf(fields);
    const mistake = await countMistake(visit, fields);
    if (mistake !== undefined) return deadView({ ...visit, query: fields }, mistake);
    const done = await runBatches(cursorOf(fields, 'after') ?? 0, (after) =>
      discardCalls(jobsOf(visit), { choice, after, max: maxChanged, isDryRun: false, by }),
    );
    return reportView(visit, { fields, done, verb: 'give-up' });
  });

  console.act(
    '/console/calls/:call/requeue',
    { role: 'operator', action: 'requeue_call', shownAt: deadPath, subject: ({ params }) => params['call'] },
    async (visit, { fields }): Promise<Answer> => {
      const context = jobsOf(visit);
      const callId = cursorOf(new URLSearchParams(visit.params), 'call') ?? 0;
      const { kind } = await requeueCall(context, callId, { operator: visit.operator.name });
      if (kind !== 'requeued')
        return deadView(
          { ...visit, query: fields },
          `Call ${callId}: ${notRequeuedTexts[kind]}. Nothing was changed.`,
        );
      context.onCallReleased();
      return { kind: 'redirect', to: pathWith(deadPath, filtersOf(fields)), notice: 'call_requeued' };
    },
  );
}

const whyMistake =
  'Why they are given up is kept for ever: 1 to 200 visible ASCII characters, without "@". Nothing was changed.';

const jobForm = /^(\d{1,15})\/(\d{1,9})$/;

const readableFilters: Filters = {
  cause: (text) => failureCausePattern.test(text),
  job: (text) => jobForm.test(text),
  runner: (text) => runnerName.test(text),
  after: isCursor,
  until: (text) => /^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(text) && !Number.isNaN(Date.parse(text)),
  count: (text) => /^\d{1,9}$/.test(text),
};

/** What is wrong with the number that a form confirms; undefined if it is how many are meant. */
async function countMistake(visit: OperatorVisit, fields: URLSearchParams): Promise<string | undefined> {
  const confirmed = fields.get('count') ?? '';
  const meant = await countChosen(jobsOf(visit).db, choiceOf(fields), cursorOf(fields, 'after') ?? 0);
  if (confirmed === String(meant)) return undefined;
  return `${meant} dead letters are meant, and the form confirmed ${confirmed || 'no number'}. Nothing was changed: look at them and press again.`;
}

/** The filters of a page, or of a form on it, as its address has them. */
function filtersOf(values: URLSearchParams): Record<'cause' | 'job' | 'runner', string | undefined> {
  const { cause, serviceId, jobIndex, runner } = choiceOf(values);
  return { cause, job: serviceId === undefined ? undefined : `${serviceId}/${jobIndex ?? 0}`, runner };
}

function choiceOf(values: URLSearchParams): DeadLetterChoice {
  const cause = values.get('cause') ?? '';
  const runner = values.get('runner') ?? '';
  const until = values.get('until') ?? '';
  const [, serviceId, jobIndex] = jobForm.exec(values.get('job') ?? '') ?? [];
  return {
    ...(cause !== '' && { cause }),
    ...(until !== '' && { before: new Date(until) }),
    ...(runner !== '' && { runner }),
    ...(serviceId !== undefined && { serviceId: Number(serviceId), jobIndex: Number(jobIndex) }),
  };
}

function subjectOf(fields: URLSearchParams): string {
  const named = Object.entries(filtersOf(fields)).filter(([, value]) => value !== undefined);
  return named.length === 0 ? 'all dead letters' : named.map((pair) => pair.join(' ')).join(', ');
}

async function deadView(visit: OperatorVisit, mistake?: string): Promise<View> {
  const { query } = visit;
  const { db } = jobsOf(visit);
  const choice = choiceOf(query);
  const filters = filtersOf(query);
  const after = cursorOf(query, 'after');
  const { rows: found, next } = await listDeadLetters(db, { choice, after: after ?? 0, max: shownRows });
  const mayChange = found.length > 0 && includesRole(visit.operator.role, 'operator');
  // one after the other: payments use the same connections
  const rows = await Array.fromAsync(found, async (row) => {
    const { kind: requeue, payment } = await checkRequeue(visit.site.ledger, row.callId);
    return { ...row, requeue, payment };
  });
  const isWhole = after === undefined && next === undefined;
  const isAll = Object.values(filters).every((value) => value === undefined);
  const body = html`${rows.length > 0 && standingNotice(rows, { isWhole, isAll })}
  ${filterFields(visit, filters, rows[0])}
  ${
    rows.length === 0
      ? empty('None of these', 'They were requeued, given up or completed.')
      : tableSheet('Not delivered, the oldest first', columnsFor(visit, filters), rows)
  }
  ${pageLinks(deadPath, 'after', { isFirst: after === undefined, next }, ['The oldest', 'Newer'], filters)}
  ${mayChange && (await manyForms(visit, filters, { rows, isWhole }))}`;
  return sectionView('/console/calls', 'Dead letters', body, { up: ['/console/calls', 'Calls'], mistake });
}

type Chosen = ReturnType<typeof filtersOf>;

/**
 * How many there are, how many can be delivered again, and why the others cannot. `isWhole`: the rows are all that match; `isAll`: they are
 * not those of a filter.
 */
function standingNotice(
  rows: readonly ShownLetter[],
  { isWhole, isAll }: { readonly isWhole: boolean; readonly isAll: boolean },
): Html {
  const chosen = isAll ? 'not delivered' : 'not delivered, of those chosen below';
  const what = isWhole ? callsText(rows.length, chosen) : `Of the ${rows.length} shown here`;
  const can = rows.filter(({ requeue }) => requeue === 'possible').length;
  const next = can === 0 ? '' : ' Mend the cause, then requeue them.';
  const text = `${what}${isWhole ? ';' : ','} ${can} can be sent to a runner again.${next}${hindranceText(rows)}`;
  return noticeOf({ tone: 'warn', text });
}

/** Why some are not requeued: each reason with its number. */
function hindranceText(rows: readonly Pick<ShownLetter, 'requeue'>[]): string {
  const reasons = new Map<SkipReason, number>();
  for (const { requeue } of rows)
    if (requeue !== 'possible') reasons.set(requeue, (reasons.get(requeue) ?? 0) + 1);
  return [...reasons].map(([why, calls]) => ` ${calls} cannot: ${notRequeuedTexts[why]}.`).join('');
}

function callsText(calls: number, rest: string): string {
  return calls === 1 ? `1 call was ${rest}` : `${withThousands(calls)} calls were ${rest}`;
}

/** `first`: one of those that the filters mean, which tells the cause in words. */
function filterFields(
  { site, ...visit }: OperatorVisit,
  { cause, job, runner }: Chosen,
  first: ShownLetter | undefined,
): Html {
  const { config } = jobsOf({ ...visit, site });
  const names = new Set([
    ...(runner === undefined ? [] : [runner]),
    ...config.runners.map(({ name }) => name),
  ]);
  const words = first && failureCause(first.reason, first.error).words;
  const causes = cause === undefined ? [] : [cause];
  const texts = cause === undefined ? {} : { [cause]: visibleText(shortened(words || causeText(cause))) };
  return html`<form method="get" action="${deadPath}" class="filters">
    ${cause !== undefined && selectField({ label: 'Cause', name: 'cause', values: causes, value: cause, any: 'any', texts, isWide: true })}
    ${jobField(site, { value: job, any: 'any' })}
    ${selectField({ label: 'Runner', name: 'runner', values: [...names], value: runner, any: 'any' })}
    <button class="plain">Show</button>
  </form>`;
}

/** The reason in a cause's key. */
function causeText(cause: string): string {
  return (cause.split('-', 1)[0] ?? '').replaceAll('_', ' ');
}

const longestWords = 60;

function shortened(words: string): string {
  return words.length > longestWords ? `${words.slice(0, longestWords)}…` : words;
}

/** A dead letter, whether it could be put back in the queue now, and what was paid for it. */
type ShownLetter = DeadLetterRow & {
  readonly requeue: 'possible' | SkipReason;
  readonly payment: PaymentState | undefined;
};

interface Owed {
  readonly atoms: bigint;
  readonly token: PaymentState['payment'];
}

/** What is due to the payer once a dead letter is given up; undefined if that is nothing at present, or a refund of it is sent already. */
function owedFor({ payment }: ShownLetter): Owed | undefined {
  if (payment?.status !== 'settled' || payment.refunding || payment.isRefunded) return undefined;
  return { atoms: remainingAtoms(payment), token: payment.payment };
}

/** The sum of each token, with its payments. */
function owedTexts(rows: readonly ShownLetter[]): Html[] {
  const owed = rows.flatMap((row) => owedFor(row) ?? []);
  return [...Map.groupBy(owed, ({ token }) => `${token.network}/${token.asset}`).values()].flatMap((some) => {
    const [first] = some;
    if (!first) return [];
    const sum = tokenAmount(
      some.reduce((total, { atoms }) => total + atoms, 0n),
      first.token,
    );
    return [html`${sum} on ${networkName(first.token.network)} (${paymentsText(some.length)})`];
  });
}

function paymentsText(payments: number): string {
  return payments === 1 ? '1 payment' : `${withThousands(payments)} payments`;
}

function columnsFor(visit: OperatorVisit, filters: Chosen): Column<ShownLetter>[] {
  const requeue: Column<ShownLetter> = {
    label: 'Change',
    isAction: true,
    cell: ({ callId, requeue: kind }) =>
      kind === 'possible' &&
      buttonForm(visit, `/console/calls/${callId}/requeue`, 'Requeue', {
        look: 'plain small',
        about: `call ${callId}`,
        values: filters,
      }),
  };
  return [...columns(visit), ...(includesRole(visit.operator.role, 'operator') ? [requeue] : [])];
}

const columns = ({ site }: OperatorVisit): Column<ShownLetter>[] => [
  { label: 'Call', cell: callLink },
  { label: 'Job', cell: (row) => jobName(site, row) },
  { label: 'Runner', cell: ({ runner }) => runner ?? '' },
  { label: 'Since', cell: ({ deadSince }) => time(deadSince) },
  {
    label: 'Owed if given up',
    isNumber: true,
    cell: (row) => {
      const owed = owedFor(row);
      if (owed) return tokenAmount(owed.atoms, owed.token);
      return html`<span class="muted">${row.requeue === 'unpaid' ? 'nothing yet' : 'nothing more'}</span>`;
    },
  },
  {
    label: 'Why',
    cell: ({ reason, error, requeue }) =>
      html`${error === null ? (reason ?? 'unknown').replaceAll('_', ' ') : html`<q class="said" dir="auto">${visibleText(error)}</q>`}${
        requeue !== 'possible' && html`<span class="line hint">${notRequeuedTexts[requeue]}</span>`
      }`,
  },
];

/** The forms apply to the dead letters that the page showed, not to later ones. */
async function manyForms(
  visit: OperatorVisit,
  filters: Chosen,
  { rows, isWhole }: { readonly rows: readonly ShownLetter[]; readonly isWhole: boolean },
): Promise<Html> {
  const isAll = Object.values(filters).every((value) => value === undefined);
  const { db, lane } = jobsOf(visit);
  const before = new Date(Date.now() + lane.state.clockOffsetMs);
  const meant = await countChosen(db, { ...choiceOf(visit.query), before }, 0);
  const number = `${meant}${meant === mostCounted ? ' or more' : ''}`;
  const which = isWhole ? `all ${number}` : `all ${number} ${isAll ? 'dead letters' : 'that were chosen'}`;
  const kept = { ...filters, until: before.toISOString(), count: String(meant) };
  const can = rows.filter(({ requeue }) => requeue === 'possible').length;
  const owed = owedTexts(rows);
  // those of other pages were not asked one by one
  const label = isWhole ? `Requeue ${can}` : `Requeue those of ${which} that can be`;
  return html`<div class="grid pair">
    <section class="sheet">
      <h2>Deliver them</h2>
      <p>
        What a runner has refused it will probably refuse again, unless its cause was mended.
        ${!isWhole && 'A report says which were not requeued, and why.'}
      </p>
      ${(can > 0 || !isWhole) && buttonForm(visit, `${deadPath}/requeue`, label, { look: 'plain', confirm: `Press again: ${label.toLowerCase()}`, values: kept })}
    </section>
    <section class="sheet">
      <h2>Or give them up</h2>
      <p>
        For good: they are never delivered then, and their payers are owed
        ${owed.length === 0 ? 'nothing more' : owed.map((sum, at) => [at > 0 && ' and ', sum])}${isWhole ? '.' : html` for the ${rows.length} on this page, and what was paid for the others.`}
        ${
          rows.some(({ requeue }) => requeue === 'unpaid') &&
          'A payment that is not settled is owed only if it settles later.'
        }
      </p>
      ${form(
        visit,
        `${deadPath}/give-up`,
        html`${hidden(kept)}${field({ label: 'Why they are given up', name: 'why', maxLength: 200, autocomplete: 'off', hint: 'Kept in the ledger with your name.' })}<button
            class="danger"
            data-confirm="Press again: give ${which} up"
          >
            Give ${which} up
          </button>`,
      )}
    </section>
  </div>`;
}

interface Report {
  readonly fields: URLSearchParams;
  readonly done: BatchesDone;
  readonly verb: 'requeue' | 'give-up';
}

/** The calls that were processed, those that were skipped and why, and how to continue if there was no time for all. */
async function reportView(visit: OperatorVisit, { fields, done, verb }: Report): Promise<View> {
  const { skipped, next } = done;
  const filters = filtersOf(fields);
  const rest = next === undefined ? 0 : await countChosen(jobsOf(visit).db, choiceOf(fields), next);
  const [why, until] = [fields.get('why') ?? undefined, fields.get('until') ?? undefined];
  const again = { ...filters, why, until, after: String(next ?? ''), count: String(rest) };
  const isRequeue = verb === 'requeue';
  const what = callsText(done.done, isRequeue ? 'sent to their runners again' : 'given up');
  const isListed = skipped.length === done.skips;
  const left = done.skips === 0 ? '' : ` ${callsText(done.skips, 'left unchanged: the table says why')}.`;
  const body = html`${noticeOf({ tone: done.skips === 0 ? 'good' : 'warn', text: `${what}.${left}` })}
    ${
      skipped.length > 0 &&
      tableSheet(
        `${isRequeue ? 'Not requeued' : 'Not given up'}${isListed ? '' : `, the first ${skipped.length}`}`,
        skipColumns,
        skipped,
      )
    }
    <p class="actions">
      ${
        isRequeue
          ? html`<a class="button plain" href="${outboxPath}">Follow them in the outbox</a>`
          : html`<a class="button plain" href="/console/books/refunds">Refunds that are due</a>`
      }
      <a class="button plain" href="${pathWith(deadPath, filters)}">Dead letters that remain</a>
    </p>
    ${
      next !== undefined &&
      html`<section class="sheet">
        <h2>There are more</h2>
        <p>The rest comes after call ${next}.</p>
        ${buttonForm(visit, `${deadPath}/${verb}`, 'Continue with the rest', { values: again })}
      </section>`
    }`;
  const up = [pathWith(deadPath, filters), 'Dead letters'] as const;
  return sectionView('/console/calls', isRequeue ? 'Calls requeued' : 'Calls given up', body, { up });
}

const skipColumns: Column<BatchesDone['skipped'][number]>[] = [
  { label: 'Call', cell: ({ callId }) => callId },
  { label: 'Why', cell: ({ why }) => notRequeuedTexts[why] },
];
