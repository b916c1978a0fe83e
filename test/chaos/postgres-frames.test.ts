import fc from 'fast-check';
import { expect, test } from 'vitest';
import { appendStatement, encodeCommand } from '../../src/ledger/store/append-batch.ts';
import { uncontendedStatement } from '../../src/ledger/store/uncontended.ts';
import { quoteIssued, refused } from '../support/events.ts';
import { appendedTypes, createFrameReader } from './postgres-frames.ts';

function query(text: string): Buffer {
  const bytes = Buffer.from(`${text}\0`, 'utf8');
  const head = Buffer.from('Q....', 'latin1');
  head.writeUInt32BE(bytes.length + 4, 1);
  return Buffer.concat([head, bytes]);
}
const startup = Buffer.from([0, 0, 0, 8, 0, 3, 0, 0]);

test('messages are whole however the bytes come', () => {
  const messages = [startup, query('select 1'), query('sélect "two"')];
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 9 })), (sizes) => {
      const read = createFrameReader('client');
      let rest: Buffer = Buffer.concat(messages);
      const frames = [];
      for (const size of [...sizes, rest.length]) {
        frames.push(...read(rest.subarray(0, size)));
        rest = rest.subarray(size);
      }
      expect(frames.map(({ bytes }) => bytes)).toEqual(messages);
    }),
  );
});

test("the ledger's own append statement is recognised, with the types of its events and nothing from a body", () => {
  const commands = [
    encodeCommand({ stream: 'request:a', events: [quoteIssued(), refused()] }),
    {
      ...encodeCommand({ stream: 'request:b', events: [] }),
      body: JSON.stringify({ base64: Buffer.from('{"type":"completed"}').toString('base64') }),
    },
  ];
  for (const statement of [
    appendStatement(1, crypto.randomUUID(), 1, 0, commands),
    uncontendedStatement(1, crypto.randomUUID(), 1, 0, commands) ?? '',
  ]) {
    const types = appendedTypes({ type: 'Q', bytes: query(statement) });
    expect(types).toEqual(new Set(['quote_issued', 'request_refused']));
  }
  expect(appendedTypes({ type: 'Q', bytes: query('select * from tollbook.call') })).toBeUndefined();
});
