import { html } from '../../../base/values/html.ts';
import { listUserApiKeys } from '../../../accounts/use-cases/user-api-keys.ts';
import { listUsage } from '../../../chat/store/usage.ts';
import { empty, field } from '../elements.ts';
import type { Pages } from '../serve.ts';
import type { SignedInVisit, View } from '../visit.ts';
import { generationForm, generationPage } from './generation.ts';
import { readShown, type Shown, typedDay } from './query.ts';
import { requestsPage } from './requests.ts';
import { usageBody, type Usage } from './view.ts';

/** More than the days that one page shows. */
const maxDayRows = 500;
/** The models or keys that are compared with one another: as many as a page of the API has. */
const maxGroups = 1_000;

/** What a user's requests used: by day, model and key, and each of them by its id. */
export function usagePages(pages: Pages): void {
  pages.showForUsers('/usage', async (visit) => {
    const nowMs = Date.now() + visit.site.chat().lane.state.clockOffsetMs;
    const shown = readShown(visit.query, nowMs);
    return shown ? usageView(visit, shown, nowMs) : refusedView(visit);
  });
  requestsPage(pages);
  generationPage(pages);
}

async function usageView(visit: SignedInVisit, shown: Shown, nowMs: number): Promise<View> {
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
    today: new Date(nowMs).toISOString().slice(0, 10),
  };
  const body = html`${usageBody(shown, usage)} ${!isUsed && (await whatNext(visit))} ${generationForm('')}`;
  return { kind: 'view', title: 'Usage', section: 'usage', body };
}

/** Where nothing was used in these days. */
async function whatNext({ site, visitor }: SignedInVisit) {
  const keys = (await listUserApiKeys(site.chat(), visitor)).filter(({ revokedAt }) => !revokedAt);
  return keys.length === 0
    ? empty(
        'Nothing was used in these days',
        'A key lets a program use the models. What it uses is here a moment after each request.',
        html`<a class="button" href="/keys/new">Make a key</a>`,
      )
    : empty(
        'Nothing was used in these days',
        'Choose other days, or ask a model with one of your keys: the first page has programs to start from.',
        html`<a class="button" href="/">Ask a model</a>`,
      );
}

function refusedView({ query }: SignedInVisit): View {
  const mistake = 'Choose two days that exist, the first not after the last, and at most 400 days.';
  const body = html`<div class="head"><h1>Usage</h1></div>
    <form method="get" action="/usage" class="sheet">
      ${field({ label: 'First day', name: 'from', type: 'date', value: typedDay(query, 'from'), error: mistake })}
      ${field({ label: 'Last day', name: 'to', type: 'date', value: typedDay(query, 'to') })}
      <p class="actions"><button>Show</button><a href="/usage">The last 30 days</a></p>
    </form>`;
  return { kind: 'view', title: 'Usage', section: 'usage', isNarrow: true, body, status: 422 };
}
