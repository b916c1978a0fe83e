import { html, type Html } from '../../../base/values/html.ts';
import { formatUnits } from 'viem/utils';
import {
  type Column,
  count,
  dayText,
  decimalsOf,
  table,
  utcDay,
  withThousands,
} from '../../pages/elements.ts';
import { tokenAmount } from '../../pages/jobs/token-amount.ts';
import { type Bar, type BarChart, barChart } from '../../pages/usage/chart.ts';
import { type OutboxPlace, outboxPlaces } from '../../../calls/store/outbox.ts';
import type { TokenDay } from '../../../ledger/store/earnings-and-latency.ts';
import { outboxAddress, placeNames } from '../calls/links.ts';
import { networkName, networkText } from '../../pages/known-networks.ts';

/** Those in which most was paid; the table has them all. */
const shownTokens = 3;

export interface Charted {
  /** As `2026-11-30`, the oldest first. */
  readonly days: readonly string[];
  /** The newest day first. */
  readonly tokenDays: readonly TokenDay[];
  readonly openCalls: ReadonlyMap<OutboxPlace, number>;
}

/** Payments and money by day, and the calls that are open now: drawings, with their numbers in a table below. */
export function chartsOf({ days, tokenDays, openCalls }: Charted): Html {
  const tokens = Map.groupBy(tokenDays, ({ network, asset }) => `${network}/${asset}`);
  const most = [...tokens.values()].toSorted((a, b) => sumOf(b) - sumOf(a)).slice(0, shownTokens);
  return html`<div class="grid charts">
      <section class="sheet">${paymentsChart(days, tokenDays)}</section>
      ${most.map((rows, index) => html`<section class="sheet">${moneyChart(days, rows, index)}</section>`)}
      <section class="sheet">${openChart(openCalls)}</section>
    </div>
    ${
      tokenDays.length > 0 &&
      html`<details class="sheet" data-rows>
        <summary>The numbers of these charts</summary>
        ${table('Money by day and token, days of UTC', columns, tokenDays)}
      </details>`
    }`;
}

function sumOf(rows: readonly TokenDay[]): number {
  return rows.reduce((sum, { payments }) => sum + payments, 0);
}

function paymentsChart(days: readonly string[], rows: readonly TokenDay[]): Html {
  const bars = days.map((day) => {
    const own = rows.filter((row) => row.day === day);
    const [paid, dead] = [sumOf(own), own.reduce((sum, { deadLettered }) => sum + deadLettered, 0)];
    const text = `${dayText(day)}: ${withThousands(paid)} paid${dead > 0 ? `, dead letters: ${withThousands(dead)}` : ''}`;
    return { value: BigInt(paid), text };
  });
  return barChart({ id: 'payments', title: 'Payments a day', bars, scale: count, ...describe(days, bars) });
}

function moneyChart(days: readonly string[], rows: readonly TokenDay[], index: number): Html {
  const [token] = rows;
  if (!token) return html``;
  const bars = days.map((day) => {
    const value = BigInt(rows.find((row) => row.day === day)?.amount ?? 0);
    return { value, text: `${dayText(day)}: ${amountText(value, token)}` };
  });
  return barChart({
    id: `money-${index}`,
    title: `${token.symbol} a day on ${networkText(token.network)}`,
    bars,
    scale: (value) => tokenAmount(value, token),
    ...describe(days, bars),
  });
}

/** For the pointer and for screen readers: the highest bar, and the days at the ends. */
function describe(days: readonly string[], bars: readonly Bar[]): Pick<BarChart, 'description' | 'below'> {
  const highest = bars.reduce((one, other) => (other.value > one.value ? other : one));
  return {
    description: `The highest bar is ${highest.text}. All numbers are in the table below the charts.`,
    below: [utcDay(days.at(0) ?? ''), utcDay(days.at(-1) ?? '')],
  };
}

function amountText(atoms: bigint, { decimals, symbol }: TokenDay): string {
  return `${decimalsOf(formatUnits(atoms, decimals), 0)} ${symbol}`;
}

/** A bar for each place of the outbox, beside its number, which leads to its calls. */
function openChart(openCalls: Charted['openCalls']): Html {
  const most = Math.max(1, ...openCalls.values());
  const all = [...openCalls.values()].reduce((sum, calls) => sum + calls, 0);
  return html`<h2>Calls open now: ${count(all)}</h2>
    <ul class="levels">
      ${outboxPlaces.map((place) => {
        const calls = openCalls.get(place) ?? 0;
        const width = Math.round((calls / most) * 100);
        return html`<li>
          <a href="${outboxAddress({ place })}">${placeNames[place]}</a>
          <svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
            <rect class="bar" width="${width}" height="10" />
          </svg>
          ${count(calls)}
        </li>`;
      })}
    </ul>`;
}

const numbered = (label: string, of: (row: TokenDay) => number): Column<TokenDay> => ({
  label,
  isNumber: true,
  cell: (row) => count(of(row)),
});

const columns: readonly Column<TokenDay>[] = [
  {
    label: 'Day',
    cell: ({ day }) => html`<a href="/console/payments?from=${day}&to=${day}">${utcDay(day)}</a>`,
  },
  { label: 'Network', cell: ({ network }) => networkName(network) },
  { label: 'Received', isNumber: true, cell: (row) => tokenAmount(BigInt(row.amount), row) },
  numbered('Payments', ({ payments }) => payments),
  numbered('Completed', ({ completed }) => completed),
  numbered('Dead letters', ({ deadLettered }) => deadLettered),
  numbered('Refunded', ({ refunded }) => refunded),
];
