import { readCheckpoint } from '../../../base/values/log/checkpoint.ts';
import { html, type Html } from '../../../base/values/html.ts';
import {
  badge,
  type Column,
  copyButton,
  count,
  exactTime,
  snippet,
  table,
  withThousands,
} from '../../pages/elements.ts';
import { noticeOf } from '../../pages/document.ts';
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
  if (!site.log) return booksView(site, logPath, 'Log', sealingGuide(new URL(site.publicUrl()).host));
  const newest = await site.log.newest();
  if (!newest)
    return booksView(
      site,
      logPath,
      'Log',
      noticeOf({
        tone: 'plain',
        text: 'The log has no checkpoint yet. Load this page again in some seconds.',
      }),
    );
  const { origin } = readCheckpoint(newest.note);
  const unsealed = await readUnsealed(pool, origin);
  const names = await listAnchorNames(pool, origin);
  const anchors = await Promise.all(
    names.map(async (name) => ({ name, ...(await readAnchorState(pool, origin, name)) })),
  );
  const heads = await latestHeads(pool, origin, shownHeads);
  const last = heads[0] && html`, last at ${exactTime(heads[0].at)}`;
  const size = withThousands(newest.size);
  const sealed =
    unsealed.count === 0
      ? html`All ${size} events are sealed${last}.`
      : html`${size} events are sealed${last}; the newest ${withThousands(unsealed.count)} are not yet.`;
  const body = html`<div class="notice ${anchors.length === 0 ? 'warn' : 'good'}">
      <p>
        ${sealed}
        ${
          anchors.length === 0
            ? html`Their checkpoint is on this machine alone, so a person who has the database and the key
                could change them unnoticed. Keep a copy on another machine, or have
                <code>[[log.anchors]]</code> in the configuration send each one elsewhere.`
            : 'A copy of the checkpoint on another machine shows every later change of them.'
        }
      </p>
      ${copyButton(newest.note, 'the checkpoint', true)}
    </div>
    ${anchors.length > 0 && html`<section class="sheet">${table('Anchors', anchorColumns, anchors)}</section>`}
    <details class="sheet">
      <summary>The newest checkpoint of ${origin}, as verifiers read it</summary>
      <pre class="code" tabindex="0">${newest.note}</pre>
    </details>
    <details class="sheet">
      <summary>The last checkpoints</summary>
      ${table('Size of the log and root of its tree', headColumns, heads)}
    </details>`;
  return booksView(site, logPath, 'Log', body);
}

/** How the ledger of a gateway is sealed. */
function sealingGuide(host: string): Html {
  const origin = `${host}/log`;
  return html`<p class="notice warn">
      The ledger is not sealed: a change by a person who can write to the database would stay unnoticed.
    </p>
    <section class="sheet">
      <h2>Seal it</h2>
      <p>
        This prints a secret seed, for the variable <code>LOG_KEY</code> of the gateway, and the public key
        for auditors:
      </p>
      ${snippet(`tollbook log key ${origin}`, 'the command')}
      <p>Add this to the configuration:</p>
      ${snippet(`[log]\norigin = "${origin}"\nkey = "env:LOG_KEY"`, 'the configuration')}
      <p class="hint">
        Then start the gateway again; to load the configuration again is not enough. It seals every event of
        the ledger, also those before, and signs a checkpoint each second.
      </p>
    </section>`;
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
  { label: 'Sealed at', cell: ({ at }) => exactTime(at) },
  { label: 'Events', cell: ({ size }) => count(size) },
  { label: 'Root', cell: ({ root }) => html`<code class="hash">${root.toString('base64')}</code>` },
];
