import { html, type Html, type Shown } from '../../base/values/html.ts';
import { isCursor } from '../pages/filters.ts';
import { pathWith } from '../pages/own-path.ts';
import { type Column, table } from '../pages/elements.ts';

/** A sheet with a table, and a note below it. `none`: what the sheet says where there are no rows. */
export function tableSheet<T>(
  caption: string,
  columns: readonly Column<T>[],
  rows: readonly T[],
  { none, note }: { readonly none?: readonly [title: string, text: string]; readonly note?: Shown } = {},
): Html {
  return html`<section class="sheet" data-rows>
    ${
      none && rows.length === 0
        ? html`<h2>${none[0]}</h2>
            <p class="muted">${none[1]}</p>`
        : table(caption, columns, rows)
    }
    ${note}
  </section>`;
}

/** The field of a search, `q`: a key of the console leads to it. */
export function searchField(
  label: string,
  value: string | null,
  { maxLength, hint }: { readonly maxLength: number; readonly hint?: string },
): Html {
  return html`<div class="field wide">
    <label for="q">${label}</label>
    <input
      id="q"
      name="q"
      type="search"
      value="${value ?? ''}"
      maxlength="${maxLength}"
      data-search
      ${hint !== undefined && html`aria-describedby="q-hint"`}
      autocomplete="off"
    />
    ${hint !== undefined && html`<p class="hint" id="q-hint">${hint}</p>`}
  </div>`;
}

/** The place of a table's page in the query, such as `before=1234`; undefined if it is not one. */
export function cursorOf(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name) ?? '';
  return isCursor(text) ? Number(text) : undefined;
}

/** The rows of a page, and the place of the next one: one row more was read than is shown. */
export function pageRows<T>(
  rows: readonly T[],
  size: number,
  placeOf: (row: T) => number,
): { readonly shown: readonly T[]; readonly next: number | undefined } {
  const shown = rows.slice(0, size);
  const last = shown.at(-1);
  return { shown, next: last !== undefined && rows.length > size ? placeOf(last) : undefined };
}

/** The links to the first page of a table and to the next one, each by its label. */
export function pageLinks(
  path: string,
  cursor: 'before' | 'after',
  { isFirst, next }: { readonly isFirst: boolean; readonly next: number | undefined },
  [first, more]: readonly [first: string, more: string],
  filters: Readonly<Record<string, string | undefined>> = {},
): Html {
  const link = (label: string, values: typeof filters): Html =>
    html`<a class="button plain" href="${pathWith(path, values)}">${label}</a>`;
  return html`<p class="actions">
    ${!isFirst && link(first, filters)}
    ${next !== undefined && link(more, { ...filters, [cursor]: String(next) })}
  </p>`;
}
