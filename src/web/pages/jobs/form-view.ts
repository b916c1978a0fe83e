import { withoutMarks } from '../../../base/values/visible-text.ts';
import { html, type Html } from '../../../base/values/html.ts';
import { personName } from '../elements.ts';
import type { Member, Part, Simple } from './form-parts.ts';
import { type Mistakes, usualText, wholeName } from './form-values.ts';

/** What a form shows in its controls. */
export interface Typed {
  readonly fields: URLSearchParams;
  /** False at first: then the controls show the schema's defaults. */
  readonly isTyped: boolean;
  readonly mistakes: Mistakes;
}

/** A control holds no more characters; a form has room for several. */
const maxChars = 10_000;

/** The mistakes outside the controls, and the controls with mistakes. */
export function mistakeSummary(members: readonly Member[], { of, others }: Mistakes): Html | undefined {
  if (of.size === 0 && others.length === 0) return undefined;
  const links = labelled(members).flatMap(({ name, label }) =>
    of.has(name) ? [html`<li><a href="#${name}">${personName(label)}</a>: ${of.get(name)}</li>`] : [],
  );
  const whole = of.get(wholeName);
  return html`<div class="notice bad" role="alert">
    <p>The job does not take this yet. Nothing was charged.</p>
    <ul>
      ${links}${[...(whole === undefined ? [] : [whole]), ...others].map((text) => html`<li>${personName(text)}</li>`)}
    </ul>
  </div>`;
}

function labelled(members: readonly Member[]): readonly Member[] {
  return members.flatMap((member) => [
    member,
    ...(member.part.kind === 'group' ? labelled(member.part.members) : []),
  ]);
}

export function memberControls(members: readonly Member[], typed: Typed): Html {
  return html`${members.map((member) => memberControl(member, typed))}`;
}

function memberControl(member: Member, typed: Typed): Html {
  const { part, name } = member;
  const mistake = typed.mistakes.of.get(name);
  switch (part.kind) {
    case 'group':
      return html`<fieldset class="group" id="${name}" tabindex="-1">
        ${legend(member)}${hint(member)} ${memberControls(part.members, typed)}${mistakeOf(name, mistake)}
      </fieldset>`;
    case 'choices':
      return html`<fieldset class="field" id="${name}" tabindex="-1">
        ${legend(member)}${hint(member)}${boxes(member, part.values, typed)}${mistakeOf(name, mistake)}
      </fieldset>`;
    default:
      return html`<div class="field">
        <label for="${name}">${personName(member.label)}${!member.isRequired && optional}</label>
        ${control(member, part, typed)}${hint(member)}${mistakeOf(name, mistake)}
      </div>`;
  }
}

const optional = html` <span class="muted">optional</span>`;

function legend({ label, isRequired }: Member): Html {
  return html`<legend>${personName(label)}${!isRequired && optional}</legend>`;
}

function hint({ name, hints }: Member): Html | false {
  return hints.length > 0 && html`<p class="hint" id="${name}-hint">${personName(hints.join(' '))}</p>`;
}

function mistakeOf(name: string, mistake: string | undefined): Html | false {
  return mistake !== undefined && html`<p class="mistake" id="${name}-error">${personName(mistake)}</p>`;
}

function control(member: Member, part: Exclude<Part, { kind: 'group' | 'choices' }>, typed: Typed): Html {
  const { name, isRequired } = member;
  const text = typed.isTyped ? (typed.fields.get(name) ?? '') : usualText(member);
  const more = html`${isRequired && html`required`} ${describedBy(member, typed)}`;
  switch (part.kind) {
    case 'choice':
      return html`<select id="${name}" name="${name}" ${more}>
        ${part.values.length === 1 && isRequired ? '' : html`<option value="">${isRequired ? 'Choose…' : '—'}</option>`}
        ${part.values.map((value) => option(value, text))}
      </select>`;
    case 'number':
      return html`<input
        id="${name}"
        name="${name}"
        type="text"
        inputmode="${part.isWhole ? 'numeric' : 'decimal'}"
        value="${text}"
        maxlength="60"
        autocomplete="off"
        ${more}
      />`;
    case 'text':
      return part.isLong
        ? area(name, text, more, 4, part.maxLength)
        : html`<input
            id="${name}"
            name="${name}"
            type="text"
            value="${text}"
            maxlength="${Math.min(part.maxLength ?? maxChars, maxChars)}"
            autocomplete="off"
            ${more}
          />`;
    case 'list':
      return area(name, text, more, 4);
    case 'json':
      return area(name, text, more, 5, undefined, true);
  }
}

/** A text area for the whole body, as JSON or as text. */
export function wholeControl(text: string, mistake: string | undefined, isJson: boolean): Html {
  const more = html`${isJson && html`required`}
  ${mistake !== undefined && html`aria-invalid="true" aria-describedby="${wholeName}-error"`}`;
  return html`<div class="field">
    <label for="${wholeName}">${isJson ? 'Input as JSON' : 'Input'}</label>
    ${area(wholeName, text, more, 12, undefined, isJson)}${mistakeOf(wholeName, mistake)}
  </div>`;
}

/** The line break after the tag is not part of its text: one at the text's begin would be lost otherwise. */
function area(name: string, text: string, more: Html, rows: number, most = maxChars, isCode = false): Html {
  return html`<textarea
    id="${name}"
    name="${name}"
    rows="${rows}"
    maxlength="${Math.min(most, maxChars)}"
    class="${isCode ? 'code' : ''}"
    spellcheck="${isCode ? 'false' : 'true'}"
    ${more}
  >
${text}</textarea>`;
}

function describedBy({ name, hints }: Member, { mistakes }: Typed): Html {
  const isWrong = mistakes.of.has(name);
  const ids = [...(hints.length > 0 ? [`${name}-hint`] : []), ...(isWrong ? [`${name}-error`] : [])];
  return html`${isWrong && html`aria-invalid="true"`}
  ${ids.length > 0 && html`aria-describedby="${ids.join(' ')}"`}`;
}

function option(value: Simple, chosen: string): Html {
  const json = JSON.stringify(value);
  return html`<option value="${json}" ${json === chosen && html`selected`}>${simpleText(value)}</option>`;
}

function boxes({ name, usual }: Member, values: readonly Simple[], { fields, isTyped }: Typed): Html {
  const proposed: readonly unknown[] = Array.isArray(usual) ? usual : [];
  const chosen = new Set(isTyped ? fields.getAll(name) : proposed.map((value) => JSON.stringify(value)));
  return html`<div class="choices">
    ${values.map((value) => {
      const json = JSON.stringify(value);
      return html`<label
        ><input
          type="checkbox"
          name="${name}"
          value="${json}"
          ${chosen.has(json) && html`checked`}
        />${personName(simpleText(value))}</label
      >`;
    })}
  </div>`;
}

/** A value as people read it, without marks that turn it around. */
function simpleText(value: Simple): string {
  if (value === true) return 'Yes';
  if (value === false) return 'No';
  const text = value === null ? 'None' : String(value);
  return withoutMarks(text).trim() || '(empty)';
}
