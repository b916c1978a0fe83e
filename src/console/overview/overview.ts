import { html } from '../../domain/values/html.ts';
import { badge, empty, time } from '../../pages/parts.ts';
import type { View } from '../../pages/site.ts';
import { listFiringAlerts } from '../../store/alerts.ts';
import type { OperatorVisit, Section } from '../site.ts';

const path = '/console';

/** What needs a person, first of all. */
export const overviewSection: Section = {
  path,
  label: 'Overview',
  register(console) {
    console.show(path, overviewView);
  },
};

async function overviewView({ site, operator }: OperatorVisit): Promise<View> {
  const alerts = await listFiringAlerts(site.ledger.db);
  const body = html`<div class="head"><h1>Welcome, ${operator.name}</h1></div>
    ${
      alerts.length === 0
        ? empty('Nothing needs you', 'No condition of the alerts lasts at present.')
        : html`<section class="sheet">
            <h2>Needs a person</h2>
            <ul class="rows">
              ${alerts.map(
                ({ kind, subject, text, since }) =>
                  html`<li>
                    <span
                      >${badge(kind.replaceAll('_', ' '), 'bad')} ${text}
                      <span class="hint">${subject}</span></span
                    ><span class="hint">since ${time(since)}</span>
                  </li>`,
              )}
            </ul>
          </section>`
    }`;
  return { kind: 'view', title: 'Overview', section: path, body };
}
