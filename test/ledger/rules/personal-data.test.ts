import { expect, test } from 'vitest';
import { eventDescriptors, eventTypes } from '../../../src/ledger/rules/event.ts';
import { eventExamples } from './examples.ts';

const email = 'ada@example.com';

/** Each value in which one text was replaced by the e-mail address, with the place. */
function* withEmail(value: unknown, place: string): Generator<readonly [place: string, value: unknown]> {
  if (typeof value === 'string') yield [place, email];
  if (Array.isArray(value))
    for (const [index, item] of value.entries())
      for (const [at, changed] of withEmail(item, place)) yield [at, value.with(index, changed)];
  else if (typeof value === 'object' && value !== null)
    for (const [key, item] of Object.entries(value))
      for (const [at, changed] of withEmail(item, `${place}.${key}`))
        yield [at, { ...value, [key]: changed }];
}

test('no event can hold an e-mail address, but in names that the configuration gives to models and tokens', () => {
  const holders = eventTypes.flatMap((type) =>
    [...withEmail(eventExamples[type], type)].flatMap(([place, data]) =>
      eventDescriptors[type].schema.safeParse(data).success ? place : [],
    ),
  );
  const ofConfiguration = /\.(?:model|upstream|eip712_name|eip712_version|origin|new_origin)$/;
  expect([...new Set(holders)].filter((place) => !ofConfiguration.test(place))).toEqual([]);
});
