import { html, type Html } from '../../base/values/html.ts';

/** A labelled choice of one value. `any`: the first entry, which chooses none. */
export function selectField({
  label,
  name,
  values,
  value,
  any,
  texts = {},
}: {
  readonly label: string;
  readonly name: string;
  readonly values: readonly string[];
  readonly value?: string | null | undefined;
  readonly any?: string;
  /** How values are shown, where it is not by their own words. */
  readonly texts?: Readonly<Record<string, string>>;
}): Html {
  return html`<div class="field">
    <label for="${name}">${label}</label>
    <select id="${name}" name="${name}">
      ${any !== undefined && html`<option value="">${any}</option>`}
      ${values.map((one) => html`<option value="${one}" ${one === value && html`selected`}>${texts[one] ?? one.replaceAll('_', ' ')}</option>`)}
    </select>
  </div>`;
}
