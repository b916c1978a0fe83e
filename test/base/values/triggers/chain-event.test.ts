import { encodeAbiParameters, keccak256, parseAbiItem, stringToBytes, toEventSelector } from 'viem/utils';
import { describe, expect, test } from 'vitest';
import { type ChainEvent, readChainEvent } from '../../../../src/base/values/triggers/chain-event.ts';
import { type ChainLog, nameLogs } from '../../../../src/base/values/triggers/chain-log.ts';
import {
  type ChainPosition,
  type Checkpoint,
  moveOn,
} from '../../../../src/base/values/triggers/chain-position.ts';
import type { Hex } from '../../../../src/base/values/primitives.ts';

function eventOf(text: string, filters: Readonly<Record<string, unknown>> = {}): ChainEvent {
  const answer = readChainEvent(text, filters);
  if (answer.kind !== 'event') throw new Error(answer.text);
  return answer.event;
}

const transfer = 'event Transfer(address indexed from, address indexed to, uint256 value)';
const one: Hex = `0x${'AB'.repeat(20)}`;
const word = (digits: string): Hex => `0x${digits.padStart(64, '0')}`;

const log = (change: Partial<ChainLog> = {}): ChainLog => ({
  address: `0x${'11'.repeat(20)}`,
  topics: [word('1')],
  data: word('2'),
  blockNumber: 5n,
  blockHash: word('a'),
  transaction: word('b'),
  logIndex: 3,
  ...change,
});
const idsOf = (...logs: ChainLog[]): string[] => nameLogs('eip155:1', logs).map(({ id }) => id);
const blockAt = (number: bigint): Checkpoint => ({
  number,
  hash: word(number.toString(16)),
  timestampSecs: Number(number),
});

describe('the event of a trigger', () => {
  test.each([
    ['event', 'Transfer(address)', {}, /must begin with "event "/],
    ['event', 'event X(uint256 a) anonymous;', {}, /is anonymous/],
    ['event', 'event X(struct Y y)', {}, /is not an event as Solidity declares it/],
    ['event', 'event X(uint8 a, uint8 a)', {}, /two arguments of one name/],
    ['event', 'event X(uint a, uint b indexed)', {}, /is not an event/],
    [
      'event',
      'event X(uint indexed a, uint indexed b, uint indexed c, uint indexed d)',
      {},
      /more than 3 indexed/,
    ],
    ['filters', transfer, { value: 1 }, /"value", which is not an indexed argument/],
    ['filters', transfer, { nobody: 1 }, /"nobody", which is not an indexed argument/],
    ['filters', transfer, { to: [] }, /1 to 100 values for "to"/],
    ['filters', transfer, { to: '0x12' }, /"to" that is not of the type address: "0x12"/],
    ['filters', 'event X(uint8 indexed n)', { n: 256 }, /"n" that is not of the type uint8: 256/],
    ['filters', 'event X(uint8 indexed n)', { n: '257' }, /"n" that is not of the type uint8: "257"/],
    ['filters', 'event X(uint8 indexed n)', { n: 1.5 }, /"n" that is not of the type uint8/],
    ['filters', 'event X(bytes4 indexed n)', { n: '0x1234' }, /"n" that is not of the type bytes4/],
  ])('whose %s is wrong is refused: %s %j', (at, text, filters, reason) => {
    expect(readChainEvent(text, filters)).toMatchObject({
      kind: 'mistake',
      at,
      text: expect.stringMatching(reason),
    });
  });

  test('is asked for by its selector and the values of its filters, as an ABI encodes them', () => {
    const selector = toEventSelector(transfer);
    const from = word(one.slice(2).toLowerCase());
    expect(eventOf(transfer).topics).toEqual([selector]);
    expect(eventOf(transfer, { from: one }).topics).toEqual([selector, [from]]);
    expect(eventOf(transfer, { to: [one, one] }).topics).toEqual([selector, null, [from, from]]);
    const others = 'event X(int8 indexed n, bool indexed b, string indexed s)';
    expect(eventOf(others, { n: [-1n, '0x7f'], b: true, s: 'hi' }).topics.slice(1)).toEqual([
      [`0x${'f'.repeat(64)}`, word('7f')],
      [word('1')],
      [keccak256(stringToBytes('hi'))],
    ]);
  });

  test('is decoded to JSON: integers as decimal text, addresses in lower case, unnamed arguments by place', () => {
    const text =
      'event Order(address indexed buyer, string indexed memo, uint8, (uint256 id, address token, int64[2] range)[] items, bytes data, bool ok)';
    const abi = [parseAbiItem(text)] as const;
    const topics = [toEventSelector(abi[0]), word('ab'.repeat(20)), keccak256(stringToBytes('x'))];
    const big = 2n ** 255n;
    const data = encodeAbiParameters(
      abi[0].inputs.filter((input) => !('indexed' in input && input.indexed)) as never,
      [7, [{ id: big, token: one.toLowerCase(), range: [-5n, 6n] }], '0xBEEF', true] as never,
    );
    expect(eventOf(text).decode({ topics, data })).toEqual({
      buyer: one.toLowerCase(),
      // an indexed text is in the log as its hash
      memo: keccak256(stringToBytes('x')),
      2: '7',
      items: [{ id: String(big), token: one.toLowerCase(), range: ['-5', '6'] }],
      data: '0xbeef',
      ok: true,
    });
  });

  test('is not found in a log of another event with the same selector, nor in one that a filter leaves out', () => {
    const selector = toEventSelector(transfer);
    const [from, to] = [word('1'), word('2')];
    const event = eventOf(transfer, { to: `0x${'2'.padStart(40, '0')}` });
    expect(event.decode({ topics: [selector, from, to], data: word('5') })).toMatchObject({ value: '5' });
    // as ERC-721 has it: the third argument is indexed too
    expect(event.decode({ topics: [selector, from, to, word('5')], data: '0x' })).toBeUndefined();
    expect(event.decode({ topics: [selector, from, to], data: '0x12' })).toBeUndefined();
    expect(event.decode({ topics: [selector, to, from], data: word('5') })).toBeUndefined();
    expect(event.decode({ topics: [word('9'), from, to], data: word('5') })).toBeUndefined();
    expect(event.decode({ topics: [], data: '0x' })).toBeUndefined();
  });
});

describe('the id of a log', () => {
  test('is the same in another block and at another place, and can stand in a header and in the ledger', () => {
    const [id = ''] = idsOf(log());
    expect(idsOf(log({ blockNumber: 9n, blockHash: word('c'), logIndex: 77 }))).toEqual([id]);
    expect(id).toMatch(/^[A-Za-z0-9][A-Za-z0-9_.:/+=-]{0,199}$/);
  });

  test('is another one for another transaction, contract, topic, content or network, and for each of equal logs', () => {
    const others = [
      { transaction: word('d') },
      { address: `0x${'22'.repeat(20)}` },
      { topics: [word('3')] },
      { data: word('3') },
    ];
    const ids = [
      ...idsOf(log(), log({ logIndex: 4 }), log({ logIndex: 5 })),
      ...others.flatMap((other) => idsOf(log(other as Partial<ChainLog>))),
    ];
    ids.push(...nameLogs('eip155:2', [log()]).map(({ id }) => id));
    expect(new Set(ids).size).toBe(ids.length);
  });

  test('does not depend on which blocks are read together', () => {
    const logs = [log(), log({ logIndex: 4 }), log({ transaction: word('d'), blockNumber: 6n })];
    expect(idsOf(...logs)).toEqual([...idsOf(...logs.slice(0, 2)), ...idsOf(...logs.slice(2))]);
  });
});

describe('the position of a trigger', () => {
  test('keeps the first checkpoint of all, so that no reorg reaches below what was kept', () => {
    let position: ChainPosition = [blockAt(500n)];
    for (let number = 501n; number <= 3_000n; number += 1n) position = moveOn(position, blockAt(number));
    expect(position.at(-1)).toEqual(blockAt(500n));
  });

  test('keeps few checkpoints, and for a reorg of any depth one that is at most four times as deep', () => {
    for (const step of [1n, 3n, 64n]) {
      let position: ChainPosition = [blockAt(0n)];
      let number = 0n;
      for (let moves = 0; moves < 5_000; moves += 1) {
        number += step;
        position = moveOn(position, blockAt(number));
        expect(position.length).toBeLessThan(48);
      }
      for (let depth = step; depth < number / 5n; depth *= 2n) {
        const found = position.find((checkpoint) => checkpoint.number <= number - depth);
        expect(number - (found?.number ?? 0n), `a reorg of ${depth} blocks`).toBeLessThanOrEqual(4n * depth);
      }
      expect(position.toSorted((a, b) => Number(b.number - a.number))).toEqual(position);
    }
  });
});
