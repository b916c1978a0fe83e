import fc from 'fast-check';
import { beforeEach, describe, expect, test } from 'vitest';
import {
  addressBudgetKey,
  type Budget,
  createBudget,
  payerBudgetKey,
} from '../../../src/base/runtime/budget.ts';

const minuteMs = 60_000;
/** The start of a minute; the tests count milliseconds from it. */
const startMs = 30_000_000 * minuteMs;

let nowMs = startMs;
const clock = () => nowMs;

beforeEach(() => {
  nowMs = startMs;
});

function chargeTimes(budget: Budget, key: string, times: number): void {
  for (let time = 0; time < times; time += 1) budget.charge([key]);
}

/** How many requests a key can make at this moment, at most `upTo`. */
function capacityOf(budget: Budget, key: string, upTo = 100): number {
  for (let capacity = 0; capacity < upTo; capacity += 1) {
    if (budget.waitSecs([key]) > 0) return capacity;
    budget.charge([key]);
  }
  return upTo;
}

function chargeOthers(budget: Budget, count: number): void {
  for (let other = 0; other < count; other += 1) budget.charge([`other ${other}`]);
}

describe('a budget', () => {
  test('is spent at exactly its limit', () => {
    const budget = createBudget(10, clock);
    chargeTimes(budget, 'a', 9);
    expect(budget.waitSecs(['a'])).toBe(0);
    budget.charge(['a']);
    expect(budget.waitSecs(['a'])).toBe(61);
  });

  test('of one request per minute allows one request', () => {
    expect(capacityOf(createBudget(1, clock), 'a')).toBe(1);
  });

  test('of 0 allows any number of requests', () => {
    const budget = createBudget(0, clock);
    expect(capacityOf(budget, 'a', 10_000)).toBe(10_000);
  });

  test('is not charged by reading its wait', () => {
    const budget = createBudget(1, clock);
    for (let time = 0; time < 10; time += 1) expect(budget.waitSecs(['a'])).toBe(0);
  });

  test('is separate for every key', () => {
    const budget = createBudget(1, clock);
    budget.charge(['a']);
    expect(budget.waitSecs(['a'])).toBe(61);
    expect(budget.waitSecs(['b'])).toBe(0);
    expect(budget.waitSecs([])).toBe(0);
  });

  test('of an address and a payer together is spent as soon as one of them is', () => {
    const budget = createBudget(2, clock);
    budget.charge(['ip', 'payer']);
    budget.charge(['other ip', 'payer']);
    expect(budget.waitSecs(['ip'])).toBe(0);
    expect(budget.waitSecs(['payer', 'ip'])).toBe(61);
    expect(budget.waitSecs(['ip', 'payer'])).toBe(61);
  });

  test('reports the shortest wait, in whole seconds, after which a request is allowed', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 50 }),
        fc.array(fc.integer({ min: 0, max: 20_000 }), { minLength: 1, maxLength: 200 }),
        (limit, pauses) => {
          nowMs = startMs;
          const budget = createBudget(limit, clock);
          for (const pauseMs of pauses) {
            nowMs += pauseMs;
            budget.charge(['a']);
          }
          const waitSecs = budget.waitSecs(['a']);
          if (waitSecs === 0) return;
          const allowedMs = nowMs + waitSecs * 1_000;
          nowMs = allowedMs - 2_000;
          expect(waitSecs <= 2 || budget.waitSecs(['a']) > 0).toBe(true);
          nowMs = allowedMs;
          expect(budget.waitSecs(['a'])).toBe(0);
        },
      ),
    );
  });
});

describe('the charge of a request', () => {
  test('counts from its first step on, once for each key, and refuses what is beyond the limit', () => {
    const budget = createBudget(2, clock);
    const charges = [budget.open(), budget.open(), budget.open()];
    for (const charge of charges) for (const key of ['a', 'a', 'payer']) charge.take(key);
    expect(charges.map((charge) => charge.waitSecs() > 0)).toEqual([false, false, true]);
  });

  test('counts a tenth if it is refused: a client that sends ten times as much as it may gets nothing until it slows down', () => {
    const budget = createBudget(60, clock);
    const allowed = (perSec: number): number => {
      let count = 0;
      for (let second = 0; second < 60; second++) {
        for (let at = 0; at < perSec; at++) {
          const charge = budget.open();
          charge.take('a');
          if (charge.waitSecs() === 0) count += 1;
        }
        nowMs += 1_000;
      }
      return count;
    };
    expect([allowed(10), allowed(10), allowed(10)]).toEqual([60, 0, 0]);
    allowed(2);
    expect(allowed(2)).toBeGreaterThan(30);
  });

  test('of a refused request makes the wait of a client that stops at most a minute and a half, after which it is served', () => {
    const budget = createBudget(10, clock);
    let waitSecs = 0;
    for (let count = 0; count < 10_000; count++) {
      const charge = budget.open();
      charge.take('a');
      waitSecs = charge.waitSecs();
    }
    expect(waitSecs).toBeLessThanOrEqual(91);
    nowMs += waitSecs * 1_000;
    expect(capacityOf(budget, 'a', 1)).toBe(1);
  });

  test('of a refused request is refunded where it repeats a payment that was started', () => {
    const budget = createBudget(1, clock);
    budget.charge(['a']);
    for (let count = 0; count < 100; count++) {
      const charge = budget.open();
      charge.take('a');
      charge.refund();
    }
    expect(budget.waitSecs(['a'])).toBe(61);
  });

  test('of a body counts as several requests from the first step on', () => {
    const budget = createBudget(10, clock);
    const charges = [budget.open(), budget.open(), budget.open()];
    for (const charge of charges) charge.take('a', 9);
    expect(charges.map((charge) => charge.waitSecs() > 0)).toEqual([false, false, true]);
  });

  test('is refunded once, in the minute that it was counted in', () => {
    const budget = createBudget(10, clock);
    const charge = budget.open();
    charge.take('a');
    chargeTimes(budget, 'a', 9);
    nowMs = startMs + minuteMs;
    expect(capacityOf(budget, 'a')).toBe(0);
    charge.refund();
    charge.refund();
    expect(capacityOf(budget, 'a')).toBe(1);
  });

  test('of a request that cost as much as several counts as several', () => {
    const budget = createBudget(10, clock);
    const charge = budget.open();
    charge.take('a');
    charge.chargeMore(8);
    expect(capacityOf(budget, 'a')).toBe(1);
  });

  test('of a payment that fails after it was started counts again', () => {
    const budget = createBudget(1, clock);
    const charge = budget.open();
    charge.take('a');
    charge.chargeAgain();
    charge.refund();
    expect(budget.waitSecs(['a'])).toBe(0);
    charge.chargeAgain();
    expect(budget.waitSecs(['a'])).toBe(61);
  });
});

describe('the minute of a budget', () => {
  test('still counts requests of the previous minute at the start of the next', () => {
    const budget = createBudget(10, clock);
    nowMs = startMs + minuteMs - 1;
    chargeTimes(budget, 'a', 10);
    nowMs = startMs + minuteMs;
    expect(budget.waitSecs(['a'])).toBe(1);
  });

  test.each([
    [6_000, 1],
    [15_000, 3],
    [30_000, 5],
    [54_000, 9],
    [60_000, 10],
  ])('slides: %d ms after a full minute %d of 10 requests are allowed', (afterMs, capacity) => {
    const budget = createBudget(10, clock);
    chargeTimes(budget, 'a', 10);
    nowMs = startMs + minuteMs + afterMs;
    expect(capacityOf(budget, 'a')).toBe(capacity);
  });

  test('counts both minutes together', () => {
    const budget = createBudget(10, clock);
    chargeTimes(budget, 'a', 10);
    nowMs = startMs + minuteMs + 30_000;
    chargeTimes(budget, 'a', 4);
    expect(capacityOf(budget, 'a')).toBe(1);
  });

  test('is forgotten after a minute without a request', () => {
    const budget = createBudget(10, clock);
    chargeTimes(budget, 'a', 1_000);
    nowMs = startMs + 2 * minuteMs;
    expect(capacityOf(budget, 'a')).toBe(10);
  });

  test('never allows more requests per minute than the limit', () => {
    const anyWaits = fc.array(fc.integer({ min: 0, max: 40_000 }), { maxLength: 100 });
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 5 }), anyWaits, (perMinute, waits) => {
        const budget = createBudget(perMinute, clock);
        const admitted = new Map<number, number>();
        nowMs = startMs;
        for (const wait of waits) {
          nowMs += wait;
          if (budget.waitSecs(['a']) > 0) continue;
          budget.charge(['a']);
          const minute = Math.floor(nowMs / minuteMs);
          admitted.set(minute, (admitted.get(minute) ?? 0) + 1);
        }
        expect(Math.max(0, ...admitted.values())).toBeLessThanOrEqual(perMinute);
      }),
    );
  });
});

describe('the memory of a budget', () => {
  test('keeps 100,000 keys', () => {
    const budget = createBudget(1, clock);
    budget.charge(['a']);
    chargeOthers(budget, 99_999);
    expect(budget.waitSecs(['a'])).toBe(61);
    expect(budget.waitSecs(['other 0'])).toBe(61);
  });

  test('drops the key that was charged least recently when it is full', () => {
    const budget = createBudget(1, clock);
    budget.charge(['a']);
    chargeOthers(budget, 100_000);
    expect(budget.waitSecs(['a'])).toBe(0);
    expect(budget.waitSecs(['other 0'])).toBe(61);
  });

  test('keeps a key that is charged repeatedly', () => {
    const budget = createBudget(2, clock);
    budget.charge(['a']);
    chargeOthers(budget, 60_000);
    budget.charge(['a']);
    for (let other = 60_000; other < 120_000; other += 1) budget.charge([`other ${other}`]);
    expect(budget.waitSecs(['a'])).toBe(61);
  });
});

describe('the budget key of an address', () => {
  test.each([
    ['an IPv4 address and itself in IPv6', '10.1.2.3', '::ffff:10.1.2.3'],
    ['the same in upper case', '10.1.2.3', '::FFFF:10.1.2.3'],
    ['two addresses of one /64', '2001:db8:1:2::1', '2001:db8:1:2:ffff:ffff:ffff:ffff'],
    ['one address in long and in short form', '2001:db8::1', '2001:0db8:0000:0000:0000:0000:0000:0001'],
    ['one address in both letter cases', '2001:DB8:A::1', '2001:db8:a::1'],
    ['one address with zeros left out in the middle and at the end', '2001:db8:0:0:1::', '2001:db8::1:0:0:0'],
    ['one address with and without its zone', 'fe80::1%eth0', 'fe80::1'],
    ['an address and its network', '2001:db8:1:2::', '2001:db8:1:2::1'],
  ])('is one for %s', (_, one, another) => {
    expect(addressBudgetKey(one)).toBe(addressBudgetKey(another));
  });

  test.each([
    ['two IPv4 addresses', '10.1.2.3', '10.1.2.4'],
    ['two of them in IPv6', '::ffff:10.1.2.3', '::ffff:10.1.2.4'],
    ['neighbouring /64s', '2001:db8:1:2::1', '2001:db8:1:3::1'],
    ['a /64 and one with other groups left out', '2001:db8:1::1', '2001:db8::1:1'],
    ['IPv4 and IPv6 on the same host', '127.0.0.1', '::1'],
  ])('differs for %s', (_, one, another) => {
    expect(addressBudgetKey(one)).not.toBe(addressBudgetKey(another));
  });

  test('is the same within a /64 and differs between them, in any spelling of the addresses', () => {
    const anyGroup = fc.oneof(fc.constant(0), fc.nat(0xffff));
    const anyNetwork = fc.tuple(fc.integer({ min: 0x2000, max: 0x3fff }), anyGroup, anyGroup, anyGroup);
    const anyHost = fc.tuple(anyGroup, anyGroup, anyGroup, anyGroup);
    fc.assert(
      fc.property(anyNetwork, anyNetwork, anyHost, anyHost, (network, otherNetwork, host, otherHost) => {
        const key = addressBudgetKey(long([...network, ...host]));
        expect(addressBudgetKey(short([...network, ...otherHost]))).toBe(key);
        const isSame = network.join(':') === otherNetwork.join(':');
        expect(addressBudgetKey(short([...otherNetwork, ...host])) === key).toBe(isSame);
      }),
    );
  });

  test('is never that of a payer', () => {
    const payer = `0x${'c3'.repeat(20)}`;
    expect(payerBudgetKey(payer)).not.toBe(addressBudgetKey(payer));
  });
});

/** All eight groups of four digits. */
function long(groups: readonly number[]): string {
  return groups.map((group) => group.toString(16).padStart(4, '0')).join(':');
}

/** The shortest form, as RFC 5952 has it. */
function short(groups: readonly number[]): string {
  return new URL(`http://[${long(groups)}]`).hostname.slice(1, -1);
}

test.each([
  ['::ffff:10.1.2.3', 'ip:10.1.2.3'],
  ['::ffff:a01:203', 'ip:10.1.2.3'],
  ['0:0:0:0:0:ffff:10.1.2.3', 'ip:10.1.2.3'],
  ['10.1.2.3:5000', 'ip:10.1.2.3'],
  ['[2001:DB8::1]:443', 'ip:2001:db8:0:0:0:0:0:0/64'],
  ['2001:0db8:0000:0000:1:2:3:4', 'ip:2001:db8:0:0:0:0:0:0/64'],
  ['fe80::1%eth0', 'ip:fe80:0:0:0:0:0:0:0/64'],
  ['::1', 'ip:0:0:0:0:0:0:0:0/64'],
])('however an address is written, %s is counted as %s', (address, key) => {
  expect(addressBudgetKey(address)).toBe(key);
});
