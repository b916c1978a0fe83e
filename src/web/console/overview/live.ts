import { eventStream } from '../../../base/http/event-stream.ts';
import type { Answer } from '../../pages/site.ts';
import { type Broadcast, createBroadcast } from '../../../base/runtime/broadcast.ts';
import type { Console, ConsoleSite, OperatorVisit } from '../site.ts';
import { type LiveFigures, readFigures } from './overview-values.ts';
import { type Need, readNeeds } from './needs.ts';

const everyMs = 5_000;
const keepAliveMs = 15_000;
/** Of one process. */
const mostWatchers = 200;

export interface Live extends LiveFigures {
  readonly needs: readonly Need[];
}

export async function readLive(site: ConsoleSite): Promise<Live> {
  const needs = await readNeeds(site);
  return { ...(await readFigures(site)), needs };
}

/** What stays the same while the same needs a person, however many calls it is. */
export function needsKey(needs: readonly Need[]): string {
  return needs.map(({ title, path, text }) => `${title} ${path ?? text}`).join('\n');
}

/** The figures as events. One reading serves all who watch, and a watcher holds no connection of the database. */
export function liveEvents(console: Console, site: ConsoleSite): void {
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
