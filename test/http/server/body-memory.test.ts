import { describe, expect, test } from 'vitest';
import { createBodyMemory } from '../../../src/http/server/body-memory.ts';

const max = { arrivingBytes: 100, workingBytes: 100 };

/** A room whose time stands still until it is moved, and who was dropped from it. */
function create() {
  const clock = { nowMs: 1_000 };
  const room = createBodyMemory(max, () => clock.nowMs);
  const dropped: string[] = [];
  return { clock, dropped, enter: (name: string) => room.reserve(() => dropped.push(name)) };
}

describe('bodies that arrive', () => {
  test('take what has come of them, not what may come', () => {
    const { enter, dropped } = create();
    const places = ['a', 'b', 'c', 'd'].map((name) => enter(name));
    expect(places.map((place) => place.grow(25))).toEqual([true, true, true, true]);
    expect(dropped).toEqual([]);
  });

  test('go where they are too much, who took most for longest first', () => {
    const { enter, dropped, clock } = create();
    const [slow, small] = [enter('slow'), enter('small')];
    expect([slow.grow(90), small.grow(5)]).toEqual([true, true]);
    clock.nowMs += 5_000;
    const quick = enter('quick');
    expect(quick.grow(90)).toBe(true);
    expect(dropped).toEqual(['slow']);
    expect([slow.grow(1), slow.startWork(90), small.grow(1)]).toEqual([false, false, true]);
  });

  test('go themselves where they are the ones', () => {
    const { enter, dropped, clock } = create();
    const slow = enter('slow');
    expect(slow.grow(60)).toBe(true);
    clock.nowMs += 5_000;
    expect(enter('other').grow(30)).toBe(true);
    expect(slow.grow(20)).toBe(false);
    expect(dropped).toEqual(['slow']);
  });

  test('have room where they are alone', () => {
    const { enter } = create();
    const large = enter('large');
    expect([large.grow(500), large.startWork(4_000)]).toEqual([true, true]);
  });

  test('leave their room to others', () => {
    const { enter, dropped } = create();
    const gone = enter('gone');
    gone.grow(100);
    gone.release();
    expect(enter('next').grow(100)).toBe(true);
    expect(dropped).toEqual([]);
  });
});

describe('bodies that are worked on', () => {
  test('find room, or are refused; what others leave is free', () => {
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

  test('take no room any more where others arrive', () => {
    const { enter } = create();
    const one = enter('one');
    one.grow(100);
    one.startWork(100);
    expect(enter('two').grow(100)).toBe(true);
  });
});
