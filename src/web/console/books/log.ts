import { readCheckpoint } from '../../../base/values/log/checkpoint.ts';
import { html, type Html } from '../../../base/values/html.ts';
import { badge, type Column, copyButton, count, table, time, withThousands } from '../../pages/elements.ts';
import type { View } from '../../pages/visit.ts';
import {
  type AnchorState,
  latestHeads,
  listAnchorNames,
  readAnchorState,
  readUnsealed,
  type SealedHead,
} from '../../../audit/store/log.ts';
import type { Console, OperatorVisit } from '../visit.ts';
import { durationText } from '../words.ts';
import { booksView, logPath } from './books-view.ts';

type Anchored = AnchorState & { readonly name: string };

const shownHeads = 20;

/** The signed heads of the log, and how many events each anchor lacks. */
export function logPages(console: Console): void {
  console.show(logPath, logView);
}

async function logView({ site }: OperatorVisit): Promise<View> {
  const { pool } = site.ledger;
  const newest = await site.log?.newest();
  if (!newest)
    return booksView(
      site,
      logPath,
      'Log',
      html`<p class="notice warn">
        The ledger is not sealed: a later change of it cannot be noticed. Add the table <code>[log]</code> to
        the configuration.
      </p>`,
    );
  const { origin } = readCheckpoint(newest.note);
  const unsealed = await readUnsealed(pool, origin);
  const names = await listAnchorNames(pool, origin);
  const anchors = await Promise.all(
    names.map(async (name) => ({ name, ...(await readAnchorState(pool, origin, name)) })),
  );
  const published =
    anchors.length === 0
      ? 'Keep a copy of the checkpoint elsewhere: with it anyone notices a later change. No anchor receives it.'
      : '';
  const heads = await latestHeads(pool, origin, shownHeads);
  const last = heads[0] && html`, last at ${time(heads[0].at)}`;
  const size = withThousands(newest.size);
  const sealed =
    unsealed.count === 0
      ? html`All ${size} events are sealed${last}.`
      : html`${size} events are sealed${last}; the newest ${withThousands(unsealed.count)} are not yet.`;
  const body = html`<p class="notice ${anchors.length === 0 ? '' : 'good'}">${sealed} ${published}</p>
    ${anchors.length > 0 && html`<section class="sheet">${table('Anchors', anchorColumns, anchors)}</section>`}
    <details class="sheet">
      <summary>The newest checkpoint of ${origin}, as verifiers read it</summary>
      <pre class="code" tabindex="0">${newest.note}</pre>
      ${copyButton(newest.note, 'the checkpoint')}
    </details>
    <details class="sheet">
      <summary>The last checkpoints</summary>
      ${table('Size of the log and root of its tree', headColumns, heads)}
    </details>`;
  return booksView(site, logPath, 'Log', body);
}

const anchorColumns: Column<Anchored>[] = [
  { label: 'Anchor', cell: ({ name }) => html`<strong>${name}</strong>` },
  { label: 'Has the head of', cell: ({ size }) => html`${count(size)} events` },
  { label: 'Behind', cell: behindText },
];

function behindText({ behindEvents: events, behindMs: ms }: AnchorState): Html {
  if (events === 0) return badge('up to date', 'good');
  return html`${count(events)} events, for ${durationText(ms)}`;
}

const headColumns: Column<SealedHead>[] = [
  { label: 'Sealed at', cell: ({ at }) => time(at) },
  { label: 'Events', cell: ({ size }) => count(size) },
  { label: 'Root', cell: ({ root }) => html`<code class="hash">${root.toString('base64')}</code>` },
];
