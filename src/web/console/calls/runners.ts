import { tableSheet } from '../tables.ts';
import { includesRole } from '../../../base/values/operator-role.ts';
import { html, type Html, type Shown } from '../../../base/values/html.ts';
import type { JobsContext } from '../../../jobs/use-cases/context.ts';
import { pauseRunner, readPause, resumeRunner } from '../../../calls/use-cases/pause-runner.ts';
import { noticeOf } from '../../pages/document.ts';
import { badge, buttonForm, type Column, time, withThousands } from '../../pages/elements.ts';
import { ageText } from '../../../base/values/age-text.ts';
import { problemView } from '../../pages/problem.ts';
import { countOutbox, type OutboxCount, type OutboxPlace } from '../../../calls/store/outbox.ts';
import type { Console, OperatorVisit } from '../visit.ts';
import { jobsOf } from '../contexts.ts';
import { linkedCount, outboxAddress } from './links.ts';

const path = '/console/calls';

/** Keeps calls back from a runner, or lets them go to it again. */
export function runnerActions(console: Console): void {
  const changes = [
    ['pause', pauseRunner, 'runner_paused', 'runner_paused_already'],
    ['resume', resumeRunner, 'runner_resumed', 'runner_not_paused'],
  ] as const;
  for (const [verb, change, done, unchanged] of changes) {
    console.act(
      `${path}/runners/:runner/${verb}`,
      {
        role: 'operator',
        action: `${verb}_runner`,
        shownAt: path,
        subject: ({ params }) => params['runner'],
      },
      async (visit) => {
        const context = jobsOf(visit);
        const runner = context.config.runners.find(({ name }) => name === visit.params['runner']);
        if (!runner) return problemView(404, 'The configuration has no such runner. Nothing was changed.');
        const { kind } = await change(context, runner, { operator: visit.operator.name });
        context.onCallReleased();
        return { kind: 'redirect', to: path, notice: kind === 'changed' ? done : unchanged };
      },
    );
  }
}

/** Between two looks of the gateway a call may wait that a runner takes in time. */
const silenceSecs = 5;

interface RunnerRow {
  /** Undefined for the services that no runner of the configuration has. */
  readonly name: string | undefined;
  readonly mode: string;
  readonly services: readonly number[];
  readonly pause: Awaited<ReturnType<typeof readPause>>;
  readonly counts: ReadonlyMap<OutboxPlace, { readonly calls: number; readonly first: Date }>;
}

/** The calls that wait for each runner, its leased calls, and whether it is paused. */
export async function runnersSheet(visit: OperatorVisit, context: JobsContext): Promise<Html> {
  const rows = await readRunners(context);
  const mayPause = includesRole(visit.operator.role, 'operator');
  const columns = [...runnerColumns, ...(mayPause ? [pauseColumn(visit)] : [])];
  return tableSheet('Outbox by runner', columns, rows, { none: ['Outbox', 'No runner is configured.'] });
}

async function readRunners(context: JobsContext): Promise<RunnerRow[]> {
  const { runners } = context.config;
  const [counts, pauses] = await Promise.all([
    countOutbox(context.db),
    Promise.all(runners.map((runner) => readPause(context, runner))),
  ]);
  const served = new Set(runners.flatMap(({ services }) => services));
  const without = [...new Set(counts.map(({ serviceId }) => serviceId))].filter((id) => !served.has(id));
  return [
    ...runners.map(({ name, mode, services }, index) => ({
      name,
      mode,
      services,
      pause: pauses[index],
      counts: sumOf(counts, services),
    })),
    ...(without.length === 0
      ? []
      : [{ name: undefined, mode: '', services: without, pause: undefined, counts: sumOf(counts, without) }]),
  ];
}

/** What keeps calls from being delivered now, or that nothing does: the first thing that a page about calls says. */
export async function waitingNotices(
  context: JobsContext,
): Promise<{ readonly isTrouble: boolean; readonly said: readonly Html[] }> {
  const rows = await readRunners(context);
  const said = rows.flatMap((row) => trouble(context, row) ?? []);
  const waiting = rows.reduce((sum, { counts }) => sum + (counts.get('due')?.calls ?? 0), 0);
  if (said.length > 0) return { isTrouble: true, said: said.map((text) => noticeOf({ tone: 'warn', text })) };
  const text =
    waiting === 0 ? 'No call waits for a runner.' : `${callsText(waiting)} for a runner, which takes them.`;
  return { isTrouble: false, said: [noticeOf({ tone: 'plain', text })] };
}

function trouble(
  { runnerSilence }: JobsContext,
  { name, mode, services, pause, counts }: RunnerRow,
): string | undefined {
  const due = counts.get('due')?.calls ?? 0;
  if (due === 0) return undefined;
  if (name === undefined) return `${callsText(due)}, and no runner of the configuration serves them.`;
  if (pause) return `${callsText(due)} for ${name}, which is paused.`;
  const silentSecs = Math.max(0, ...services.map((service) => runnerSilence.secsOf(service)));
  if (silentSecs < silenceSecs) return undefined;
  const [age, waiting] = [ageText(silentSecs), callsText(due)];
  return mode === 'lease'
    ? `${name}: no runner has polled for ${age}, and ${waiting}.`
    : `${name} has taken no call for ${age}, and ${waiting}.`;
}

function callsText(calls: number): string {
  return calls === 1 ? '1 call waits' : `${withThousands(calls)} calls wait`;
}

function sumOf(counts: readonly OutboxCount[], services: readonly number[]): RunnerRow['counts'] {
  const sums = new Map<OutboxPlace, { readonly calls: number; readonly first: Date }>();
  for (const { serviceId, place, calls, first } of counts) {
    if (!services.includes(serviceId)) continue;
    const known = sums.get(place);
    sums.set(place, {
      calls: (known?.calls ?? 0) + calls,
      first: known && known.first < first ? known.first : first,
    });
  }
  return sums;
}

function placeColumn(label: string, place: OutboxPlace, whenFirst?: string): Column<RunnerRow> {
  return {
    label,
    isNumber: true,
    cell({ name, services, counts }): Shown {
      const found = counts.get(place);
      const to = outboxAddress({ place, ...(name === undefined ? { services } : { runner: name }) });
      return html`${linkedCount(found?.calls ?? 0, to)}${
        found &&
        whenFirst !== undefined &&
        html`<br /><span class="hint">${whenFirst} ${time(found.first)}</span>`
      }`;
    },
  };
}

const runnerColumns: Column<RunnerRow>[] = [
  {
    label: 'Runner',
    cell: ({ name, mode, pause }) =>
      name === undefined
        ? badge('no runner', 'bad')
        : html`<span class="inline">${name} ${badge(mode)} ${pause && badge('paused', 'warn')}</span>${
              pause && html`<br /><span class="hint">${pausedBy(pause)}</span>`
            }`,
  },
  { label: 'Services', cell: ({ services }) => services.join(', ') },
  placeColumn('Due', 'due', 'since'),
  placeColumn('Leased', 'leased', 'first lease ends'),
  placeColumn('Again later', 'later', 'next'),
  placeColumn('Held by their key', 'held'),
];

function pausedBy({ operator, reason }: NonNullable<RunnerRow['pause']>): string {
  return operator === undefined ? `by itself: ${reason.replaceAll('_', ' ')}` : `by ${operator}`;
}

function pauseColumn(visit: OperatorVisit): Column<RunnerRow> {
  return {
    label: 'Change',
    isAction: true,
    cell({ name, pause }) {
      if (name === undefined) return '';
      const [verb, label] = pause ? (['resume', 'Resume'] as const) : (['pause', 'Pause'] as const);
      const confirm = `Press again: ${verb} ${name}`;
      const how = { look: 'plain small', about: name, confirm };
      return buttonForm(visit, `${path}/runners/${name}/${verb}`, label, how);
    },
  };
}
