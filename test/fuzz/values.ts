import type { Random } from '../chaos/random.ts';
import type { KnownValues } from './known-values.ts';

/** A JSON Schema, as far as the generator reads it. */
export type JsonSchema = Readonly<Record<string, unknown>>;

const maxDepth = 6;

/** What values are drawn with. */
export interface ValueSource {
  readonly components: Readonly<Record<string, JsonSchema>>;
  readonly known: KnownValues;
  readonly random: Random;
  /** How likely each inner value is to be a hostile one. */
  readonly wrongChance: number;
}

/** How often a value is one that the gateway answered under the same name. */
const knownChance = 0.5;

/**
 * Draws a value of a schema. Patterns are followed only if an example, a const, an enum or an earlier answer gives a value for
 * them, so a drawn value can be refused all the same.
 */
export function valueOf(schema: JsonSchema, source: ValueSource, name?: string, depth = 0): unknown {
  const { components, known, random, wrongChance } = source;
  if (depth > maxDepth || (depth > 0 && random.chance(wrongChance))) return hostileValue(random);
  const inner = (one: unknown, innerName?: string): unknown =>
    valueOf(isSchema(one) ? one : {}, source, innerName, depth + 1);
  if (name !== undefined && random.chance(knownChance)) {
    const value = known.draw(name, random);
    if (value !== undefined) return value;
  }
  const reference = schema['$ref'];
  if (typeof reference === 'string') return inner(components[reference.split('/').at(-1) ?? '']);
  if ('const' in schema) return schema['const'];
  if (Array.isArray(schema['enum'])) return random.pick(schema['enum'] as readonly unknown[]);
  const examples = schema['examples'];
  if (Array.isArray(examples) && examples.length > 0 && random.chance(0.7))
    return random.pick(examples as readonly unknown[]);
  for (const key of ['anyOf', 'oneOf'] as const) {
    const choices = schema[key];
    if (Array.isArray(choices) && choices.length > 0)
      return inner(random.pick(choices as readonly unknown[]));
  }
  const all = schema['allOf'];
  if (Array.isArray(all))
    return Object.assign({}, ...all.map((one) => Object(inner(one)) as object)) as object;
  const type: unknown = Array.isArray(schema['type'])
    ? random.pick(schema['type'] as unknown[])
    : schema['type'];
  switch (type) {
    case 'object':
      return objectOf(schema, inner, random);
    case 'array': {
      const most = Math.min(Number(schema['maxItems'] ?? 3), 3);
      const count = random.between(Math.min(Number(schema['minItems'] ?? 0), most), most);
      return Array.from({ length: count }, () => inner(schema['items']));
    }
    case 'integer':
    case 'number':
      return numberOf(schema, random, type);
    case 'boolean':
      return random.chance(0.5);
    case 'null':
      return null;
    case 'string':
      return stringOf(schema, random);
    default:
      return random.chance(0.5) ? stringOf(schema, random) : random.between(0, 10);
  }
}

function objectOf(
  schema: JsonSchema,
  inner: (one: unknown, name?: string) => unknown,
  random: Random,
): object {
  const properties = isSchema(schema['properties']) ? schema['properties'] : {};
  const required = Array.isArray(schema['required']) ? (schema['required'] as readonly unknown[]) : [];
  return Object.fromEntries(
    Object.entries(properties).flatMap(([name, property]) =>
      required.includes(name) || random.chance(0.4) ? [[name, inner(property, name)]] : [],
    ),
  );
}

function numberOf(schema: JsonSchema, random: Random, type: 'integer' | 'number'): number {
  const least = Number(schema['minimum'] ?? schema['exclusiveMinimum'] ?? 0);
  const most = Math.min(
    Number(schema['maximum'] ?? schema['exclusiveMaximum'] ?? least + 1_000),
    least + 1_000_000,
  );
  const value = random.pick([least, most, random.between(least, most)]);
  return type === 'integer' ? Math.floor(value) : value;
}

function stringOf(schema: JsonSchema, random: Random): string {
  const pattern = typeof schema['pattern'] === 'string' ? schema['pattern'] : '';
  if (/0x\[0-9a-fA?-?F?\]\{64\}/.test(pattern)) return random.hex32();
  if (/0x\[0-9a-fA?-?F?\]\{40\}/.test(pattern)) return random.hex32().slice(0, 42);
  if (schema['format'] === 'uuid') return '00000000-0000-4000-8000-000000000000';
  if (schema['format'] === 'date-time') return '2026-11-01T00:00:00Z';
  if (pattern.includes(String.raw`\d`)) return String(random.between(0, 1_000));
  return random.pick([
    'x',
    'devnet-small',
    'vendor/large',
    'user',
    'hello',
    '1',
    'ada@example.org',
    'sk-x',
    'a-name',
  ]);
}

/** A value that programs stumble over. */
export function hostileValue(random: Random): unknown {
  return random.pick(hostile)(random);
}

const hostile: readonly ((random: Random) => unknown)[] = [
  () => null,
  () => '',
  () => [],
  () => ({}),
  () => true,
  () => -1,
  () => 0.1,
  () => 1e308,
  () => Number.MAX_SAFE_INTEGER + 1,
  () => '9'.repeat(100),
  () => '-0',
  () => '\0',
  () => '\ud800',
  () => 'e\u0301'.repeat(2_000),
  () => '../../../etc/passwd',
  () => "' or 1=1; --",
  () => '${7*7}{{7*7}}',
  () => '%00%2e%2e%2f%ff',
  () => 'x'.repeat(20_000),
  () => '\r\nset-cookie: a=b',
  () => 'http://169.254.169.254/latest',
  () => ({ __proto__: null, constructor: 1, toString: 'x', length: 1e9 }),
  (random) => Array.from({ length: 1_000 }, () => random.between(0, 9)),
  (random) => nested(random.between(10, 500)),
];

function nested(depth: number): unknown {
  let value: unknown = 1;
  for (let at = 0; at < depth; at++) value = at % 2 === 0 ? [value] : { a: value };
  return value;
}

function isSchema(value: unknown): value is JsonSchema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
