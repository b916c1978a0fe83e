import { html, type Html } from '../../../base/values/html.ts';
import { visibleText } from '../../../base/values/visible-text.ts';
import { badge, type Column, empty, table, time, utcDay } from '../../pages/elements.ts';
import type { View, Answer } from '../../pages/visit.ts';
import type { TokenDay } from '../../../ledger/store/earnings-and-latency.ts';
import type { OperatorVisit, Section, Console, ConsoleSite } from '../visit.ts';
import { dayName, type Figures, type LiveFigures, readFigures } from './overview-values.ts';
import { type Need, readNeeds } from './needs.ts';
import { eventStream } from '../../../base/http/event-stream.ts';
import { type Broadcast, createBroadcast } from '../../../base/runtime/broadcast.ts';

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

const everyMs = 5_000;
const keepAliveMs = 15_000;
/** Of one process. */
const mostWatchers = 200;

interface Live extends LiveFigures {
  readonly needs: readonly Need[];
}

async function readLive(site: ConsoleSite): Promise<Live> {
  const needs = await readNeeds(site);
  return { ...(await readFigures(site)), needs };
}

/** What stays the same while the same needs a person, however many calls it is. */
function needsKey(needs: readonly Need[]): string {
  return needs.map(({ title, path: to, text }) => `${title} ${to ?? text}`).join('\n');
}

/** The figures as events. One reading serves all who watch, and a watcher holds no connection of the database. */
function liveEvents(console: Console, site: ConsoleSite): void {
  const broadcast = createBroadcast(() => readLive(site), {
    everyMs,
    isStopping: site.isStopping,
    // the pages show when their figures were read
    onFault: (err) => site.logger.warn({ err }, 'the figures of the console could not be read'),
  });
  console.show('/console/live', (visit) => liveAnswer(visit, broadcast));
}

async function liveAnswer(visit: OperatorVisit, broadcast: Broadcast<Live>): Promise<Answer> {
  if (broadcast.followers >= mostWatchers)
    return { kind: 'data', status: 503, json: { error: 'too_many_waits' } };
  const left = new AbortController();
  visit.onClose(() => left.abort());
  async function* events(): AsyncGenerator<Buffer> {
    yield Buffer.from('retry: 2000\n\n');
    for await (const { figures, needs } of broadcast.follow(left.signal)) {
      const told = { figures: Object.fromEntries(figures), needs: needsKey(needs) };
      yield Buffer.from(`data: ${JSON.stringify(told)}\n\n`);
    }
  }
  return { kind: 'events', body: await eventStream(events(), { keepAliveMs, isCutShort: () => false }) };
}
