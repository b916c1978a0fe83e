import { tableSheet } from '../tables.ts';
import { html, type Html } from '../../../base/values/html.ts';
import { visibleText } from '../../../base/values/visible-text.ts';
import {
  type CauseGroup,
  type CauseReport,
  groupDeadLetters,
  listed,
} from '../../../calls/use-cases/dead-letters.ts';
import { pathWith } from '../../pages/own-path.ts';
import { noticeOf } from '../../pages/document.ts';
import { type Column, count, time, withThousands } from '../../pages/elements.ts';
import type { View } from '../../pages/visit.ts';
import { sectionView } from '../layout.ts';
import type { ConsoleSite, OperatorVisit, Section } from '../visit.ts';
import { jobNamed } from '../words.ts';
import { jobsOf } from '../contexts.ts';
import { deadLetterPages, deadPath } from './dead-letters.ts';
import { outboxPages } from './outbox.ts';
import { runnerActions, runnersSheet, waitingNotices } from './runners.ts';

const path = '/console/calls';

/** Calls that have not ended: the outbox of each runner, and dead letters by cause. */
export const callsSection: Section = {
  path,
  label: 'Calls',
  isOffered: ({ jobs }) => jobs !== undefined,
  register(console) {
    console.show(path, callsView);
    outboxPages(console);
    deadLetterPages(console);
    runnerActions(console);
  },
};

async function callsView(visit: OperatorVisit): Promise<View> {
  const context = jobsOf(visit);
  const [notices, causes, runners] = await Promise.all([
    waitingNotices(context),
    groupDeadLetters(context.db, { isRefunded: false }, 0),
    runnersSheet(visit, context),
  ]);
  const dead = causes.groups.reduce((sum, { calls }) => sum + calls, causes.others);
  const content = [
    dead > 0 && deadNotice(dead, causes.next !== undefined),
    (dead === 0 || notices.isTrouble) && notices.said,
    runners,
    causesSheet(visit, listed(causes)),
  ];
  return sectionView(path, 'Calls', content);
}

function deadNotice(dead: number, hasMore: boolean): Html {
  const many = `${withThousands(dead)} calls${hasMore ? ' or more' : ''} were not delivered`;
  const text = dead === 1 && !hasMore ? '1 call was not delivered' : many;
  return noticeOf({
    tone: 'warn',
    text: `${text}: open the cause below to send them again, or to give them up.`,
  });
}

function causesSheet({ site }: OperatorVisit, { groups, others, next }: CauseReport): Html {
  const isCut = others > 0 || next !== undefined;
  const hasMarks = groups.some(({ words }) => words.includes('#'));
  const note = html`${hasMarks && html`<p class="hint"># stands for what differs from call to call.</p>`}
  ${
    isCut &&
    html`<p class="hint">
      There are more than are grouped
      here${others > 0 && html`, ${count(others)} of causes that are not listed`}:
      <a href="${deadPath}">all dead letters</a>.
    </p>`
  }`;
  const none = ['Not delivered', 'None at present.'] as const;
  return tableSheet('Not delivered, by cause', causeColumns(site), groups, { none, note });
}

const causeColumns = (site: ConsoleSite): Column<CauseGroup>[] => [
  {
    label: 'Cause',
    cell: ({ cause, reason, words }) =>
      html`<a href="${pathWith(deadPath, { cause })}" dir="auto"
        >${words === '' ? (reason ?? 'unknown').replaceAll('_', ' ') : visibleText(words)}</a
      >`,
  },
  { label: 'Calls', isNumber: true, cell: ({ calls }) => count(calls) },
  {
    label: 'Jobs',
    cell: ({ jobs }) => jobs.map((key) => html`<span class="line">${jobNamed(site, key)}</span>`),
  },
  { label: 'Runners', cell: ({ runners }) => runners.join(', ') },
  { label: 'Oldest', cell: ({ oldest }) => time(oldest) },
  { label: 'Newest', cell: ({ newest }) => time(newest) },
];
