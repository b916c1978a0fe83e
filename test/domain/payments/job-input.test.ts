import fc from 'fast-check';
import { expect, test } from 'vitest';
import { compileSchema } from '../../../src/domain/payments/job-input.ts';

const check = compileSchema({ type: ['object', 'array', 'string', 'number', 'boolean', 'null'] });
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
