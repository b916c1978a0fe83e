import { describe, expect, test, vi } from 'vitest';
import { createSlots, type Slot } from '../../../../src/chat/peers/upstream/slots.ts';

const limits = { maxConcurrent: 4, maxConcurrentFree: 2, stalledReaderTimeoutMs: 1_000 };

/** A slot whose reader has been stalled for this long. */
function stalled(slot: Slot | undefined, forMs: number): { readonly ended: () => boolean } {
  const endStalled = vi.fn<() => void>(() => slot?.release());
  if (slot) slot.occupant = { stalledSinceMs: performance.now() - forMs, endStalled };
  return { ended: () => endStalled.mock.calls.length > 0 };
}

describe('the slots of an upstream', () => {
  test('are for paid models where those of free models are taken', () => {
    const slots = createSlots(limits);
    const free = [true, true, true].map((isFree) => slots.take(isFree));
    expect(free.map((slot) => slot !== undefined)).toEqual([true, true, false]);
    expect([slots.take(false), slots.take(false)]).not.toContain(undefined);
    expect(slots.take(false)).toBeUndefined();
    free[0]?.release();
    expect([slots.take(true), slots.take(false)].map((slot) => slot !== undefined)).toEqual([true, false]);
    expect(slots.taken).toBe(4);
  });

  test('are taken from readers that are stalled, the longest of a free model first, where another request needs one', () => {
    const slots = createSlots(limits);
    const paid = stalled(slots.take(false), 9_000);
    const earlier = stalled(slots.take(true), 3_000);
    const later = stalled(slots.take(true), 2_000);
    expect(slots.take(false)).toBeDefined();
    expect([paid.ended(), earlier.ended(), later.ended()]).toEqual([false, false, false]);
    expect(slots.take(false)).toBeDefined();
    expect([paid.ended(), earlier.ended(), later.ended()]).toEqual([false, true, false]);
    expect(slots.take(true)).toBeDefined();
    expect([paid.ended(), later.ended()]).toEqual([false, true]);
    expect(slots.take(false)).toBeDefined();
    expect(paid.ended()).toBe(true);
  });

  test('stay with a reader that pauses for less than the time-out, and a paid one with its reader before free requests', () => {
    const slots = createSlots(limits);
    for (const isFree of [true, true, false, false]) stalled(slots.take(isFree), 500);
    expect([slots.take(false), slots.take(true)]).toEqual([undefined, undefined]);
    const onlyPaid = createSlots({ ...limits, maxConcurrent: 1, maxConcurrentFree: 1 });
    const paid = stalled(onlyPaid.take(false), 5_000);
    expect([onlyPaid.take(true), paid.ended()]).toEqual([undefined, false]);
  });
});
