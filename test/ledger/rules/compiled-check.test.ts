import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { compileCheck, compileText } from '../../../src/ledger/rules/compiled-check.ts';
import { eventDescriptors, eventTypes } from '../../../src/ledger/rules/event.ts';
import { canonicalJson, type CanonicalValue } from '../../../src/base/values/canonical-json.ts';
import { eventExamples } from './examples.ts';
import { propertyRuns } from '../../support/property-runs.ts';

const junk = fc.oneof(
  fc.jsonValue(),
  fc.constantFrom(undefined, -1, -0, 1.5, 256, 2 ** 53, Number.NaN, '', '0', '01', 'withdrawn', '0x', [], {}),
  fc.stringMatching(/^0x[0-9a-fA-F]{38,66}$/),
  fc.stringMatching(/^[!-~]{1,40}\n?$/),
  fc.uuid(),
);
type Step = {
  readonly place: number;
  readonly value: unknown;
  readonly kind: 'set' | 'drop' | 'add' | 'edit';
};
const step: fc.Arbitrary<Step> = fc.record({
  place: fc.nat(1_000),
  value: junk,
  kind: fc.constantFrom('set', 'drop', 'add', 'edit'),
});

/** Every object and list within a value. */
function* containersOf(value: unknown): Generator<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null) return;
  yield value as Record<string, unknown>;
  for (const member of Object.values(value)) yield* containersOf(member);
}

/** A copy with one field changed, anywhere in it. */
function changed(data: unknown, { place, value, kind }: Step): unknown {
  const copy = structuredClone(data);
  const fields = [...containersOf(copy)].flatMap((within) =>
    Object.keys(within).map((key) => ({ within, key })),
  );
  const { within, key } = fields[place % Math.max(fields.length, 1)] ?? { within: undefined, key: '' };
  if (!within) return value;
  const old = within[key];
  if (kind === 'drop') delete within[key];
  else if (kind === 'add') within[typeof value === 'string' ? value : 'more'] = value;
  else if (kind === 'edit' && typeof old === 'string')
    within[key] = old.slice(0, place % (old.length + 1)) + (typeof value === 'string' ? value : '!');
  else within[key] = value;
  return copy;
}

describe('the compiled check of an event', () => {
  test.each(eventTypes)('%s accepts exactly what its schema accepts', (type) => {
    const schema: z.ZodObject = eventDescriptors[type].schema;
    const check = compileCheck(schema);
    expect(check(eventExamples[type])).toBe(true);
    fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 2 }), (steps) => {
        const data = steps.reduce(changed, eventExamples[type] as unknown);
        expect(check(data)).toBe(schema.safeParse(data).success);
      }),
      propertyRuns(20),
    );
    for (const data of [null, undefined, [], 'text', 1, [eventExamples[type]]])
      expect(check(data)).toBe(false);
  });

  test.each(eventTypes)(
    '%s is written as its canonical JSON, also with other values and without what may be left out',
    (type) => {
      const schema: z.ZodObject = eventDescriptors[type].schema;
      const write = compileText(schema);
      expect(write(eventExamples[type])).toBe(canonicalJson(eventExamples[type]));
      fc.assert(
        fc.property(fc.array(step, { minLength: 1, maxLength: 2 }), (steps) => {
          const data = steps.reduce(changed, eventExamples[type] as unknown);
          if (!schema.safeParse(data).success) return;
          expect(write(data as CanonicalValue)).toBe(canonicalJson(data as CanonicalValue));
        }),
        propertyRuns(20),
      );
    },
  );

  test.each([
    ['a refinement', z.string().refine(() => false)],
    ['a transformation', z.string().transform(Number)],
    ['a default', z.string().default('x')],
    ['a format without a pattern', z.url()],
    ['a fraction', z.number().min(0)],
    ['further keys', z.looseObject({})],
    ['a refinement deep inside', z.strictObject({ list: z.array(z.int().refine(() => false)) })],
  ])('refuses to be made for a schema with %s, which it could not repeat', (_, schema) => {
    expect(() => compileCheck(schema)).toThrow('compiled check');
  });
});
