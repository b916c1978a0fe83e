import { withoutMarks } from '../../../base/values/visible-text.ts';
import { completionFilters, cursorBehind } from '../../../chat/http/generations.ts';
import { generationsQuery, type GenerationsQuery } from '../../../chat/http/schemas/generations.ts';
import { html, type Html, type Shown } from '../../../base/values/html.ts';
import { listUserApiKeys } from '../../../accounts/use-cases/user-api-keys.ts';
import type { ApiKey } from '../../../accounts/store/api-keys.ts';
import { listCompletions, type ListedCompletion } from '../../../chat/store/completions.ts';
import { pathWith } from '../own-path.ts';
import {
  amount,
  badge,
  type Column,
  creditDigits,
  empty,
  field,
  table,
  time,
  withThousands,
} from '../elements.ts';
import type { Pages } from '../serve.ts';
import type { SignedInVisit, View } from '../visit.ts';
import { endings, generationForm } from './generation.ts';
import { keyName, modelName } from './view.ts';

const requestsPath = '/usage/requests';
const shownRows = 50;

type Shows = Pick<GenerationsQuery, 'from' | 'to' | 'model' | 'key_id' | 'cursor'>;

/** A user's requests one by one, the newest first, as the API's `/v1/generations`. */
export function requestsPage(pages: Pages): void {
  pages.showForUsers(requestsPath, async (visit) => {
    // a form sends its empty fields as well
    const given = [...visit.query].filter(([name, value]) => name in names && value !== '');
    const { data } = generationsQuery.safeParse(Object.fromEntries(given));
    return data ? requestsView(visit, data) : refusedView(visit);
  });
}

const names = { from: true, to: true, model: true, key_id: true, cursor: true };

async function requestsView(visit: SignedInVisit, shows: Shows): Promise<View> {
  const { site, visitor } = visit;
  const context = site.chat();
  const before = shows.cursor === undefined ? undefined : Number(shows.cursor);
  const filters = completionFilters(visitor.accountId, shows);
  const { rows } = await listCompletions(context.pool, filters, before, shownRows);
  const keys = await listUserApiKeys(context, visitor);
  const next = cursorBehind(rows, shownRows);
  const { currency } = context.settings;
  const body = html`<p><a href="/usage">Usage</a></p>
    <div class="head">
      <h1>Requests</h1>
      <a class="button plain" href="${pathTo('/v1/generations.csv', { ...shows, cursor: undefined })}"
        >Download as CSV</a
      >
    </div>
    ${filterForm(shows, [...context.models.keys()], keys)}
    ${rows.length === 0 ? nothingView(shows) : html`<section class="sheet sums requests">${requestsTable(rows, currency)}</section>`}
    <p class="actions">
      ${shows.cursor !== undefined && html`<a class="button plain" href="${pathTo(requestsPath, { ...shows, cursor: undefined })}">The newest</a>`}
      ${next !== null && html`<a class="button plain" href="${pathTo(requestsPath, { ...shows, cursor: next })}">Older requests</a>`}
    </p>
    ${generationForm('')}`;
  return { kind: 'view', title: 'Requests', section: 'usage', body };
}

function pathTo(path: string, { from, to, model, key_id: keyId, cursor }: Shows): string {
  return pathWith(path, { from, to, model, key_id: keyId?.toString(), cursor });
}

function nothingView({ cursor, from, to, model, key_id: keyId }: Shows): Html {
  if (cursor !== undefined) return empty('There are no older requests', 'This was the last page.');
  return [from, to, model, keyId].some((value) => value !== undefined)
    ? empty('No such request', 'Choose other days, or another model or key.')
    : empty(
        'No requests yet',
        'Each request to a model is here a moment after it began, with its cost.',
        html`<a class="button" href="/try">Try a model</a>`,
      );
}

function requestsTable(rows: readonly ListedCompletion[], currency: string): Html {
  const digits = creditDigits(rows.flatMap(({ cost }) => (cost === null ? [] : BigInt(cost))));
  const columns: Column<ListedCompletion>[] = [
    {
      label: 'When',
      cell: ({ chat_id: id, at }) =>
        html`<a href="${pathWith('/usage/generation', { id })}">${time(new Date(at))}</a>`,
    },
    { label: 'Model', cell: ({ model }) => modelName(model) },
    { label: 'Key', cell: (row) => keyName(row, row.key_id) },
    { label: 'Outcome', cell: ({ status }) => badge(endings[status][0], endings[status][1]) },
    { label: 'Input', isNumber: true, cell: (row) => tokens(row.prompt_tokens) },
    { label: 'Output', isNumber: true, cell: (row) => tokens(row.completion_tokens) },
    {
      label: 'Cost',
      isNumber: true,
      cell: ({ cost }) => (cost === null ? '–' : amount(BigInt(cost), currency, { digits })),
    },
  ];
  return table('The newest first', columns, rows);
}

function tokens(number: number | null): string {
  return number === null ? '–' : withThousands(number);
}

function filterForm(shows: Shows, models: readonly string[], keys: readonly ApiKey[]): Html {
  const { model, key_id: keyId } = shows;
  // a model that is offered no longer, or a key that is stored no longer, stays chosen
  const shownModels = model === undefined || models.includes(model) ? models : [...models, model];
  const keyIds = [0, ...keys.map((key) => key.keyId)];
  const shownKeys = keyId === undefined || keyIds.includes(keyId) ? keyIds : [...keyIds, keyId];
  const labelOf = (id: number): Html | string => {
    const key = keys.find((one) => one.keyId === id);
    return key ? withoutMarks(key.name) : keyName(undefined, id);
  };
  return html`<form method="get" action="${requestsPath}" class="days">
    ${field({ label: 'First day', name: 'from', type: 'date', value: shows.from, isOptional: true })}
    ${field({ label: 'Last day', name: 'to', type: 'date', value: shows.to, isOptional: true })}
    <div class="field">
      <label for="model">Model</label
      ><select id="model" name="model">
        ${option('', 'all', model === undefined)}${shownModels.map((name) => option(name, name, name === model))}
      </select>
    </div>
    <div class="field">
      <label for="key_id">Key</label
      ><select id="key_id" name="key_id">
        ${option('', 'all', keyId === undefined)}${shownKeys.map((id) => option(id, labelOf(id), id === keyId))}
      </select>
    </div>
    <button class="plain">Show</button>
  </form>`;
}

function option(value: string | number, label: Shown, isChosen: boolean): Html {
  return html`<option value="${value}" ${isChosen && html`selected`}>${label}</option>`;
}

function refusedView(visit: SignedInVisit): View {
  const body = html`<p><a href="/usage">Usage</a></p>
    <h1>Requests</h1>
    <p class="notice bad" role="alert">
      The days are written as 2026-11-23, and a key by its number.
      <a href="${requestsPath}">Show all requests</a>
    </p>
    ${filterForm({}, [...visit.site.chat().models.keys()], [])}`;
  return { kind: 'view', title: 'Requests', section: 'usage', body, status: 422 };
}
