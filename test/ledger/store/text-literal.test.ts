import fc from 'fast-check';
import pg from 'pg';
import { expect, test } from 'vitest';
import { textLiteral } from '../../../src/ledger/store/text-literal.ts';

test('the literal of a text is the one that pg makes, character by character, whatever quotes and backslashes it has', () => {
  const text = fc.string({
    unit: fc.oneof(fc.constantFrom("'", '\\', '"', '\n'), fc.string({ maxLength: 3 })),
  });
  fc.assert(fc.property(text, (value) => textLiteral(value) === pg.escapeLiteral(value)));
  expect(textLiteral("it's")).toBe("'it''s'");
});
