import { Ajv2020 } from 'ajv/dist/2020.js';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { compileSchema } from '../../../src/base/values/job-input.ts';
import { cpuMs, maxPieceMs } from '../../support/main-thread.ts';

const { check } = compileSchema({ type: ['object', 'array', 'string', 'number', 'boolean', 'null'] });
const faultsOf = (text: string): readonly string[] => check(Buffer.from(text)).map((fault) => fault.text);

test.each([
  ['{"steps":1,"steps":9999}', 'twice in one object'],
  ['[{"a":{"b":1,"c":":","b":2}}]', 'within another value'],
  ['{"a":1,"\\u0061":2}', 'in another spelling'],
  ['{"__proto__":1,"__proto__":2}', 'with a special name'],
])(
  'a body with a repeated key is refused, since a runner may read another value than was checked: %s',
  (text) => {
    expect(faultsOf(text)).toEqual(['the body has an object with the same key twice']);
  },
);

test('a body with a byte order mark is refused: not every runner reads it', () => {
  expect(faultsOf('\uFEFF{}')).toEqual(['the body is not JSON in UTF-8 without a byte order mark']);
});

test('any JSON without repeated keys passes', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.constantFrom(undefined, 2), (value, indent) => {
      expect(faultsOf(JSON.stringify(value, null, indent))).toEqual([]);
    }),
  );
});

const list = {
  type: 'array',
  uniqueItems: true,
  items: { type: 'object', properties: { a: { type: 'string' } } },
};
const some = (count: number, item: (at: number) => unknown): Buffer =>
  Buffer.from(JSON.stringify(Array.from({ length: count }, (_, at) => item(at))));

test.each([
  ['a megabyte of wrong items', some(55_000, () => 1_000_000_000_000_000), '/0 must be object'],
  ['objects that all differ', some(14_000, (at) => ({ a: `x${at}` })), undefined],
  [
    'equal objects, written in another order',
    Buffer.from('[{"a":"1","b":[1]},{"b":[1.0],"a":"1"}]'),
    'the body must NOT have duplicate items',
  ],
  [
    '90,000 levels',
    Buffer.from('['.repeat(90_000) + ']'.repeat(90_000)),
    'the body has more than 60000 values, or more than 128 levels',
  ],
  [
    'a megabyte of empty lists',
    Buffer.from(`[${'[],'.repeat(330_000)}[]]`),
    'the body has more than 60000 values, or more than 128 levels',
  ],
])('a body of %s is checked without delay', (_, body, fault) => {
  const compiled = compileSchema(list);
  expect(compiled.check(body)[0]?.text).toBe(fault);
  expect(cpuMs(() => compiled.check(body))).toBeLessThan(maxPieceMs);
});

test('a schema compiles without the meta-schema being compiled again: a page of the console compiles those of all jobs', () => {
  const withMetaSchemaMs = cpuMs(() => new Ajv2020({ strictTypes: false }).compile({ ...list }));
  expect(cpuMs(() => compileSchema({ ...list }))).toBeLessThan(withMetaSchemaMs);
});

test('two schemas with one $id, also inside them, compile apart', () => {
  const schemas = ['string', 'number'].map((type) => ({
    $id: 'https://example.org/whole',
    $ref: 'part',
    $defs: { part: { $id: 'part', type } },
  }));
  const faults = schemas.map((schema) => compileSchema(schema).check(Buffer.from('"a"')));
  expect(faults.map((found) => found.map(({ text }) => text))).toEqual([[], ['the body must be number']]);
});

test.each([
  [{ type: 'text' }, 'schema is invalid'],
  [{ typo: 'string' }, 'unknown keyword: "typo"'],
  [{ $async: true, type: 'string' }, 'unknown keyword: "$async"'],
  [{ $schema: 'http://json-schema.org/draft-07/schema#' }, 'no schema with key or ref'],
])('%j is no schema of the draft, and does not compile', (schema, reason) => {
  expect(() => compileSchema(schema)).toThrow(reason);
});

test('the items of a list are compared as the library compares them', () => {
  const { check: own } = compileSchema({ uniqueItems: true });
  const library = new Ajv2020({ strictTypes: false }).compile({ uniqueItems: true });
  // the library takes members of these names for what every object inherits
  const inherited = /"(?:valueOf|toString|constructor)":/;
  const item = fc.jsonValue({ maxDepth: 2 }).filter((value) => !inherited.test(JSON.stringify(value)));
  fc.assert(
    fc.property(fc.array(item, { maxLength: 5 }), fc.boolean(), (items, repeats) => {
      const value = repeats ? [...items, ...structuredClone(items.slice(0, 1))] : items;
      const sent = JSON.stringify(value);
      expect(own(Buffer.from(sent)).length === 0).toBe(library(JSON.parse(sent)));
    }),
  );
});

test.each([
  [{ type: 'string', pattern: '^a$' }, true],
  [{ $ref: '#/$defs/a', $defs: { a: {} } }, true],
  [{ type: 'object', patternProperties: { '^a': {} } }, true],
  [{ type: 'string', maxLength: 3 }, false],
])('a schema whose checks may take long says so: %j', (schema, mayTakeLong) => {
  expect(compileSchema(schema).mayTakeLong).toBe(mayTakeLong);
});
