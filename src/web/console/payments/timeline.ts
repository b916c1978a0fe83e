import { formatUnits } from 'viem/utils';
import type { RecordedEvent } from '../../../ledger/rules/event.ts';
import { html, type Html, type Shown } from '../../../base/values/html.ts';
import { visibleText } from '../../../base/values/visible-text.ts';
import { shortId, time, factList } from '../../pages/elements.ts';
import type { PaymentHistory } from '../../../audit/use-cases/projections/payment-history.ts';
import { durationText } from '../words.ts';
import { explorerLink } from './explorer.ts';

type Entry = PaymentHistory['events'][number];

/** What seldom explains anything: folded where it stands. */
const lowValue: ReadonlySet<string> = new Set([
  'auth_passed',
  'payment_verified',
  'settlement_confirmed',
  'payer_mismatch',
]);

/** The events of a payment in order, with the time between them, its content, and its leaf, which the module checks. */
export function timeline(entries: readonly Entry[]): Html {
  const rows = entries.map((entry, index) => ({ entry, before: entries[index - 1] }));
  const groups: (typeof rows)[] = [];
  for (const row of rows) {
    const last = groups.at(-1);
    const isLow = lowValue.has(row.entry.event.type);
    if (isLow && last && lowValue.has(last[0]?.entry.event.type ?? '')) last.push(row);
    else groups.push([row]);
  }
  return html`<ol class="timeline">
    ${groups.map((group) => {
      const shown = group.map(({ entry, before }) => eventRow(entry, before));
      return lowValue.has(group[0]?.entry.event.type ?? '')
        ? html`<li>
            <details>
              <summary>${group.map(({ entry }) => labelOf(entry.event)).join(', ')}</summary>
              <ol class="timeline">
                ${shown}
              </ol>
            </details>
          </li>`
        : shown;
    })}
  </ol>`;
}

function labelOf({ type }: RecordedEvent): string {
  return type.replaceAll('_', ' ');
}

function eventRow({ event, leaf, proof }: Entry, before: Entry | undefined): Html {
  const gap = before && Date.parse(event.at) - Date.parse(before.event.at);
  const hashes = proof?.hashes.map((hash) => hash.toString('base64')).join(' ');
  return html`<li
    data-event="${event.seq}"
    data-hashes="${hashes ?? ''}"
    data-sealed="${proof ? 'yes' : 'no'}"
  >
    <p class="event">
      <strong>${labelOf(event)}</strong>
      <span class="hint"
        >${time(new Date(event.at))}${gap !== undefined && ` · ${durationText(gap)} later`}</span
      >
      <span class="badge plain" data-verdict>${proof ? 'in the log' : 'not sealed yet'}</span>
    </p>
    <details>
      <summary>Content, and leaf ${event.seq - 1}</summary>
      ${factList(entriesOf(event.data, ''))}
      <pre class="code" tabindex="0" data-leaf>${leaf.toString('utf8')}</pre>
    </details>
  </li>`;
}

/** What an event says, by name; parts of a part are named after it. */
function entriesOf(data: object, prefix: string): [string, Shown][] {
  const token = data as {
    readonly decimals?: unknown;
    readonly symbol?: string;
    readonly network?: unknown;
  };
  return Object.entries(data).flatMap(([name, value]: [string, unknown]): [string, Shown][] => {
    const label = prefix + name.replaceAll('_', ' ');
    if (value === undefined || value === null) return [];
    if (Array.isArray(value)) return [[label, `${value.length} of them`]];
    if (typeof value === 'object') return entriesOf(value, `${label}, `);
    const text = visibleText(`${value as string | number | boolean}`);
    if (name === 'amount' && typeof token.decimals === 'number' && /^\d+$/.test(text))
      return [[label, `${formatUnits(BigInt(text), token.decimals)} ${token.symbol ?? ''}`]];
    const at = timeIn(name, value);
    if (at) return [[label, time(at)]];
    if (!/^0x[0-9a-f]{40,}$/.test(text)) return [[label, text]];
    const link = name.includes('transaction') && explorerLink(token.network, text);
    return [[label, html`${shortId(text, label)} ${link}`]];
  });
}

/** A time of an event: in Unix seconds under the names of such times, or as RFC 3339. */
function timeIn(name: string, value: unknown): Date | undefined {
  const text = String(value);
  if (/^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(text)) return new Date(text);
  const secs = /_at$|^valid_(?:before|after)$|^expiry$/.test(name) && /^\d{9,11}$/.test(text);
  return secs ? new Date(Number(text) * 1_000) : undefined;
}
