import type { RecordedEvent } from '../../../ledger/rules/event.ts';
import { html, type Html } from '../../../base/values/html.ts';
import { time, factList } from '../../pages/elements.ts';
import type { PaymentHistory } from '../../../audit/use-cases/projections/payment-history.ts';
import { durationText } from '../words.ts';
import { type FactContext, factsOf } from './event-facts.ts';

type Entry = PaymentHistory['events'][number];

/** What seldom explains anything: folded where it stands. */
const lowValue: ReadonlySet<string> = new Set([
  'auth_passed',
  'payment_verified',
  'settlement_confirmed',
  'payer_mismatch',
]);

/** The events of a payment in order, with the time between them, its content, and its leaf, which the module checks. */
export function timeline(entries: readonly Entry[], context: FactContext): Html {
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
      const shown = group.map(({ entry, before }) => eventRow(entry, before, context));
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

function eventRow({ event, leaf, proof }: Entry, before: Entry | undefined, context: FactContext): Html {
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
        >${time(new Date(event.at))}${gap !== undefined && gap > 0 && ` · ${durationText(gap)} later`}</span
      >
      <span class="badge plain" data-verdict>${proof ? 'in the log' : 'not sealed yet'}</span>
    </p>
    <details>
      <summary>What it says</summary>
      ${factList(factsOf(event.data, context))}
      <details>
        <summary>As the log has it: leaf ${event.seq - 1}</summary>
        <pre class="code" tabindex="0" data-leaf>${leaf.toString('utf8')}</pre>
      </details>
    </details>
  </li>`;
}
