import { html, type Html } from '../../../base/values/html.ts';
import { sha256 } from '../../../base/values/sha256.ts';
import { visibleText } from '../../../base/values/visible-text.ts';
import { badge } from '../../pages/elements.ts';
import type { View, Answer } from '../../pages/visit.ts';
import type { OperatorVisit, Section, Console, ConsoleSite } from '../visit.ts';
import { lasting } from '../words.ts';
import { type Figures, type LiveFigures, readFigures } from './overview-values.ts';
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
  const { needs, figures, charts } = await readLive(site);
  const body = html`<p class="notice warn" role="status" data-changed hidden>
      What needs a person has changed. <a href="${path}">Show it</a>
    </p>
    ${needsSheet(needs, operator.role === 'viewer' ? 'a person' : 'you')} ${figuresOf(figures)}
    <div data-charts="${drawingOf(charts)}">${charts}</div>
    <p class="hint" data-live-state>State at ${figure(figures, 'at')}</p>`;
  return { kind: 'view', title: 'Overview', section: path, scripts: ['overview.js'], body };
}

/** The first thing on the page: whether anything has to be done now, and where. */
function needsSheet(needs: readonly Need[], whom: string): Html {
  if (needs.length === 0)
    return html`<div class="notice good" data-needs="">
      <h1>Nothing needs you</h1>
      <p>No settlement is unknown, no refund or failed call waits for a decision, and no alert is active.</p>
    </div>`;
  return html`<section class="sheet" data-needs="${needsKey(needs)}">
    <h1>${needs.length === 1 ? '1 thing needs' : `${needs.length} things need`} ${whom}</h1>
    <ul class="rows">
      ${needs.map(
        ({ title, text, since, path: to }) =>
          html`<li>
            <span
              >${badge(title, 'bad')}
              ${to === undefined ? visibleText(text) : html`<a href="${to}">${visibleText(text)}</a>`}</span
            >${since && html`<span class="hint">for ${lasting(since)}</span>`}
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
  /** Another figure, after the hint. */
  readonly other?: string;
}

const tiles: readonly Tile[] = [
  {
    name: 'paid',
    label: 'Payments settled',
    hint: 'in all; refused, not charged:',
    other: 'refused',
  },
  { name: 'delivered', label: 'Calls completed', hint: 'in all' },
  { name: 'settling', label: 'Payments settling', hint: 'at present' },
  {
    name: 'settled_ms',
    label: 'To settle',
    hint: 'median of the newest 500; slowest 5%:',
    other: 'settled_p95_ms',
  },
  {
    name: 'delivered_ms',
    label: 'To deliver',
    hint: 'median of the newest 500; slowest 5%:',
    other: 'delivered_p95_ms',
  },
  { name: 'completions', label: 'Completions', hint: 'under way' },
];

function figuresOf(figures: Figures): Html {
  return html`<div class="grid four">
    ${tiles
      .filter(({ name }) => figures.has(name))
      .map(
        ({ name, label, hint, other }) =>
          html`<div class="sheet figure">
            <span class="label">${label}</span><span class="amount">${figure(figures, name)}</span>
            <span class="hint">${hint} ${other !== undefined && figure(figures, other)}</span>
          </div>`,
      )}
  </div>`;
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

/** By this a page knows whether the charts have changed: they are thousands of characters, and seldom do. */
function drawingOf(charts: Html | undefined): string {
  return sha256(String(charts ?? '')).slice(0, 18);
}

/** The figures as events. One reading serves all who watch, and a watcher holds no connection of the database. */
function liveEvents(console: Console, site: ConsoleSite): void {
  const broadcast = createBroadcast(() => readLive(site), {
    everyMs,
    isStopping: site.isStopping,
    // the pages show when their figures were read
    onFault: (err) => site.logger.warn({ err }, 'the figures of the console could not be read'),
  });
  console.showPresent('/console/live', (visit) => liveAnswer(visit, broadcast));
}

async function liveAnswer(visit: OperatorVisit, broadcast: Broadcast<Live>): Promise<Answer> {
  if (broadcast.followers >= mostWatchers)
    return { kind: 'data', status: 503, json: { error: 'too_many_waits' } };
  const left = new AbortController();
  visit.onClose(() => left.abort());
  async function* events(): AsyncGenerator<Buffer> {
    yield Buffer.from('retry: 2000\n\n');
    for await (const { figures, charts, needs } of broadcast.follow(left.signal)) {
      const told = {
        figures: Object.fromEntries(figures),
        charts: drawingOf(charts),
        needs: needsKey(needs),
      };
      yield Buffer.from(`data: ${JSON.stringify(told)}\n\n`);
    }
  }
  return { kind: 'events', body: await eventStream(events(), { keepAliveMs, isCutShort: () => false }) };
}
