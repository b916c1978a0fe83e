import { html, type Html } from '../domain/values/html.ts';

/** A labelled choice of one value. `any`: what stands for none, first of all. */
export function selectField({
  label,
  name,
  values,
  value,
  any,
}: {
  readonly label: string;
  readonly name: string;
  readonly values: readonly string[];
  readonly value?: string | null | undefined;
  readonly any?: string;
}): Html {
  return html`<div class="field">
    <label for="${name}">${label}</label>
    <select id="${name}" name="${name}">
      ${any !== undefined && html`<option value="">${any}</option>`}
      ${values.map((one) => html`<option value="${one}" ${one === value && html`selected`}>${one.replaceAll('_', ' ')}</option>`)}
    </select>
  </div>`;
}
