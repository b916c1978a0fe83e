import { cursorOf, pageLinks, pageRows, tableSheet } from '../tables.ts';
import { html, type Html } from '../../../base/values/html.ts';
import { visibleText } from '../../../base/values/visible-text.ts';
import type { JobsContext } from '../../../jobs/use-cases/context.ts';
import { runnerName } from '../../../base/values/runner-name.ts';
import { badge, type Column, empty, time, selectField } from '../../pages/elements.ts';
import type { View } from '../../pages/visit.ts';
import { groupDeadLetters } from '../../../calls/use-cases/dead-letters.ts';
import { listOutbox, type OutboxCall, type OutboxPlace, outboxPlaces } from '../../../calls/store/outbox.ts';
import { sectionView } from '../layout.ts';
import type { Console, OperatorVisit } from '../visit.ts';
import { jobsOf } from '../contexts.ts';
import { jobName } from '../words.ts';
import { callLink, outboxPath as path, placeNames } from './links.ts';
import { waitingNotices } from './runners.ts';

const shownRows = 50;

/** The calls that have not ended, one page after another. */
export function outboxPages(console: Console): void {
  console.show(path, outboxView, 'viewer', {
    place: (text) => outboxPlaces.some((place) => place === text),
    runner: (text) => runnerName.test(text),
    services: (text) => /^\d{1,15}(?:,\d{1,15})*$/.test(text),
  });
}

async function outboxView(visit: OperatorVisit): Promise<View> {
  const context = jobsOf(visit);
  const { query } = visit;
  const place = outboxPlaces.find((one) => one === query.get('place'));
  const after = cursorOf(query, 'after');
  const filter = { place, services: servicesOf(query, context) };
  const calls =
    filter.services?.length === 0 ? [] : await listOutbox(context.db, filter, after ?? 0, shownRows + 1);
  const { shown, next } = pageRows(calls, shownRows, ({ callId }) => callId);
  const filters = {
    place,
    runner: query.get('runner') ?? undefined,
    services: query.get('services') ?? undefined,
  };
  const isChosen = Object.values(filters).some((value) => value !== undefined && value !== '');
  const notices = await waitingNotices(context);
  const lost =
    shown.length > 0 || isChosen ? undefined : await groupDeadLetters(context.db, { isRefunded: false }, 0);
  const dead = lost ? lost.groups.reduce((sum, group) => sum + group.calls, lost.others) : 0;
  // an empty list says itself that no call waits
  const isSaid = shown.length > 0 || notices.isTrouble;
  const body = html`${isSaid && notices.said} ${(isChosen || shown.length > 0) && filterForm(query, context)}
  ${
    shown.length === 0
      ? empty(
          isChosen ? 'No such call' : 'No call is open',
          isChosen
            ? 'Choose another state or another runner.'
            : html`No call waits for a runner, and none is with one.
                ${dead > 0 && html`${dead === 1 ? '1 call was' : `${dead} calls were`} not delivered: <a href="/console/calls/dead">dead letters</a>. `}Those
                that ended are among the <a href="/console/payments">payments</a>.`,
        )
      : tableSheet('Calls that have not ended, the oldest first', columns(visit), shown)
  }
  ${pageLinks(path, 'after', { isFirst: after === undefined, next }, ['The oldest', 'Newer'], filters)}`;
  return sectionView('/console/calls', 'Outbox', body, { up: ['/console/calls', 'Calls'] });
}

/** Those of the runner, or those named; undefined for all of them. */
function servicesOf(query: URLSearchParams, { config }: JobsContext): readonly number[] | undefined {
  const runner = query.get('runner') ?? '';
  if (runner !== '') return config.runners.find(({ name }) => name === runner)?.services ?? [];
  const named = query.get('services') ?? '';
  return named === '' ? undefined : named.split(',').map(Number);
}

function filterForm(query: URLSearchParams, { config }: JobsContext): Html {
  const names = config.runners.map(({ name }) => name);
  return html`<form method="get" action="${path}" class="filters">
    ${selectField({ label: 'State', name: 'place', values: outboxPlaces, value: query.get('place'), any: 'any', texts: placeNames })}
    ${selectField({ label: 'Runner', name: 'runner', values: names, value: query.get('runner'), any: 'any' })}
    <button>Show</button>
  </form>`;
}

const columns = ({ site }: OperatorVisit): Column<OutboxCall>[] => [
  { label: 'Call', cell: callLink },
  { label: 'Job', cell: (row) => jobName(site, row) },
  { label: 'State', cell: ({ place }) => badge(placeNames[place], place === 'later' ? 'warn' : 'plain') },
  {
    label: 'Until or since',
    cell: ({ place, dueAt }) => html`${untilWords[place]} ${time(dueAt)}`,
  },
  { label: 'Attempts', isNumber: true, cell: ({ attempt }) => attempt },
  { label: 'Failed', isNumber: true, cell: ({ failures }) => failures },
  { label: 'Enqueued', cell: ({ createdAt }) => time(createdAt) },
  {
    label: 'Last outcome',
    cell: ({ reason, runner, error }) =>
      reason === null
        ? ''
        : html`${reason.replaceAll('_', ' ')}
          ${runner !== null && html`<span class="hint">${runner}</span>`}${
            error !== null && html`<br /><q class="said" dir="auto">${visibleText(error)}</q>`
          }`,
  },
];

const untilWords: Readonly<Record<OutboxPlace, string>> = {
  due: 'since',
  leased: 'lease ends',
  later: 'at',
  held: 'from',
};
