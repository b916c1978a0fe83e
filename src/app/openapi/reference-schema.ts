import { html, type Html, type Shown } from '../../base/values/html.ts';
import { described } from './reference-text.ts';

/** A JSON schema, as far as the pages show it. */
export interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly description?: string;
  readonly examples?: readonly unknown[];
  readonly default?: unknown;
  readonly format?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly contentSchema?: Schema;
}

type Named = Readonly<Record<string, Schema>> | undefined;

const nameOf = (ref: string): string => ref.slice(ref.lastIndexOf('/') + 1);

/** The type of a value in words, with links to named schemas. */
export function typeText(schema: Schema): Shown {
  const { $ref, type, enum: values, anyOf, oneOf, items, format } = schema;
  if ($ref !== undefined) return html`<a href="#${nameOf($ref)}">${nameOf($ref)}</a>`;
  if ('const' in schema) return html`<code>${JSON.stringify(schema.const)}</code>`;
  if (values) return joined(values.map((value) => html`<code>${JSON.stringify(value)}</code>`));
  const variants = anyOf ?? oneOf;
  if (variants) return joined(variants.map((one) => typeText(one)));
  if (type === 'array') return html`list of ${items ? typeText(items) : 'any values'}`;
  const words = [type ?? 'any value'].flat().join(' or ');
  const { minimum, maximum = Number.MAX_SAFE_INTEGER } = schema;
  const range =
    minimum === undefined || maximum === Number.MAX_SAFE_INTEGER ? '' : ` from ${minimum} to ${maximum}`;
  return `${words}${format === undefined ? '' : ` (${format})`}${range}`;
}

function joined(parts: readonly Shown[]): Html {
  return html`${parts.map((part, index) => html`${index > 0 && ' or '}${part}`)}`;
}

/** The members of an object, of the objects in a list, or of each variant. */
export function membersList({
  properties,
  required = [],
  items,
  anyOf,
  oneOf,
  contentSchema,
}: Schema): Html | undefined {
  if (contentSchema)
    return html`<p class="type muted">JSON: ${typeText(contentSchema)}</p>
      ${membersList(contentSchema)}`;
  if (items) return membersList(items);
  const variants = anyOf ?? oneOf;
  if (variants) {
    const lists = variants.map((one) => membersList(one));
    if (lists.every((list) => list === undefined)) return undefined;
    return html`${variants.map(
      (one, index) =>
        html`<p class="type muted">
            ${index === 0 ? 'Either' : 'Or'} ${typeText(one)}${described(one.description)}
          </p>
          ${lists[index]}`,
    )}`;
  }
  if (!properties || Object.keys(properties).length === 0) return undefined;
  return html`<ul class="members">
    ${Object.entries(properties).map(
      ([name, schema]) =>
        html`<li>
          <code>${name}</code>
          <span class="muted">${typeText(schema)}${!required.includes(name) && ', optional'}</span
          >${described(schema.description)}${membersList(schema)}
        </li>`,
    )}
  </ul>`;
}

/** A value of the schema with what it requires; `…` for a text without an example. */
export function exampleOf(schema: Schema, named: Named): unknown {
  const { $ref, examples, enum: values, anyOf, oneOf, type, properties, required = [], items } = schema;
  if ($ref !== undefined) return exampleOf(named?.[nameOf($ref)] ?? {}, named);
  if (examples?.length) return examples[0];
  if (schema.default !== undefined) return schema.default;
  if ('const' in schema) return schema.const;
  if (values) return values[0];
  const [variant] = anyOf ?? oneOf ?? [];
  if (variant) return exampleOf(variant, named);
  switch ([type].flat()[0]) {
    case 'object':
      return Object.fromEntries(required.map((name) => [name, exampleOf(properties?.[name] ?? {}, named)]));
    case 'array':
      return items ? [exampleOf(items, named)] : [];
    case 'integer':
    case 'number':
      return 1;
    case 'boolean':
      return true;
    default:
      return '…';
  }
}
