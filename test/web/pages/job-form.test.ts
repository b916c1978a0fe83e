import { describe, expect, test } from 'vitest';
import { compileSchema } from '../../../src/base/values/job-input.ts';
import { indentedJson } from '../../../src/base/values/indented-json.ts';
import { visibleText } from '../../../src/base/values/visible-text.ts';
import { formMembers, type Member, nameOf } from '../../../src/web/pages/jobs/form-parts.ts';
import { mistakesOf, readMembers } from '../../../src/web/pages/jobs/form-values.ts';
import { nested, richSchema } from '../../support/jobs-site.ts';

function membersOf(schema: object): readonly Member[] {
  const members = formMembers(schema as Readonly<Record<string, unknown>>);
  if (!members) throw new Error('no form for this schema');
  return members;
}

function read(schema: object, typed: readonly (readonly [pointer: string, value: string])[]) {
  const fields = new URLSearchParams(
    typed.map(([pointer, value]): [string, string] => [nameOf(pointer), value]),
  );
  return readMembers(membersOf(schema), fields);
}

const kindsOf = (schema: object): Record<string, string> =>
  Object.fromEntries(membersOf(schema).map(({ key, part }) => [key, part.kind]));

const one = (value: unknown): object => ({ type: 'object', properties: { v: value } });

describe('the form of a schema', () => {
  test('has a control for every simple value, list and object, and takes JSON for the rest', () => {
    expect(kindsOf(richSchema)).toEqual({
      text: 'text',
      to: 'choice',
      formal: 'choice',
      copies: 'number',
      warmth: 'number',
      tags: 'list',
      styles: 'choices',
      address: 'group',
      more: 'json',
    });
  });

  test.each([
    ['a reference', { $ref: '#/$defs/a', $defs: { a: { type: 'string' } } }],
    ['several types', { type: ['string', 'null'] }],
    ['a list of objects', { type: 'array', items: { type: 'object' } }],
    ['a list of several kinds', { type: 'array', prefixItems: [{ type: 'string' }] }],
    ['an object whose members are not named', { type: 'object', additionalProperties: { type: 'string' } }],
    ['an object that other schemas decide about', { type: 'object', properties: { a: {} }, oneOf: [{}] }],
    ['bytes', { type: 'string', contentEncoding: 'base64' }],
    ['more values than a person looks through', { enum: Array.from({ length: 101 }, (_, n) => n) }],
    ['values that are no simple ones', { enum: [{ a: 1 }] }],
    ['nothing at all', true],
  ])('takes JSON for %s', (_, schema) => {
    expect(kindsOf(one(schema))).toEqual({ v: 'json' });
  });

  test.each([
    ['no object', { type: 'array' }],
    ['no members', { type: 'object', properties: {} }],
    ['a member that is needed and not described', { type: 'object', properties: { a: {} }, required: ['b'] }],
    [
      'more members than a form has',
      { type: 'object', properties: Object.fromEntries(Array.from({ length: 61 }, (_, n) => [`p${n}`, {}])) },
    ],
    [
      'more members in its objects than a form has',
      {
        type: 'object',
        properties: Object.fromEntries(
          Array.from({ length: 10 }, (_, n) => [
            `p${n}`,
            {
              type: 'object',
              properties: Object.fromEntries(Array.from({ length: 9 }, (_1, m) => [`q${m}`, {}])),
            },
          ]),
        ),
      },
    ],
  ])('is one text area where the schema has %s', (_, schema) => {
    expect(formMembers(schema as Readonly<Record<string, unknown>>)).toBeUndefined();
  });

  test('ends at a depth that people can fill in, however deep the schema is', () => {
    let members = membersOf(nested(5_000));
    let depth = 1;
    for (; members[0]?.part.kind === 'group'; depth++) members = members[0].part.members;
    expect([depth, members[0]?.part.kind]).toEqual([4, 'json']);
  });
});

describe('what was typed', () => {
  test('becomes the JSON that the job takes', () => {
    const { json, mistakes } = read(richSchema, [
      ['/text', 'one\r\n"two" \\ \u202e'],
      ['/to', '"fr"'],
      ['/formal', 'false'],
      ['/copies', ' 3 '],
      ['/warmth', '0,25'],
      ['/tags', ' a \r\n\r\nb'],
      ['/styles', '"plain"'],
      ['/styles', '"short"'],
      ['/address/city', 'Bonn'],
      ['/address/a~1b~0c d', '7'],
      ['/more', ' {"x": [1.50]} '],
    ]);
    expect(mistakes.of.size).toBe(0);
    expect(JSON.parse(json)).toEqual({
      text: 'one\n"two" \\ \u202e',
      to: 'fr',
      formal: false,
      copies: 3,
      warmth: 0.25,
      tags: ['a', 'b'],
      styles: ['short', 'plain'],
      address: { city: 'Bonn', 'a/b~c d': 7 },
      more: { x: [1.5] },
    });
    expect(compileSchema(richSchema).check(Buffer.from(json))).toEqual([]);
  });

  test('is left out where nothing was typed, and an object that is needed stays', () => {
    expect(read(richSchema, []).json).toBe('{"address":{}}');
  });

  test('keeps the digits of its numbers', () => {
    expect(read(one({ type: 'number' }), [['/v', '0.1000000000000000055511151231257827']]).json).toBe(
      '{"v":0.1000000000000000055511151231257827}',
    );
  });

  test.each([
    [{ type: 'number' }, '1e999'],
    [{ type: 'number' }, '0x10'],
    [{ type: 'number' }, 'NaN'],
    [{ type: 'number' }, '١٢'],
    [{ type: 'integer' }, '2.5'],
    [{ type: 'integer' }, '9007199254740993'],
    [{ type: 'array', items: { type: 'integer' } }, '1\ntwo'],
    [{ enum: ['a', 1] }, '"b"'],
    [{ enum: ['a', 1] }, 'a'],
    [{ anyOf: [{}] }, '{"a":'],
  ])('is reported at its control for %j with %s', (schema, typed) => {
    const { mistakes } = read(one(schema), [['/v', typed]]);
    expect([...mistakes.of.keys()]).toEqual(['in/v']);
  });

  test('cannot put members into the body that the schema does not name', () => {
    const schema = {
      type: 'object',
      properties: { ['__proto__']: { type: 'string' }, a: { type: 'string' } },
    };
    const parsed = JSON.parse('{"type":"object","properties":{"__proto__":{"type":"string"}}}') as object;
    expect(
      read(parsed, [
        ['/__proto__', 'x'],
        ['/other', 'y'],
      ]).json,
    ).toBe('{"__proto__":"x"}');
    expect(read({ ...schema, properties: { a: { type: 'string' } } }, [['/b', 'x']]).json).toBe('{}');
  });

  test('that the job refuses is a mistake of the control that it was typed into, or of the closest around it', () => {
    const { check } = compileSchema(richSchema);
    const body = { text: 'x', to: 'fr', tags: ['a', 2], address: {}, unknown: 1 };
    const { of, others } = mistakesOf(check(Buffer.from(JSON.stringify(body))), membersOf(richSchema));
    expect(Object.fromEntries(of)).toEqual({
      'in/text': 'It must not have fewer than 2 characters.',
      'in/tags': 'It must be string.',
      'in/address/city': 'This is needed.',
    });
    expect(others).toEqual(['the body must not have additional properties.']);
  });
});

test('a text shows the marks that would turn it around, and invisible ones', () => {
  expect(visibleText('a\u202eb\u2066c\u0007d\u200be\r\nf\tg')).toBe(
    String.raw`a\u{202e}b\u{2066}c\u{7}d\u{200b}e` + '\nf\tg',
  );
});

describe('JSON with a value a line', () => {
  test('keeps every digit and every escape', () => {
    const text = String.raw`{"a":[1e400,12345678901234567890,{}],"b\"}":"\u0041,[","c":[ ],"d":null}`;
    expect(indentedJson(text, 1_000)).toBe(String.raw`{
  "a": [
    1e400,
    12345678901234567890,
    {}
  ],
  "b\"}": "\u0041,[",
  "c": [],
  "d": null
}`);
  });

  test('ends at its length, also if it is deeper than any', () => {
    const deep = '['.repeat(100_000) + ']'.repeat(100_000);
    expect(indentedJson(deep, 5_000).length).toBeLessThanOrEqual(5_000);
    expect(indentedJson(`"${'x'.repeat(1_000_000)}"`, 5_000)).toHaveLength(5_000);
  });
});
