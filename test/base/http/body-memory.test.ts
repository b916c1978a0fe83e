import { describe, expect, test } from 'vitest';
import { createBodyMemory } from '../../../src/base/http/body-memory.ts';

const max = { arrivingBytes: 100, workingBytes: 100 };

/** A body memory with a manual clock, and the bodies that it dropped. */
function create() {
  const clock = { nowMs: 1_000 };
  const memory = createBodyMemory(max, () => clock.nowMs);
  const dropped: string[] = [];
  return {
    clock,
    dropped,
    enter: (name: string, client = name) => memory.reserve(client, () => dropped.push(name)),
  };
}

describe('arriving bodies', () => {
  test('take memory for the bytes that arrived, not for their declared length', () => {
    const { enter, dropped } = create();
    const places = ['a', 'b', 'c', 'd'].map((name) => enter(name));
    expect(places.map((place) => place.grow(25))).toEqual([true, true, true, true]);
    expect(dropped).toEqual([]);
  });

  test('are dropped when they exceed the memory, the largest product of size and age first', () => {
    const { enter, dropped, clock } = create();
    const [slow, small] = [enter('slow'), enter('small')];
    expect([slow.grow(90), small.grow(5)]).toEqual([true, true]);
    clock.nowMs += 5_000;
    const quick = enter('quick');
    expect(quick.grow(90)).toBe(true);
    expect(dropped).toEqual(['slow']);
    expect([slow.grow(1), slow.startWork(90), small.grow(1)]).toEqual([false, false, true]);
  });

  test('are dropped by their own growth if they are the largest and oldest', () => {
    const { enter, dropped, clock } = create();
    const slow = enter('slow');
    expect(slow.grow(60)).toBe(true);
    clock.nowMs += 5_000;
    expect(enter('other').grow(30)).toBe(true);
    expect(slow.grow(20)).toBe(false);
    expect(dropped).toEqual(['slow']);
  });

  test('have no limit while there is only one', () => {
    const { enter } = create();
    const large = enter('large');
    expect([large.grow(500), large.startWork(4_000)]).toEqual([true, true]);
  });

  test('free their memory when they are released', () => {
    const { enter, dropped } = create();
    const released = enter('released');
    released.grow(100);
    released.release();
    expect(enter('next').grow(100)).toBe(true);
    expect(dropped).toEqual([]);
  });
});

describe('bodies that are processed', () => {
  test('are refused if the memory does not suffice, and get the memory that others free', () => {
    const { enter } = create();
    const [one, two, three] = [enter('one'), enter('two'), enter('three')];
    expect([one.startWork(60), two.startWork(60)]).toEqual([true, false]);
    one.shrink(20);
    expect(three.startWork(80)).toBe(true);
    three.release();
    three.release();
    expect(enter('four').startWork(80)).toBe(true);
    expect(enter('five').startWork(1)).toBe(false);
  });

  test('take no memory of arriving bodies', () => {
    const { enter } = create();
    const one = enter('one');
    one.grow(100);
    one.startWork(100);
    expect(enter('two').grow(100)).toBe(true);
  });
});
