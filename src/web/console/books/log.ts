import { readCheckpoint } from '../../../base/values/log/checkpoint.ts';
import { html, type Html } from '../../../base/values/html.ts';
import { noticeOf } from '../../pages/document.ts';
import { badge, type Column, copyButton, count, empty, table, withThousands } from '../../pages/elements.ts';
import type { View } from '../../pages/visit.ts';
import {
  type AnchorState,
  latestHeads,
  listAnchorNames,
  readAnchorState,
  readUnsealed,
  type StoredHead,
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
      empty(
        'The ledger is not sealed',
        html`A later change of it cannot be noticed. An administrator turns sealing on by the table
          <code>[log]</code> of the configuration.`,
      ),
    );
  const { origin } = readCheckpoint(newest.note);
  const unsealed = await readUnsealed(pool, origin);
  const names = await listAnchorNames(pool, origin);
  const anchors = await Promise.all(
    names.map(async (name) => ({ name, ...(await readAnchorState(pool, origin, name)) })),
  );
  const published =
    anchors.length === 0
      ? 'No copy of it is kept outside this server yet: an administrator can set that up (an anchor).'
      : '';
  const sealed =
    unsealed.count === 0
      ? `All ${withThousands(newest.size)} events are sealed: a copy of the newest signed state shows any later change. ${published}`
      : `${withThousands(newest.size)} events are sealed; the newest ${withThousands(unsealed.count)} are not yet. ${published}`;
  const body = html`${noticeOf({ tone: anchors.length === 0 ? 'plain' : 'good', text: sealed })}
    ${anchors.length > 0 && html`<section class="sheet">${table('Anchors', anchorColumns, anchors)}</section>`}
    <details class="sheet">
      <summary>The newest signed state of ${origin}, as verifiers read it</summary>
      <pre class="code" tabindex="0">${newest.note}</pre>
      ${copyButton(newest.note, 'the signed state')}
    </details>
    <details class="sheet">
      <summary>The last signed states</summary>
      ${table('Size of the log and root of its tree', headColumns, await latestHeads(pool, origin, shownHeads))}
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

const headColumns: Column<StoredHead>[] = [
  { label: 'Events', cell: ({ size }) => count(size) },
  { label: 'Root', cell: ({ root }) => html`<code class="hash">${root.toString('base64')}</code>` },
];
