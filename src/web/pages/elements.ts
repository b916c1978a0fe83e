import { withoutMarks } from '../../base/values/visible-text.ts';
import { creditText } from '../../base/values/price.ts';
import { html, type Html, type Shown } from '../../base/values/html.ts';
import type { Tone } from './notices.ts';
import type { PageHost, VisitOf } from './visit.ts';

/** A form that is sent to a path of the pages, with the token that proves where it was shown. */
export function form(visit: Pick<VisitOf<PageHost>, 'token'>, action: string, body: Shown): Html {
  return html`<form method="post" action="${action}">
    <input type="hidden" name="form" value="${visit.token}" />${body}
  </form>`;
}

/** Values that a form carries; those that are absent are left out. */
export function hidden(values: Readonly<Record<string, string | undefined>>): Html[] {
  return Object.entries(values).flatMap(([name, value]) =>
    value === undefined ? [] : [html`<input type="hidden" name="${name}" value="${value}" />`],
  );
}

/** A form that is one button. `about`: for screen readers, whose button it is; `confirm`: what it says before it is pressed again. */
export function buttonForm(
  visit: Pick<VisitOf<PageHost>, 'token'>,
  action: string,
  label: string,
  { look = '', about, confirm, values = {} }: ButtonOptions = {},
): Html {
  const unseen = about !== undefined && html`<span class="unseen"> ${about}</span>`;
  const asks = confirm !== undefined && html`data-confirm="${confirm}"`;
  return form(
    visit,
    action,
    html`${hidden(values)}<button class="${look}" ${asks}>${label}${unseen}</button>`,
  );
}

interface ButtonOptions {
  /** The classes of the button. */
  readonly look?: string;
  readonly about?: string;
  readonly confirm?: string;
  readonly values?: Parameters<typeof hidden>[0];
}

interface FieldOptions {
  readonly label: string;
  readonly name: string;
  readonly type?: 'text' | 'email' | 'password' | 'date';
  readonly value?: string | null | undefined;
  readonly hint?: Shown;
  /** What is wrong with the value that was sent. */
  readonly error?: string | undefined;
  readonly autocomplete?: string;
  readonly inputMode?: 'decimal' | 'numeric';
  readonly maxLength?: number;
  readonly minLength?: number;
  readonly isOptional?: boolean;
  readonly hasFocus?: boolean;
  readonly min?: string;
}

/** A labelled input, with its hint and its mistake. */
export function field(options: FieldOptions): Html {
  const { label, name, type = 'text', value, hint, error, isOptional = false } = options;
  const notes = [hint !== undefined && `${name}-hint`, error !== undefined && `${name}-error`].filter(
    Boolean,
  );
  return html`<div class="field">
    <label for="${name}">${label}${isOptional && html` <span class="muted">optional</span>`}</label>
    <input
      id="${name}"
      name="${name}"
      type="${type}"
      value="${value ?? ''}"
      ${!isOptional && html`required`}
      ${options.hasFocus === true && html`autofocus`}
      ${attribute('autocomplete', options.autocomplete)}
      ${attribute('inputMode', options.inputMode)}
      ${attribute('maxLength', options.maxLength)}
      ${attribute('minLength', options.minLength)}
      ${attribute('min', options.min)}
      ${error !== undefined && html`aria-invalid="true"`}
      ${notes.length > 0 && html`aria-describedby="${notes.join(' ')}"`}
    />
    ${hint !== undefined && html`<p class="hint" id="${name}-hint">${hint}</p>`}
    ${error !== undefined && html`<p class="mistake" id="${name}-error">${error}</p>`}
  </div>`;
}

function attribute(key: string, text: string | number | undefined): Html | false | undefined {
  return text !== undefined && attributes[key]?.(text);
}

const attributes: Readonly<Record<string, (text: string | number) => Html>> = {
  autocomplete: (text) => html`autocomplete="${text}"`,
  inputMode: (text) => html`inputmode="${text}"`,
  maxLength: (text) => html`maxlength="${text}"`,
  minLength: (text) => html`minlength="${text}"`,
  min: (text) => html`min="${text}"`,
};

export function badge(text: string, tone: Tone = 'plain'): Html {
  return html`<span class="badge ${tone}">${text}</span>`;
}

/** What to do if there is nothing yet. */
export function empty(title: string, text: Shown, action?: Html): Html {
  return html`<div class="empty">
    <h2>${title}</h2>
    <p>${text}</p>
    ${action}
  </div>`;
}

export interface Column<T> {
  readonly label: string;
  readonly cell: (row: T) => Shown;
  /** For amounts and numbers: aligned at their ends. */
  readonly isNumber?: boolean;
  /** For a button: its label is for those alone who hear the table. */
  readonly isAction?: boolean;
}

/** A table with a caption; on a phone each row is a block with the labels next to the values. */
export function table<T>(caption: string, columns: readonly Column<T>[], rows: readonly T[]): Html {
  const classOf = ({ isNumber, isAction }: Column<T>): string =>
    isNumber === true || isAction === true ? 'number' : '';
  const head = ({ label, isAction }: Column<T>): Shown =>
    isAction === true ? html`<span class="unseen">${label}</span>` : label;
  const cell = (row: T) => (column: Column<T>) =>
    html`<td class="${classOf(column)}" data-label="${column.isAction === true ? '' : column.label}">
      <span>${column.cell(row)}</span>
    </td>`;
  return html`<table>
    <caption>
      ${caption}
    </caption>
    <thead>
      <tr>
        ${columns.map((column) => html`<th scope="col" class="${classOf(column)}">${head(column)}</th>`)}
      </tr>
    </thead>
    <tbody>
      ${rows.map(
        (row) =>
          html`<tr>
            ${columns.map(cell(row))}
          </tr>`,
      )}
    </tbody>
  </table>`;
}

/** What a part of a page says by name; what is absent is left out. */
export function factList(facts: readonly (readonly [name: Shown, value: Shown] | false | undefined)[]): Html {
  return html`<dl class="facts">
    ${facts.map(
      (fact) =>
        fact &&
        fact[1] !== undefined &&
        fact[1] !== false &&
        html`<dt>${fact[0]}</dt>
          <dd>${fact[1]}</dd>`,
    )}
  </dl>`;
}

interface AmountOptions {
  readonly hasSign?: boolean;
  /** After the point; see {@link digitsOf}. */
  readonly digits?: number;
}

/** Credit, exactly: amounts that are shown add up to the sums that are shown. */
export function amount(
  micros: bigint,
  currency: string,
  { hasSign = false, digits }: AmountOptions = {},
): Html {
  const exact = creditText(micros < 0n ? -micros : micros);
  const sign = micros < 0n ? '−' : hasSign && micros > 0n ? '+' : '';
  return html`<data class="amount" value="${micros < 0n ? '-' : ''}${exact}"
    >${sign}${decimalsOf(exact, digits)} <span class="unit">${currency}</span></data
  >`;
}

/** A decimal text with its thousands apart and at least so many digits after the point; nothing is rounded. */
export function decimalsOf(exact: string, digits = 2): string {
  const [whole = '0', rest = ''] = exact.split('.', 2);
  const fraction = rest.padEnd(digits, '0');
  return fraction === '' ? withThousands(BigInt(whole)) : `${withThousands(BigInt(whole))}.${fraction}`;
}

/** How many digits after the point all amounts of a column have, so that their points are below one another. */
export function digitsOf(exact: readonly string[], atLeast = 2): number {
  return exact.reduce((most, text) => Math.max(most, text.split('.', 2)[1]?.length ?? 0), atLeast);
}

/** The same for credit in micros. */
export function creditDigits(micros: readonly bigint[]): number {
  return digitsOf(micros.map((size) => creditText(size < 0n ? -size : size)));
}

/** A count with its thousands apart. */
export function count(number: number | bigint): Html {
  return html`<data class="amount" value="${number}">${withThousands(number)}</data>`;
}

export function withThousands(number: number | bigint): string {
  return String(number).replaceAll(/\B(?=(?:\d{3})+$)/g, ',');
}

const day = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeZone: 'UTC' });
const second = new Intl.DateTimeFormat('en-GB', { timeStyle: 'medium', timeZone: 'UTC' });
const minute = new Intl.DateTimeFormat('en-GB', { timeStyle: 'short', timeZone: 'UTC' });

/** A time in UTC, as the foot of each page says of all of them. `clock`: where seconds tell times apart. */
export function time(at: Date, clock = minute): Html {
  const iso = at.toISOString();
  return html`<time datetime="${iso}" title="${iso.replace('T', ' ').replace(/\.\d+Z$/, ' UTC')}"
    >${day.format(at)}, ${clock.format(at)}</time
  >`;
}

/** The same with its second. */
export function exactTime(at: Date): Html {
  return time(at, second);
}

/** From when to when: within a day the day is said once, and within a minute with what tells the ends apart. */
export function timeSpan(from: Date, to: Date): Html {
  if (day.format(from) !== day.format(to)) return html`${time(from)} up to ${time(to)}`;
  const clocks = [from, to].map((at) => at.toISOString().slice('2026-11-23T'.length, -1));
  const [begin = '', end = ''] = clocks;
  const chars = ['00:00', '00:00:00', '00:00:00.000'].map(({ length }) => length);
  const shown = chars.find((most) => begin.slice(0, most) !== end.slice(0, most));
  const clock = (at: Date, text: string): Html =>
    html`<time datetime="${at.toISOString()}">${text.slice(0, shown)}</time>`;
  return html`${day.format(from)}, ${clock(from, begin)} up to ${clock(to, end)}`;
}

/** A whole day of UTC, such as `2026-11-23`: it is the same everywhere. */
export function utcDay(isoDay: string): Html {
  return html`<time datetime="${isoDay}" title="${isoDay}, from 00:00 to 24:00 UTC"
    >${dayText(isoDay)}</time
  >`;
}

export function dayText(isoDay: string): string {
  return day.format(new Date(isoDay));
}

/** A long id by its ends; the whole one on hover, and with the button. */
export function shortId(id: string, what: string): Html {
  const shown = id.length > 16 ? `${id.slice(0, 8)}…${id.slice(-6)}` : id;
  return html`<span class="id"><code title="${id}">${shown}</code>${copyButton(id, what)}</span>`;
}

/** Shown by the module of the pages alone: without it there is nothing to press. `isNamed`: everybody reads what is copied. */
export function copyButton(text: string, what: string, isNamed = false): Html {
  return html`<button
    type="button"
    class="copy ${isNamed ? 'plain' : 'quiet'} small"
    data-copy="${text}"
    hidden
  >
    ${isNamed ? html`<span>Copy ${what}</span>` : html`<span>Copy</span><span class="unseen"> ${what}</span>`}
  </button>`;
}

/** A command, a program or a configuration, to be copied. */
export function snippet(text: string, what: string): Html {
  return html`<div class="snippet">
    <pre tabindex="0"><code>${text}</code></pre>
    ${copyButton(text, what)}
  </div>`;
}

/** A name that a person chose: its direction does not affect the text around it, and marks that turn text around are left out. */
export function personName(name: string): Html {
  return html`<bdi class="name">${withoutMarks(name)}</bdi>`;
}

/** A labelled choice of one value. `any`: the first entry, which chooses none. */
export function selectField({
  label,
  name,
  values,
  value,
  any,
  texts = {},
  isWide = false,
}: {
  readonly label: string;
  readonly name: string;
  readonly values: readonly string[];
  /** On a narrow screen it has a row for itself. */
  readonly isWide?: boolean;
  readonly value?: string | null | undefined;
  readonly any?: string;
  /** How values are shown, if it is not by their own words. */
  readonly texts?: Readonly<Record<string, string>>;
}): Html {
  return html`<div class="field ${isWide && 'wide'}">
    <label for="${name}">${label}</label>
    <select id="${name}" name="${name}">
      ${any !== undefined && html`<option value="">${any}</option>`}
      ${values.map((one) => html`<option value="${one}" ${one === value && html`selected`}>${texts[one] ?? one.replaceAll('_', ' ')}</option>`)}
    </select>
  </div>`;
}
