import { cursorOf, pageLinks, pageRows, tableSheet } from '../tables.ts';
import type { RecordedEvent } from '../../../ledger/rules/event.ts';
import { html, type Html } from '../../../base/values/html.ts';
import { readConsoleEvents } from '../../../accounts/use-cases/operators.ts';
import { type Column, empty, shortId, time, timeSpan } from '../../pages/elements.ts';
import type { View } from '../../pages/visit.ts';
import { sectionView } from '../layout.ts';
import type { ConsoleSite, OperatorVisit, Section } from '../visit.ts';
import { jobNamed } from '../words.ts';

const path = '/console/activity';
const shownRows = 50;

/** What operators did in the console, the latest first. */
export const activitySection: Section = {
  path,
  label: 'Activity',
  register(console) {
    console.show(path, activityView);
  },
};

async function activityView({ site, query }: OperatorVisit): Promise<View> {
  const before = cursorOf(query, 'before');
  const events = await readConsoleEvents(site.ledger, before, shownRows + 1);
  const { shown, next } = pageRows(events, shownRows, ({ version }) => version);
  const columns: Column<RecordedEvent>[] = [
    { label: 'When', cell: ({ at }) => time(new Date(at)) },
    { label: 'Who', cell: (event) => whoOf(event) },
    { label: 'What', cell: (event) => whatOf(event) },
    { label: 'On', cell: (event) => subjectOf(site, event) },
    { label: 'Event', isNumber: true, cell: ({ seq }) => seq },
  ];
  const body = html`${before === undefined ? latestNotice(shown) : earlierNotice(shown, next === undefined)}
  ${
    shown.length === 0
      ? empty('Nothing yet', 'Each action in the console is recorded here with who did it.')
      : html`<div class="activity">${tableSheet('Actions', columns, shown)}</div>`
  }
  ${pageLinks(path, 'before', { isFirst: before === undefined, next }, ['The latest', 'Earlier'])}`;
  return before === undefined
    ? sectionView(path, 'Activity', body)
    : sectionView(path, 'Earlier activity', body, { up: [path, 'The latest activity'] });
}

/** Refused sign-ins need a look; else who did something last. */
function latestNotice(shown: readonly RecordedEvent[]): Html | undefined {
  const [last] = shown;
  if (!last) return undefined;
  const refused = shown.filter(({ type }) => type === 'operator_sign_in_refused').length;
  const said = html`The last action was by ${whoOf(last)}, ${time(new Date(last.at))}: ${whatOf(last)}.`;
  return refused === 0
    ? html`<p class="notice">${said} No sign-in was refused among the latest ${shown.length} actions.</p>`
    : html`<p class="notice warn">
        ${refused === 1 ? '1 sign-in was' : `${refused} sign-ins were`} refused among the latest
        ${shown.length} actions: ask whether it was their operator. ${said}
      </p>`;
}

function earlierNotice(shown: readonly RecordedEvent[], isEnd: boolean): Html | undefined {
  const [newest, oldest] = [shown.at(0), shown.at(-1)];
  if (!newest || !oldest) return undefined;
  const [from, to] = [new Date(oldest.at), new Date(newest.at)];
  const isShort = to.getTime() - from.getTime() < 60_000;
  const when = isShort ? html`of ${time(to)}` : html`from ${timeSpan(from, to)}`;
  return html`<p class="notice">
    ${shown.length === 1 ? '1 action' : `${shown.length} actions`} ${when}, the latest first.
    ${isEnd && 'There are none before them.'}
  </p>`;
}

function whoOf({ data }: RecordedEvent): string {
  if ('operator' in data && typeof data.operator === 'string') return data.operator;
  return 'name' in data && typeof data.name === 'string' ? data.name : '';
}

/** Where the name of an action is not enough. An action is recorded before it is done, so it may have been refused. */
const actionTexts: Readonly<Record<string, string>> = {
  requeue_call: 'requeue a call',
  give_up_call: 'give a call up',
  give_up_calls: 'give calls up',
  dry_run: 'dry run of a job',
  reconcile: 'reconcile a period',
  reconcile_stored: 'reconciliation stored',
  reconcile_failed: 'reconciliation failed',
  reconcile_refused: 'reconciliation refused',
  explain_break: 'explain a break',
  record_transfer: 'record a transfer',
  resolve_settlement: 'resolve a settlement',
  start_refund: 'start a refund',
  note_sent_refund: 'record that a refund was sent',
  drop_refund: 'say that a refund was not sent',
  record_refund: 'record a refund',
  close_period: 'close a period',
  review_period: 'review a period',
  reopen_period: 'open a period again',
  invite_operator: 'invite an operator',
  set_role: 'change a role',
  withdraw_role: 'withdraw a role',
  remove_factors: 'reset a second factor',
  pause_runner: 'pause a runner',
  resume_runner: 'resume a runner',
};

function whatOf(event: RecordedEvent): string {
  switch (event.type) {
    case 'operator_acted':
      return actionTexts[event.data.action] ?? event.data.action.replaceAll('_', ' ');
    case 'operator_invited':
      return `invited as ${event.data.role}`;
    case 'operator_role_granted':
      return `role granted: ${event.data.role}`;
    case 'operator_role_withdrawn':
      return 'role withdrawn';
    case 'operator_factor_added':
      return `second factor added: ${event.data.factor}`;
    case 'operator_factors_removed':
      return 'second factors removed';
    case 'operator_signed_in':
      return `signed in with ${event.data.factor.replaceAll('_', ' ')}`;
    case 'operator_sign_in_refused':
      return `sign-in refused: ${event.data.reason.replaceAll('_', ' ')}`;
    default:
      return event.type.replaceAll('_', ' ');
  }
}

function subjectOf(site: ConsoleSite, { data }: RecordedEvent): Html | string {
  if ('subject' in data && typeof data.subject === 'string') {
    const { subject } = data;
    const action = 'action' in data ? data.action : undefined;
    if (/^0x[0-9a-f]{64}$/.test(subject)) {
      // breaks and transfers have ids of the same form
      if (action === 'explain_break') return html`break ${shortId(subject, 'the id of the break')}`;
      if (action === 'record_transfer') return html`transaction ${shortId(subject, 'the transaction')}`;
      return html`<a href="/console/payments/${subject}">payment ${subject.slice(0, 8)}…</a>`;
    }
    // the other actions about a number are not about a call
    const isCall = action === 'requeue_call' && /^\d+$/.test(subject);
    if (isCall) return html`<a href="/console/payments?q=${subject}">call ${subject}</a>`;
    if (action === 'dry_run') return jobNamed(site, subject);
    return subject;
  }
  return 'name' in data && typeof data.name === 'string' ? data.name : '';
}
