import { html, type Html } from '../../../base/values/html.ts';
import { indentedJson } from '../../../base/values/indented-json.ts';
import { isObject } from '../../../base/values/json-object.ts';
import { visibleText } from '../../../base/values/visible-text.ts';
import { type Column, personName, table } from '../elements.ts';

const maxRows = 30;
const maxSchemaChars = 6_000;

type Schema = Readonly<Record<string, unknown>>;

interface Row {
  readonly name: string;
  readonly type: string;
  readonly about: string;
}

/** What a schema says of a value, for people: its properties, and all of it as JSON. */
export function schemaView(schema: Schema, caption: string): Html {
  const { description, properties } = schema;
  const entries = isObject(properties) ? Object.entries(properties) : [];
  const rows = entries.slice(0, maxRows).map(([name, value]) => rowOf(name, value));
  const columns: Column<Row>[] = [
    { label: 'Name', cell: ({ name }) => html`<code>${personName(name)}</code>` },
    { label: 'Type', cell: ({ type }) => personName(type) },
    { label: 'What it is', cell: ({ about }) => personName(about) },
  ];
  return html`${typeof description === 'string' && html`<p>${personName(description.slice(0, 500))}</p>`}
  ${rows.length > 0 && table(caption, columns, rows)}
  ${entries.length > maxRows && html`<p class="hint">The first ${maxRows} of ${entries.length}.</p>`}
  ${schemaDetails(schema, 'Its JSON Schema')}`;
}

/** A schema as JSON, as much of it as a page has room for. */
export function schemaDetails(schema: Schema, label: string): Html {
  const text = visibleText(indentedJson(textOf(schema), maxSchemaChars));
  return html`<details>
    <summary>${label}</summary>
    <pre class="code" tabindex="0"><code>${text}</code></pre>
    ${text.length >= maxSchemaChars && html`<p class="hint">Its begin. All of it is in the price of the API.</p>`}
  </details>`;
}

/** Undefined depth would end the program that writes it. */
function textOf(schema: Schema): string {
  try {
    return JSON.stringify(schema);
  } catch {
    return '"It is too deep to be shown."';
  }
}

function rowOf(name: string, value: unknown): Row {
  const { type, title, description } = isObject(value) ? value : {};
  const types = (Array.isArray(type) ? type : [type]).filter((one) => typeof one === 'string');
  const about = [title, description].filter((text) => typeof text === 'string').join(': ');
  return { name: name.slice(0, 100), type: types.join(' or ').slice(0, 60), about: about.slice(0, 300) };
}
