import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  afterLook,
  judgeListing,
  type ListingState,
  listingKey,
  type Look,
  noLook,
} from '../../../../src/base/values/discovery/listing.ts';

const keys = ['a', 'b', 'c'].map((name) => `https://shop.example/${name}`);
const graceSecs = 100;

const subset = fc.subarray(keys).map((list) => new Set(list));
const look: fc.Arbitrary<Look> = fc
  .record({ listed: subset, otherPayee: subset, isConclusive: fc.boolean() })
  .map(({ isConclusive, ...found }) =>
    isConclusive ? { ...found, kind: 'conclusive' } : { ...found, kind: 'unknown', problem: 'timeout' },
  );
const history = fc.array(fc.record({ look, sold: subset, waitSecs: fc.integer({ min: 1, max: 90 }) }), {
  maxLength: 12,
});
type History = typeof history extends fc.Arbitrary<infer H> ? H : never;

function play(steps: History): { state: ListingState; nowSecs: number; times: readonly number[] } {
  let [state, nowSecs] = [noLook, 1_000_000];
  const times: number[] = [];
  for (const step of steps) {
    nowSecs += step.waitSecs;
    times.push(nowSecs);
    state = afterLook(state, step.sold, step.look, nowSecs);
  }
  return { state, nowSecs, times };
}

const verdictOf = ({ state, nowSecs }: Pick<ReturnType<typeof play>, 'state' | 'nowSecs'>, key: string) =>
  judgeListing(
    state.listings.find((one) => one.key === key),
    graceSecs,
    nowSecs,
  );

test('a listing is gone exactly where it was listed and two conclusive looks since then did not find it, the first of them the grace ago', () => {
  fc.assert(
    fc.property(history, fc.integer({ min: 0, max: 300 }), (steps, laterSecs) => {
      const played = play(steps);
      const nowSecs = played.nowSecs + laterSecs;
      for (const key of keys) {
        const first = steps.findIndex((step) => step.look.listed.has(key));
        const last = steps.findLastIndex((step) => step.look.listed.has(key));
        const missedAt = played.times.filter(
          (_, index) => index > last && steps[index]?.look.kind === 'conclusive',
        );
        const isGone = first >= 0 && missedAt.length >= 2 && nowSecs - missedAt[0]! >= graceSecs;
        expect(verdictOf({ ...played, nowSecs }, key) === 'gone').toBe(isGone);
        expect(verdictOf({ ...played, nowSecs }, key) === 'never_listed').toBe(first < 0);
      }
    }),
  );
});

test('looks that are not conclusive make nothing missing, however many they are, and what they find is listed', () => {
  fc.assert(
    fc.property(history, (steps) => {
      const unknown: History = steps.map((step) => ({
        ...step,
        look: { ...step.look, kind: 'unknown', problem: 'timeout' },
      }));
      const played = play(unknown);
      expect(played.state.listings.filter(({ misses }) => misses > 0)).toEqual([]);
      expect(played.state.unknownSinceSecs).toBe(played.times[0]);
    }),
  );
});

test('a conclusive look ends the time without one', () => {
  const nothing = { listed: new Set<string>(), otherPayee: new Set<string>() };
  let state = afterLook(noLook, new Set(), { ...nothing, kind: 'unknown', problem: 'empty' }, 10);
  state = afterLook(state, new Set(), { ...nothing, kind: 'unknown', problem: 'status_503' }, 20);
  expect(state).toEqual({ listings: [], lookedAtSecs: 20, unknownSinceSecs: 10, problem: 'status_503' });
  state = afterLook(state, new Set(), { ...nothing, kind: 'conclusive' }, 30);
  expect(state).toEqual({ listings: [], lookedAtSecs: 30 });
});

test('a job that no gateway sells is forgotten after a week, and the state stays bounded', () => {
  const many = new Set(Array.from({ length: 3_000 }, (_, index) => `https://shop.example/${index}`));
  const all: Look = { kind: 'conclusive', listed: many, otherPayee: new Set() };
  const state = afterLook(noLook, many, all, 1_000);
  expect(state.listings).toHaveLength(2_000);
  const one = new Set(['https://shop.example/0']);
  const week = 7 * 86_400;
  const kept = afterLook(state, one, { ...all, listed: new Set() }, 1_000 + week);
  expect(kept.listings).toHaveLength(2_000);
  const forgotten = afterLook(state, one, { ...all, listed: new Set() }, 1_001 + week);
  expect(forgotten.listings.map(({ key }) => key)).toEqual([...one]);
});

test.each([
  ['https://Shop.Example:443/x402/jobs/1/0/', 'https://shop.example/x402/jobs/1/0'],
  ['https://shop.example/x402/jobs/1/0?quote=a#b', 'https://shop.example/x402/jobs/1/0'],
  ['http://shop.example/x402/jobs/1/0', 'http://shop.example/x402/jobs/1/0'],
  ['https://shop.example/x402/jobs/1/00', 'https://shop.example/x402/jobs/1/00'],
  ['mcp://shop.example/tool', undefined],
  ['shop.example/x402/jobs/1/0', undefined],
  [`https://shop.example/${'a'.repeat(2_048)}`, undefined],
])('%s is the listing %s', (address, key) => {
  expect(listingKey(address)).toBe(key);
});
