import { html, type Html } from '../../../base/values/html.ts';
import { visibleText } from '../../../base/values/visible-text.ts';
import { badge, type Column, empty, table, time, utcDay } from '../../pages/parts.ts';
import type { View } from '../../pages/site.ts';
import type { TokenDay } from '../../../ledger/store/earnings-and-latency.ts';
import type { OperatorVisit, Section } from '../site.ts';
import { dayName, type Figures } from './overview-values.ts';
import { liveEvents, needsKey, readLive } from './live.ts';
import type { Need } from './needs.ts';

const path = '/console';

/** First the conditions that need a person, then the present activity. */
export const overviewSection: Section = {
  path,
  label: 'Overview',
  register(console, site) {
    console.show(path, overviewView);
    liveEvents(console, site);
  },
};

async function overviewView({ site, operator }: OperatorVisit): Promise<View> {
  const { needs, figures, tokenDays } = await readLive(site);
  const body = html`<div class="head"><h1>Welcome, ${operator.name}</h1></div>
    <p class="notice warn" role="status" data-changed hidden>
      What needs a person has changed. <a href="${path}">Show it</a>
    </p>
    ${needsSheet(needs)} ${figuresOf(figures)} ${tokenDays.length > 0 && daysSheet(tokenDays, figures)}
    <p class="hint" data-live-state>State at ${figure(figures, 'at')}</p>`;
  return { kind: 'view', title: 'Overview', section: path, scripts: ['overview.js'], body };
}

function needsSheet(needs: readonly Need[]): Html {
  if (needs.length === 0)
    return html`<div data-needs="">
      ${empty('Nothing needs you', 'No settlement is unknown, no call is a dead letter, and no alert lasts.')}
    </div>`;
  return html`<section class="sheet" data-needs="${needsKey(needs)}">
    <h2>Needs a person</h2>
    <ul class="rows">
      ${needs.map(
        ({ title, text, since, path: to }) =>
          html`<li>
            <span
              >${badge(title, 'bad')}
              ${to === undefined ? visibleText(text) : html`<a href="${to}">${visibleText(text)}</a>`}</span
            >${since && html`<span class="hint">since ${time(since)}</span>`}
          </li>`,
      )}
    </ul>
  </section>`;
}

/** A value that the module of this page keeps up to date. */
function figure(figures: Figures, name: string): Html {
  return html`<span data-figure="${name}">${figures.get(name) ?? ''}</span>`;
}

interface Tile {
  readonly name: string;
  readonly label: string;
  readonly hint: string;
  /** Of the slowest 5%. */
  readonly slow?: string;
}

const tiles: readonly Tile[] = [
  { name: 'paid', label: 'Paid', hint: 'payments settled, in all' },
  { name: 'refused', label: 'Refused', hint: 'requests, never charged' },
  { name: 'settling', label: 'Settling', hint: 'at present' },
  { name: 'delivered', label: 'Delivered', hint: 'calls completed, in all' },
  { name: 'settled_ms', label: 'To settle', hint: 'median of the newest 500', slow: 'settled_p95_ms' },
  { name: 'delivered_ms', label: 'To deliver', hint: 'median of the newest 500', slow: 'delivered_p95_ms' },
  { name: 'completions', label: 'Completions', hint: 'under way' },
];

function figuresOf(figures: Figures): Html {
  return html`<div class="grid four">
    ${tiles
      .filter(({ name }) => figures.has(name))
      .map(
        ({ name, label, hint, slow }) =>
          html`<section class="sheet">
            <h2>${label}</h2>
            <p class="amount">${figure(figures, name)}</p>
            <p class="hint">${hint}${slow !== undefined && html`; slowest 5%: ${figure(figures, slow)}`}</p>
          </section>`,
      )}
  </div>`;
}

function daysSheet(days: readonly TokenDay[], figures: Figures): Html {
  const columnOf = (label: string, name: Parameters<typeof dayName>[1]): Column<TokenDay> => ({
    label,
    isNumber: true,
    cell: (row) => html`<span class="amount">${figure(figures, dayName(row, name))}</span>`,
  });
  const columns: Column<TokenDay>[] = [
    {
      label: 'Day',
      cell: ({ day }) => html`<a href="/console/payments?from=${day}&to=${day}">${utcDay(day)}</a>`,
    },
    { label: 'Network', cell: ({ network }) => network },
    columnOf('Earned', 'amount'),
    columnOf('Payments', 'payments'),
    columnOf('Completed', 'completed'),
    columnOf('Dead letters', 'deadLettered'),
    columnOf('Refunded', 'refunded'),
  ];
  return html`<section class="sheet" data-rows>
    ${table('Money by day and token, days of UTC', columns, days)}
  </section>`;
}
