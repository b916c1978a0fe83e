import { visibleText, withoutMarks } from '../../../base/values/visible-text.ts';
import { completionFilters, cursorBehind } from '../../../chat/http/generations.ts';
import { generationsQuery, type GenerationsQuery } from '../../../chat/http/schemas/generations.ts';
import { html, type Html, type Shown } from '../../../base/values/html.ts';
import { usedKeyId } from '../../../chat/http/schemas/usage.ts';
import { listUserApiKeys } from '../../../accounts/use-cases/user-api-keys.ts';
import type { ApiKey } from '../../../accounts/store/api-keys.ts';
import { listCompletions, type ListedCompletion } from '../../../chat/store/completions.ts';
import { pathWith } from '../own-path.ts';
import { amount, badge, type Column, creditDigits, empty, table, time, withThousands } from '../elements.ts';
import type { Pages } from '../serve.ts';
import type { ChatVisit, SignedInChatVisit, View } from '../visit.ts';
import { type DayMistakes, dayFields, dayMistakes } from './days.ts';
import { endings, generationForm } from './generation.ts';
import { keyName, modelName } from './view.ts';

const requestsPath = '/usage/requests';
const shownRows = 50;

type Shows = Pick<GenerationsQuery, 'from' | 'to' | 'model' | 'key_id' | 'cursor'>;

/** A user's requests one by one, the newest first, as the API's `/v1/generations`. */
export function requestsPage(pages: Pages<ChatVisit>): void {
  pages.showForUsers(requestsPath, async (visit) => {
    // a form sends its empty fields as well
    const given = [...visit.query].filter(([name, value]) => name in names && value !== '');
    const typed: Typed = Object.fromEntries(given);
    const { data } = generationsQuery.safeParse(typed);
    return data && !dayMistakes(visit.query) ? requestsView(visit, data) : refusedView(visit, typed);
  });
}

const names = { from: true, to: true, model: true, key_id: true, cursor: true };

async function requestsView(visit: SignedInChatVisit, shows: Shows): Promise<View> {
  const { site, visitor } = visit;
  const context = site.chat();
  const before = shows.cursor === undefined ? undefined : Number(shows.cursor);
  const filters = completionFilters(visitor.accountId, shows);
  const { rows } = await listCompletions(context.pool, filters, before, shownRows);
  const keys = await listUserApiKeys(context, visitor);
  const next = cursorBehind(rows, shownRows);
  const { currency } = context.settings;
  const isNew = rows.length === 0 && !hasFilters(shows) && shows.cursor === undefined;
  const usage = html`<p><a href="/usage">Usage</a></p>`;
  if (isNew) {
    const body = html`${usage}
      <h1>Requests</h1>
      ${nothingView(shows)}`;
    return { kind: 'view', title: 'Requests', section: 'usage', body };
  }
  const body = html`${usage}
    <div class="head">
      <h1>Requests</h1>
      <a class="button plain" href="${pathTo('/v1/generations.csv', { ...shows, cursor: undefined })}"
        >Download as CSV</a
      >
    </div>
    ${rows.length > 0 && sumText(rows, currency)}
    ${filterForm({ ...shows, key_id: shows.key_id?.toString() }, [...context.models.keys()], keys)}
    <details>
      <summary>Find a request by its id</summary>
      ${generationForm('')}
    </details>
    ${rows.length === 0 ? nothingView(shows) : html`<section class="sheet sums requests">${requestsTable(rows, currency)}</section>`}
    <p class="actions">
      ${shows.cursor !== undefined && html`<a class="button plain" href="${pathTo(requestsPath, { ...shows, cursor: undefined })}">The newest</a>`}
      ${next !== null && html`<a class="button plain" href="${pathTo(requestsPath, { ...shows, cursor: next })}">Older requests</a>`}
    </p>`;
  return { kind: 'view', title: 'Requests', section: 'usage', body };
}

function pathTo(path: string, { from, to, model, key_id: keyId, cursor }: Shows): string {
  return pathWith(path, { from, to, model, key_id: keyId?.toString(), cursor });
}

function hasFilters({ from, to, model, key_id: keyId }: Shows): boolean {
  return [from, to, model, keyId].some((value) => value !== undefined);
}

function nothingView(shows: Shows): Html {
  if (shows.cursor !== undefined) return empty('There are no older requests', 'This was the last page.');
  return hasFilters(shows)
    ? empty(
        'No requests for this choice',
        'Choose other days, or another model or key.',
        html`<a class="button" href="${requestsPath}">Show all requests</a>`,
      )
    : empty(
        'No requests yet',
        'Each request to a model is listed here with its cost, a moment after it began.',
        html`<a class="button" href="/try">Try a model</a>`,
      );
}

/** What the shown requests cost together. */
function sumText(rows: readonly ListedCompletion[], currency: string): Html {
  const cost = rows.reduce((sum, row) => sum + BigInt(row.cost ?? 0), 0n);
  const [failed, running] = (['failed', 'running'] as const).map(
    (wanted) => rows.filter(({ status }) => status === wanted).length,
  );
  return html`<p class="lead">
    ${rows.length === 1 ? '1 request' : `${rows.length} requests`} on this page, ${amount(cost, currency)};
    ${failed} failed, free of charge${running !== 0 && `; ${running} without a cost yet`}.
  </p>`;
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
    { label: 'Input tokens', isNumber: true, cell: (row) => tokens(row.prompt_tokens) },
    { label: 'Output tokens', isNumber: true, cell: (row) => tokens(row.completion_tokens) },
    {
      label: 'Cost',
      isNumber: true,
      cell: ({ cost, status }) =>
        cost === null && status !== 'failed'
          ? '–'
          : html`${amount(BigInt(cost ?? 0), currency, { digits })}${status === 'failed' && html` <span class="line hint">not charged</span>`}`,
    },
  ];
  return table('The newest first', columns, rows);
}

function tokens(number: number | null): string {
  return number === null ? '–' : withThousands(number);
}

/** What the form has in its fields: what is shown, or what was typed and cannot be. */
type Typed = Partial<Record<keyof typeof names, string | undefined>>;

type Mistakes = DayMistakes & { readonly key_id?: string };

function filterForm(
  typed: Typed,
  models: readonly string[],
  keys: readonly ApiKey[],
  mistakes: Mistakes = {},
): Html {
  const { model = '', key_id: keyId = '' } = typed;
  const keyIds = ['0', ...keys.map((key) => String(key.keyId))];
  const labelOf = (id: string): Html | string => {
    const key = keys.find((one) => String(one.keyId) === id);
    return key ? withoutMarks(key.name) : isKeyId(id) ? keyName(undefined, Number(id)) : visibleText(id);
  };
  return html`<form method="get" action="${requestsPath}" class="days">
    ${dayFields(typed, mistakes, true)}
    <div class="field">
      <label for="model">Model</label
      ><select id="model" name="model">
        ${option('', 'all', model === '')}${withChosen(models, model).map((name) => option(name, visibleText(name), name === model))}
      </select>
    </div>
    <div class="field">
      <label for="key_id">Key</label
      ><select
        id="key_id"
        name="key_id"
        ${mistakes.key_id !== undefined && html`aria-describedby="key_id-error"`}
      >
        ${option('', 'all', keyId === '')}${withChosen(keyIds, keyId).map((id) => option(id, labelOf(id), id === keyId))}
      </select>
      ${mistakes.key_id !== undefined && html`<p class="mistake" id="key_id-error">${mistakes.key_id}</p>`}
    </div>
    <button class="plain">Show</button>
  </form>`;
}

/** A model that is offered no longer, or a key that is stored no longer, stays chosen. */
function withChosen(values: readonly string[], chosen: string): readonly string[] {
  return chosen === '' || values.includes(chosen) ? values : [...values, chosen];
}

function option(value: string | number, label: Shown, isChosen: boolean): Html {
  return html`<option value="${value}" ${isChosen && html`selected`}>${label}</option>`;
}

/** With what was typed, and why nothing can be shown of it. */
async function refusedView(visit: SignedInChatVisit, typed: Typed): Promise<View> {
  const { site, visitor, query } = visit;
  const context = site.chat();
  const { key_id: keyId = '' } = typed;
  const mistakes: Mistakes = {
    ...dayMistakes(query),
    ...(!isKeyId(keyId) && {
      key_id: `“${visibleText(keyId.slice(0, 40))}” is not the number of a key. Choose one of yours.`,
    }),
  };
  const what =
    Object.keys(mistakes).length > 0 ? 'change what is marked below.' : 'choose what to show below.';
  const body = html`<p><a href="/usage">Usage</a></p>
    <h1>Requests</h1>
    <p class="notice bad" role="alert">
      No requests are shown: ${what} <a href="${requestsPath}">Show all requests</a>
    </p>
    ${filterForm(typed, [...context.models.keys()], await listUserApiKeys(context, visitor), mistakes)}`;
  return { kind: 'view', title: 'Requests', section: 'usage', body, status: 422 };
}

function isKeyId(text: string): boolean {
  return usedKeyId.safeParse(text === '' ? undefined : text).success;
}
