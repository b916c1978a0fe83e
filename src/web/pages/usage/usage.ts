import { html, type Html } from '../../../base/values/html.ts';
import { listUserApiKeys } from '../../../accounts/use-cases/user-api-keys.ts';
import { listUsage } from '../../../chat/store/usage.ts';
import { noticeOf } from '../document.ts';
import { empty } from '../elements.ts';
import type { Pages } from '../serve.ts';
import type { ChatVisit, SignedInChatVisit, View } from '../visit.ts';
import { generationForm, generationPage } from './generation.ts';
import { dayFields, dayMistakes } from './days.ts';
import { readShown, type Shown } from './query.ts';
import { requestsPage } from './requests.ts';
import { usageBody, type Usage } from './view.ts';

/** More than the days that one page shows. */
const maxDayRows = 500;
/** The models or keys that are compared with one another: as many as a page of the API has. */
const maxGroups = 1_000;

/** What a user's requests used: by day, model and key, and each of them by its id. */
export function usagePages(pages: Pages<ChatVisit>): void {
  pages.showForUsers('/usage', async (visit) => {
    const nowMs = Date.now() + visit.site.chat().lane.state.clockOffsetMs;
    const shown = readShown(visit.query, nowMs);
    return shown ? usageView(visit, shown, nowMs) : refusedView(visit, todayAt(nowMs));
  });
  requestsPage(pages);
  generationPage(pages);
}

async function usageView(visit: SignedInChatVisit, shown: Shown, nowMs: number): Promise<View> {
  const context = visit.site.chat();
  const { from, to, model, keyId } = shown;
  const filters = { accountId: visit.visitor.accountId, from, to, model, keyId };
  // one after the other: a page takes one connection at a time from those that payments need as well
  const days = await listUsage(context.pool, filters, ['day'], undefined, maxDayRows);
  const isUsed = days.rows.length > 0;
  const groups = async (by: 'model' | 'key') =>
    isUsed ? (await listUsage(context.pool, filters, [by], undefined, maxGroups)).rows : [];
  const models = await groups('model');
  const keys = await groups('key');
  const usage: Usage = {
    days: days.rows,
    models,
    keys,
    areAllKeys: keys.length < maxGroups,
    currency: context.settings.currency,
    today: todayAt(nowMs),
  };
  const body = html`${usageBody(shown, usage)} ${!isUsed && (await whatNext(visit))} ${generationForm('')}`;
  return { kind: 'view', title: 'Usage', section: 'usage', body };
}

/** Where nothing was used in these days. */
async function whatNext({ site, visitor }: SignedInChatVisit) {
  const keys = (await listUserApiKeys(site.chat(), visitor)).filter(({ revokedAt }) => !revokedAt);
  return keys.length === 0
    ? empty(
        'Nothing was used in these days',
        'Make a key, with which a program can use the models. What it uses is shown here.',
        html`<a class="button" href="/keys/new">Make a key</a>`,
      )
    : empty(
        'Nothing was used in these days',
        'Choose other days, or ask a model with one of your keys: the first page has programs to start from.',
        html`<a class="button" href="/">Ask a model</a>`,
      );
}

function todayAt(nowMs: number): string {
  return new Date(nowMs).toISOString().slice(0, 10);
}

/** With what was typed, and why nothing can be shown of it. */
function refusedView({ query }: SignedInChatVisit, today: string): View {
  const mistakes = dayMistakes(query, today);
  const days = { from: query.get('from'), to: query.get('to') };
  const body = html`<div class="head"><h1>Usage</h1></div>
    ${noticeOf({ tone: 'bad', text: mistakes ? 'No usage is shown: change the days below.' : filterMistake })}
    <form method="get" action="/usage" class="sheet">
      ${dayFields(days, mistakes)} ${keptFields(query)}
      <p class="actions"><button>Show</button><a href="/usage">The last 30 days</a></p>
    </form>`;
  return { kind: 'view', title: 'Usage', section: 'usage', isNarrow: true, body, status: 422 };
}

const filterMistake =
  'No usage is shown: the address names a model or a key that cannot be read. Choose one on the page of usage.';

/** Filters of an address that can be read stay chosen when the days are corrected. */
function keptFields(query: URLSearchParams): Html {
  const kept = [...query].filter(([name]) => ['model', 'key_id', 'show'].includes(name));
  return html`${kept.map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}" />`)}`;
}
