import { cursorOf, tableSheet } from '../tables.ts';
import { html, type Html, type Shown } from '../../../base/values/html.ts';
import type { EventData, RecordedEvent } from '../../../ledger/rules/event.ts';
import { type JobPrice, jobPriceText } from '../../../base/values/amount.ts';
import { type AuthMode, jobKey } from '../../../base/values/job.ts';
import type { Job } from '../../../jobs/use-cases/catalog.ts';
import type { JobsContext } from '../../../jobs/use-cases/context.ts';
import { includesRole } from '../../../base/values/operator-role.ts';
import { pathWith } from '../../pages/own-path.ts';
import { tokenAmount } from '../../pages/jobs/token-amount.ts';
import { badge, type Column, count, shortId, time } from '../../pages/elements.ts';
import { ageText } from '../../../base/values/age-text.ts';
import type { View } from '../../pages/visit.ts';
import { readLatestEvents } from '../../../ledger/store/streams.ts';
import { isCursor } from '../../pages/filters.ts';
import { jobsOf } from '../contexts.ts';
import { sectionView } from '../layout.ts';
import type { ConsoleSite, OperatorVisit, Section } from '../visit.ts';
import { networkName } from '../../pages/known-networks.ts';
import { jobName, jobNamed } from '../words.ts';
import { ConfigError } from '../../../base/config/mistakes.ts';
import { reasonOf } from '../../../base/config/files.ts';
import { isRunnerAway } from '../../../jobs/use-cases/capacity.ts';
import { previewReload } from '../../../jobs/use-cases/reload.ts';
import { noticeOf } from '../../pages/document.ts';
import { dryRunAction, dryRunForm } from './dry-run.ts';
import { peersSheet, ratesSheet } from './rates.ts';

const path = '/console/jobs';
const shownJobs = 50;
const shownReloads = 10;

/** The jobs on sale, their prices in every token, and the changes of these. */
export const jobsSection: Section = {
  path,
  label: 'Jobs',
  isOffered: ({ jobs }) => jobs !== undefined,
  register(console) {
    console.show(path, (visit) => jobsView(visit), 'viewer', { from: isCursor });
    dryRunAction(console, jobsView);
  },
};

/** `dryRun`: what the last dry run said, with its form. */
async function jobsView(visit: OperatorVisit, dryRun?: Html): Promise<View> {
  const context = jobsOf(visit);
  const reloads = await readLatestEvents(context.pool, 'operator:config', shownReloads);
  const from = (cursorOf(visit.query, 'from') ?? 1) - 1;
  const jobs = [...context.catalog.values()];
  const shown = jobs.slice(from, from + shownJobs);
  const place = (at: number): string => pathWith(path, { from: at <= 0 ? undefined : String(at + 1) });
  const body = html`${dryRun} ${soldNotice(context, jobs)} ${await previewSheet(visit.site, context)}
    ${tableSheet('Jobs', columnsFor(visit.site, context), shown, { none: ['Jobs', 'No job has a price.'] })}
    <p class="actions">
      ${from > 0 && html`<a class="button plain" href="${place(from - shownJobs)}">Those before</a>`}
      ${from + shownJobs < jobs.length && html`<a class="button plain" href="${place(from + shownJobs)}">The next ones</a>`}
    </p>
    ${ratesSheet(context)} ${peersSheet(visit.site, context)}
    ${dryRun === undefined && includesRole(visit.operator.role, 'operator') && dryRunForm(visit)}
    ${reloadsSheet(visit.site, reloads)}`;
  return sectionView(path, 'Jobs and prices', body);
}

/** How many are offered at this moment; a full outbox may still refuse their payments. */
function soldNotice(context: JobsContext, jobs: readonly Job[]): Html | undefined {
  if (jobs.length === 0) return undefined;
  const sold = jobs.filter(
    (job) => job.isSold && job.options.length > 0 && !isRunnerAway(context, job),
  ).length;
  const isStopped = context.facilitators.isCircuitOpen();
  if (isStopped)
    return noticeOf({
      tone: 'bad',
      text: 'Nothing can be bought now: the facilitator gives no useful answers.',
    });
  const text =
    sold === jobs.length ? 'Every job is offered now.' : `${sold} of ${jobs.length} jobs are offered now.`;
  return noticeOf({ tone: sold === jobs.length ? 'good' : 'plain', text });
}

function columnsFor(site: ConsoleSite, context: JobsContext): Column<Job>[] {
  const { settings } = context;
  return [
    { label: 'Job', cell: (job) => jobName(site, job) },
    {
      label: 'Sold to',
      cell: (job) =>
        html`${badge(modeTexts[job.mode], job.mode === 'disabled' ? 'plain' : 'good')}
        ${job.isSold && isRunnerAway(context, job) && badge(job.hasRunner ? 'not now: its runners are silent' : 'not now: no runner', 'bad')}`,
    },
    {
      label: 'Price',
      isNumber: true,
      cell: ({ options, priced }) =>
        options.length === 0
          ? html`<span class="muted">no token at present</span>`
          : options.map(
              (option) =>
                html`<span class="line"
                  >${priced && 'at most '}${tokenAmount(option.amount, option)}
                  <span class="hint">on ${networkName(option.network)}</span></span
                >`,
            ),
    },
    {
      label: 'Price as set',
      isNumber: true,
      cell: ({ priceWei: wei, inUsd }) => html`<span class="line">${priceText({ wei, inUsd })}</span>`,
    },
    {
      label: 'Settings',
      cell: (job) => policyOf(job, settings).map((line) => html`<span class="line hint">${line}</span>`),
    },
  ];
}

const weiPerGwei = 10n ** 9n;

/** A price as the configuration has it: what is a tiny part of an ether is in wei. */
function priceText(price: JobPrice): string {
  return price.inUsd || price.wei >= weiPerGwei ? jobPriceText(price) : `${price.wei} wei`;
}

/** The settings that differ from their defaults. */
function policyOf(job: Job, { jobPolicies }: JobsContext['settings']): Shown[] {
  const policy = jobPolicies.get(jobKey(job));
  const { restriction, input, isTopUp, maxRunnerSilenceSecs } = job;
  const lines = [
    isTopUp && 'sells credit',
    restriction &&
      html`${callerTexts[restriction.authMode]} permitted by: ${shortId(restriction.contract, 'the contract')}`,
    input && `input: ${input.contentType}${input.schema ? ', checked by a JSON Schema' : ''}`,
    maxRunnerSilenceSecs > 0 && `not sold once runners are silent for ${ageText(maxRunnerSilenceSecs)}`,
    policy?.priority !== undefined && policy.priority !== 0 && `priority ${policy.priority}`,
    policy?.maxConcurrent !== undefined && `at most ${policy.maxConcurrent} simultaneously`,
    policy?.orderBy !== undefined && `in the order of ${policy.orderBy}`,
    policy?.maxAttempts !== undefined && `${policy.maxAttempts} attempts`,
    policy?.discardAfterSecs !== undefined &&
      `dead letters are given up after ${ageText(policy.discardAfterSecs)}`,
  ];
  return lines.filter((line) => line !== false && line !== undefined);
}

const callerTexts: Readonly<Record<AuthMode, string>> = {
  payer_is_caller: 'payers',
  delegated_caller_signature: 'signing callers',
};

const modeTexts: Readonly<Record<Job['mode'], string>> = {
  public_paid: 'anyone',
  restricted_paid: 'only permitted',
  disabled: 'no one',
};

function reloadsSheet(site: ConsoleSite, events: readonly RecordedEvent[]): Html {
  const columns: Column<RecordedEvent>[] = [
    { label: 'When', cell: ({ at }) => time(new Date(at)) },
    { label: 'What', cell: (event) => changeOf(site, event) },
    { label: 'Record', isNumber: true, cell: ({ seq }) => seq },
  ];
  return tableSheet('Reloads of the configuration', columns, events, {
    none: ['Reloads', 'The configuration is that of the start: none was reloaded.'],
    note:
      events.length > 0 &&
      html`<p class="hint">
        A reload is a signal to a process of the gateway: who may send it is decided on its machine.
      </p>`,
  });
}

/** What the configuration file would change if it was reloaded now; nothing where it would change nothing. */
async function previewSheet(
  { readConfig, ...site }: ConsoleSite,
  context: JobsContext,
): Promise<Html | undefined> {
  if (!readConfig) return undefined;
  try {
    const changes = previewReload(context, await readConfig());
    if (changes.length === 0) return undefined;
    return tableSheet(
      'A reload would change these prices',
      changeColumns(site),
      changes.slice(0, shownJobs),
      {
        note: html`<p class="hint">
          ${changes.length > shownJobs && html`And ${count(changes.length - shownJobs)} more. `}The
          configuration file on this machine says so, and is not in force: <code>SIGHUP</code> to the gateway
          reloads it.
        </p>`,
      },
    );
  } catch (error) {
    const why = error instanceof ConfigError ? mistakesText(error.mistakes.length) : reasonOf(error);
    return noticeOf({
      tone: 'warn',
      text: `The configuration file on this machine could not be loaded now (${why}): a reload would be refused. tollbook config check says why.`,
    });
  }
}

function mistakesText(mistakes: number): string {
  return mistakes === 1 ? '1 mistake' : `${mistakes} mistakes`;
}

const changeColumns = (site: Pick<ConsoleSite, 'jobs'>): Column<Change>[] => [
  {
    label: 'Job',
    cell: ({ service_id: serviceId, job_index: jobIndex }) => jobName(site, { serviceId, jobIndex }),
  },
  { label: 'Was', cell: ({ was }) => soldText(was) },
  { label: 'Now', cell: ({ now }) => html`<strong>${soldText(now)}</strong>` },
];

function changeOf(site: ConsoleSite, event: RecordedEvent): Html | string {
  if (event.type === 'operator_config_refused')
    return html`${badge('refused', 'bad')} ${mistakesText(event.data.mistakes)}; nothing was changed`;
  if (event.type === 'operator_models_loaded') return html`${count(event.data.models)} models were loaded`;
  if (event.type !== 'operator_config_loaded') return event.type.replaceAll('_', ' ');
  const { jobs, changes = [], more_changes: more = 0 } = event.data;
  if (changes.length === 0) return `${jobs} jobs, none of them sold otherwise than before`;
  return html`${changes.map(
    ({ service_id: service, job_index: index, was, now }) =>
      html`<span class="line"
        >${jobNamed(site, `${service}/${index}`)}: ${soldText(was)} → ${soldText(now)}</span
      >`,
  )}${more > 0 && html`<span class="line">and ${count(more)} more jobs</span>`}`;
}

type Change = NonNullable<EventData<'operator_config_loaded'>['changes']>[number];
const soldToTexts: Readonly<Record<Job['mode'], string>> = {
  public_paid: 'to anyone',
  restricted_paid: 'only to permitted callers',
  disabled: 'not sold,',
};

type SoldAs = NonNullable<Change['now']>;

function soldText(sold: SoldAs | undefined): string {
  if (!sold) return 'no price';
  const price = priceText({ wei: BigInt(sold.price_wei), inUsd: sold.in_usd ?? false });
  return `${soldToTexts[sold.mode]} at ${price}`;
}
