import { creditText } from '../../../base/values/price.ts';
import { html, type Html } from '../../../base/values/html.ts';
import type { UsageSums } from '../../../chat/store/usage.ts';
import {
  amount,
  type Column,
  creditDigits,
  count,
  dayText,
  decimalsOf,
  personName,
  table,
  utcDay,
  withThousands,
} from '../elements.ts';
import { barChart } from './chart.ts';
import { dayFields } from './days.ts';
import { daysBefore, periodsOf, stepOf, totalsOf, type UsagePeriod, type UsageTotals } from './periods.ts';
import { csvPath, type Measure, measures, pathTo, requestsPathFor, type Shown } from './query.ts';

/** An account's usage in the days that are shown. */
export interface Usage {
  readonly days: readonly UsageSums[];
  readonly models: readonly UsageSums[];
  readonly keys: readonly UsageSums[];
  /** Whether `keys` has them all. */
  readonly areAllKeys: boolean;
  readonly currency: string;
  readonly today: string;
}

/** Of the models, and of the keys: those that cost most. */
const shownGroups = 15;

const ranges = { 'Last 7 days': 7, 'Last 30 days': 30, 'Last 90 days': 90, 'Last 365 days': 365 } as const;

export function usageBody(shown: Shown, usage: Usage): Html {
  const totals = totalsOf(usage.days);
  const { currency } = usage;
  return html`<div class="head">
      <h1>Usage</h1>
      ${
        usage.days.length > 0 &&
        html`<p class="actions">
          <a class="button plain" href="${requestsPathFor(shown)}">Each request</a
          ><a class="button plain" href="${csvPath(shown)}">Download as CSV</a>
        </p>`
      }
    </div>
    ${choice(shown, usage.today)} ${onlyFor(shown, usage)}
    ${
      usage.days.length > 0 &&
      html`<div class="grid four">
          ${figure('Cost', amount(totals.cost, currency), 'of the requests that have ended')}
          ${figure('Requests', count(totals.requests), `${withThousands(totals.failed)} more failed, free of charge`)}
          ${figure('Input tokens', count(totals.promptTokens), `${withThousands(totals.cachedTokens)} of them cached`)}
          ${figure('Output tokens', count(totals.completionTokens), 'what the models wrote')}
        </div>
        ${byPeriod(shown, usage, totals)} ${byModel(shown, usage)} ${byKey(shown, usage)}`
    }`;
}

function figure(label: string, value: Html, hint: string): Html {
  return html`<div class="sheet figure">
    <span class="label">${label}</span>${value}<span class="hint">${hint}</span>
  </div>`;
}

/** The days: some ranges as links, others by a form. */
function choice(shown: Shown, today: string): Html {
  let isRange = false;
  const links = Object.entries(ranges).map(([label, days]) => {
    const range = { from: daysBefore(today, days - 1), to: today };
    const isShown = range.from === shown.from && range.to === shown.to;
    isRange ||= isShown;
    return html`<li>
      <a href="${pathTo(shown, range)}" ${isShown && html`aria-current="true"`}>${label}</a>
    </li>`;
  });
  const kept = { model: shown.model, key_id: shown.keyId, show: shown.measure };
  return html`<nav aria-label="Days" class="tabs">
      <ul>
        ${links}
      </ul>
    </nav>
    <details ${!isRange && html`open`}>
      <summary>Other days</summary>
      <form method="get" action="/usage" class="days">
        ${dayFields(shown)}
        ${Object.entries(kept).map(([name, value]) => value !== undefined && html`<input type="hidden" name="${name}" value="${value}" />`)}
        <button class="plain">Show</button>
      </form>
    </details>`;
}

function onlyFor(shown: Shown, { keys }: Usage): Html | undefined {
  const { model, keyId } = shown;
  if (model === undefined && keyId === undefined) return undefined;
  return html`<p class="notice" role="status">
    Only
    ${model !== undefined && modelName(model)}${model !== undefined && keyId !== undefined && ' with '}${
      keyId !== undefined &&
      keyName(
        keys.find(({ key_id: id }) => id === keyId),
        keyId,
      )
    }.
    <a href="${pathTo(shown, { model: undefined, keyId: undefined })}">Show all</a>
  </p>`;
}

const captions = { day: 'By day', week: 'By week', month: 'By month' } as const;

function byPeriod(shown: Shown, { days, currency }: Usage, totals: UsageTotals): Html {
  const { from, to } = shown;
  const periods = periodsOf(from, to, days);
  const measure = shown.measure ?? (totals.cost > 0n ? 'cost' : 'requests');
  const caption = captions[stepOf(from, to)];
  const text = (value: bigint): string => textOf(measure, value, currency);
  const bars = periods.map((period) => {
    const value = valueOf(measure, period.totals);
    return { value, text: `${periodText(period)}: ${text(value)}` };
  });
  const highest = bars.reduce((one, other) => (other.value > one.value ? other : one));
  const links = (Object.keys(measures) as Measure[]).map(
    (name) =>
      html`<li>
        <a href="${pathTo(shown, { measure: name })}" ${name === measure && html`aria-current="true"`}
          >${measures[name]}</a
        >
      </li>`,
  );
  const used = periods
    .filter(({ totals: { requests, failed } }) => requests > 0n || failed > 0n)
    .toReversed();
  const columns: Column<UsagePeriod>[] = [
    { label: stepOf(from, to) === 'day' ? 'Day' : 'Days', cell: periodName },
    ...numberColumns(({ totals: own }) => own, currency, used),
  ];
  return html`<section class="sheet sums">
    <nav aria-label="What the chart shows" class="tabs">
      <ul>
        ${links}
      </ul>
    </nav>
    ${barChart({
      id: 'usage',
      title: `${measures[measure]}${measure === 'cost' ? ` in ${currency}` : ''}, ${caption.toLowerCase()}`,
      description: `The highest bar is ${highest.text}. All numbers are in the table below the chart.`,
      bars,
      scale: (value) => (measure === 'cost' ? decimalsOf(creditText(value)) : withThousands(value)),
      below: [...new Set([from, periods[Math.floor(periods.length / 2)]?.from ?? from, to])].map(utcDay),
    })}
    <details>
      <summary>The numbers of this chart</summary>
      ${table(caption, columns, used)}
    </details>
  </section>`;
}

function valueOf(measure: Measure, { cost, requests, promptTokens, completionTokens }: UsageTotals): bigint {
  return { cost, requests, tokens: promptTokens + completionTokens }[measure];
}

function textOf(measure: Measure, value: bigint, currency: string): string {
  if (measure === 'cost') return `${creditText(value < 0n ? 0n : value)} ${currency}`;
  return `${measures[measure].toLowerCase()} ${withThousands(value)}`;
}

function periodText({ from, to }: UsagePeriod): string {
  return from === to ? dayText(from) : `${dayText(from)} to ${dayText(to)}`;
}

function periodName({ from, to }: UsagePeriod): Html {
  return from === to ? utcDay(from) : html`${utcDay(from)} to ${utcDay(to)}`;
}

function numberColumns<T>(
  totalsIn: (row: T) => UsageTotals,
  currency: string,
  rows: readonly T[],
): Column<T>[] {
  const digits = creditDigits(rows.map((row) => totalsIn(row).cost));
  const column = (label: string, of: (totals: UsageTotals) => bigint): Column<T> => ({
    label,
    isNumber: true,
    cell: (row) => withThousands(of(totalsIn(row))),
  });
  return [
    column('Requests', ({ requests }) => requests),
    column('Failed', ({ failed }) => failed),
    column('Input', ({ promptTokens }) => promptTokens),
    column('Cached', ({ cachedTokens }) => cachedTokens),
    column('Output', ({ completionTokens }) => completionTokens),
    { label: 'Cost', isNumber: true, cell: (row) => amount(totalsIn(row).cost, currency, { digits }) },
  ];
}

/** A model or a key with its sums; without a row: all those that are not shown. */
interface Group {
  readonly row?: UsageSums;
  readonly others?: number;
  readonly totals: UsageTotals;
}

const totalsOfGroup = ({ totals }: Group): UsageTotals => totals;

function byModel(shown: Shown, { models, currency }: Usage): Html {
  const name = ({ row, others }: Group): Html | string =>
    row
      ? html`<a href="${pathTo(shown, { model: row.model ?? '' })}">${modelName(row.model ?? '')}</a>`
      : `${others} others`;
  const groups = groupsOf(models);
  const columns = [{ label: 'Model', cell: name }, ...numberColumns(totalsOfGroup, currency, groups)];
  return html`<section class="sheet sums">${table('By model', columns, groups)}</section>`;
}

function byKey(shown: Shown, { keys, areAllKeys, currency }: Usage): Html {
  const name = ({ row, others }: Group): Html | string =>
    row
      ? html`<a href="${pathTo(shown, { keyId: row.key_id ?? 0 })}">${keyName(row, row.key_id ?? 0)}</a>`
      : `${others} others`;
  const groups = groupsOf(keys);
  const columns = [{ label: 'Key', cell: name }, ...numberColumns(totalsOfGroup, currency, groups)];
  return html`<section class="sheet sums">
    ${table('By key', columns, groups)}
    ${!areAllKeys && html`<p class="hint">Of your ${withThousands(keys.length)} oldest keys. The file has all of them.</p>`}
  </section>`;
}

/** Those that cost most, and the others in one row. */
function groupsOf(rows: readonly UsageSums[]): readonly Group[] {
  const groups = rows
    .map((row) => ({ row, totals: totalsOf([row]) }))
    .toSorted((one, other) =>
      Number(other.totals.cost - one.totals.cost || other.totals.requests - one.totals.requests),
    );
  if (groups.length <= shownGroups) return groups;
  const rest = groups.slice(shownGroups - 1);
  const others = { others: rest.length, totals: totalsOf(rest.map(({ row }) => row)) };
  return [...groups.slice(0, shownGroups - 1), others];
}

/** The name that the operator gave the model. */
export function modelName(name: string): Html {
  return html`<code>${personName(name)}</code>`;
}

/** A key by its owner's name for it; 0 is not a key. */
export function keyName(key: Pick<UsageSums, 'key_name'> | undefined, keyId: number): Html | string {
  if (keyId === 0) return 'Sessions, without a key';
  if (!key || key.key_name === null) return `Key ${keyId}`;
  return html`${personName(key.key_name)} <span class="hint">key ${keyId}</span>`;
}
