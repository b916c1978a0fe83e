import { describe, expect, test } from 'vitest';
import {
  abiFalse,
  abiTrue,
  asset,
  blockHash,
  expected,
  from,
  mined,
  nodeWith,
  nonce,
  noTransfer,
  noUse,
  other,
  otherNonce,
  paidAt,
  place,
  plain,
  sent,
  serve,
  topics,
  transaction,
  used,
  word,
} from './transaction-node.ts';

/** The transaction with one log that is changed, and the transaction itself with changes. */
const change = (log: object) => ({ place, logs: [{ ...mined(plain)[0], ...log }] });
const placed = (changed: object) => ({ place: { ...place, ...changed } });

/** The same with every hash and address in capitals. */
const shouted = (answer: object): object =>
  JSON.parse(
    JSON.stringify(answer).replaceAll(/0x[0-9a-f]{40,}/g, (hex) => `0x${hex.slice(2).toUpperCase()}`),
  ) as object;

describe('a settlement is', () => {
  const filler = { address: other, topics: [], data: '0x00' };
  const elsewhere = sent({ to: other });
  const second = used({ of: otherNonce });
  const stranger = [used({ by: other }), sent({ by: other })] as const;

  test.each([
    ['paid by the transfer after its authorization', plain, paidAt(6)],
    ['paid among logs of other contracts', [filler, used(), filler, sent(), filler], paidAt(8)],
    ['paid in a token that emits Transfer first', [sent(), used()], paidAt(5)],
    ['paid second of two authorizations', [...stranger, used(), sent()], paidAt(8)],
    ['paid first of two authorizations', [used(), sent(), ...stranger], paidAt(6)],
    ['paid once of two equal payments, as the first', [used(), sent(), second, sent()], paidAt(6)],
    ['paid once of two equal payments, as the second', [second, sent(), used(), sent()], paidAt(8)],
    [
      'paid once of two equal payments, Transfer first, as the first',
      [sent(), used(), sent(), second],
      paidAt(5),
    ],
    [
      'paid once of two equal payments, Transfer first, as the second',
      [sent(), second, sent(), used()],
      paidAt(7),
    ],
    ['paid after a plain transfer of the payer', [sent({ to: other }), used(), sent()], paidAt(7)],
    ['paid behind a fee of the token', [used(), sent({ to: other, value: 3n }), sent()], paidAt(7)],
    [
      'paid behind a fee of a token that emits Transfer first',
      [sent(), sent({ to: other }), used()],
      paidAt(5),
    ],
    ['paid with the swap that funded it', [sent({ by: other, to: from }), used(), sent()], paidAt(7)],
    [
      'not paid by the transfer of another authorization before',
      [second, sent(), used(), elsewhere],
      noTransfer,
    ],
    [
      'not paid by the transfer of another authorization after',
      [used(), elsewhere, second, sent()],
      noTransfer,
    ],
    [
      'not paid by the transfer of another authorization, Transfer first',
      [sent(), second, elsewhere, used()],
      noTransfer,
    ],
    ['not paid by another value', [used(), sent({ value: 999_999n })], noTransfer],
    ['not paid by a larger value', [used(), sent({ value: 1_000_001n })], noTransfer],
    ['not paid to another payee', [used(), elsewhere], noTransfer],
    ['not paid by another payer', [used(), sent({ by: other })], noTransfer],
    ['not paid in another asset', [used(), sent({ at: other })], noTransfer],
    [
      'not paid by an ERC-721 Transfer',
      [used(), { ...sent(), topics: [...sent().topics, word('1')] }],
      noTransfer,
    ],
    ['not paid by a Transfer without data', [used(), { ...sent(), data: '0x' }], noTransfer],
    ['not paid without a transfer', [used()], noTransfer],
    ['not of another nonce', [second, sent()], noUse],
    ['not of another payer', [used({ by: other }), sent()], noUse],
    ['not of another asset', [used({ at: other }), sent()], noUse],
    [
      'not of a nonce that is not indexed',
      [{ ...used(), topics: used().topics.slice(0, 2), data: nonce }, sent()],
      noUse,
    ],
    ['not of a transfer alone', [sent()], noUse],
    ['not of nothing', [], noUse],
  ])('%s', async (_, logs, answer) => {
    const chain = await nodeWith({ place, logs: mined(logs) });
    expect(await chain.findSettlement(transaction, expected)).toEqual(answer);
  });
});

describe('a transaction is', () => {
  test.each([
    ['unknown to the node', null],
    ['in no block', { ...place, blockHash: null, blockNumber: null }],
    ['in no block, as some nodes say it', { hash: transaction, input: '0x00' }],
    ['in a block that is not sealed yet', { ...place, blockHash: abiFalse }],
  ])('absent when it is %s', async (_, result) => {
    const chain = await nodeWith({ place: result });
    expect(await chain.findSettlement(transaction, expected)).toEqual({ kind: 'absent' });
  });

  test('contradicted when it reverted, since it has no logs then', async () => {
    const chain = await nodeWith({ place });
    expect(await chain.findSettlement(transaction, expected)).toEqual(noUse);
  });

  test('found whatever letter case the node uses', async () => {
    const chain = await serve((_, response, text) => {
      const result = shouted(text.includes('eth_getLogs') ? mined(plain) : place);
      response.end(JSON.stringify({ jsonrpc: '2.0', id: 1, result }));
    });
    expect(await chain.findSettlement(transaction, expected)).toEqual(paidAt(6));
  });

  test('found among the logs of its block, however many other transactions of the payer it has', async () => {
    const others = mined([...plain, used({ of: otherNonce })], { transactionHash: otherNonce });
    const chain = await nodeWith({ place, logs: [...others, ...mined(plain)] });
    expect(await chain.findSettlement(transaction, expected)).toEqual(paidAt(6));
  });

  test('found whatever the length of its input, its access list and the logs around it', async () => {
    const long = { ...place, input: `0x${'ab'.repeat(2 * 1024 * 1024)}`, accessList: plain };
    const filler = mined([sent({ to: other })], { transactionHash: otherNonce });
    const logs = [...Array.from({ length: 20_000 }, () => filler).flat(), ...mined(plain)];
    const chain = await nodeWith({ place: long, logs });
    expect(await chain.findSettlement(transaction, expected)).toEqual(paidAt(6));
  });

  test('looked up in two requests: for its block, and for the logs of its payer in that block', async () => {
    const requests: unknown[] = [];
    const chain = await serve((_, response, text) => {
      const { method, params } = JSON.parse(text) as { method: string; params: unknown[] };
      requests.push([method, params]);
      const result = method === 'eth_getLogs' ? mined(plain) : place;
      response.end(JSON.stringify({ jsonrpc: '2.0', id: 1, result }));
    });
    await chain.findSettlement(transaction, expected);
    const events = [topics.use, topics.canceled, topics.transfer];
    expect(requests).toEqual([
      ['eth_getTransactionByHash', [transaction]],
      ['eth_getLogs', [{ address: [asset], topics: [events, [word(from)]], blockHash }]],
    ]);
  });
});

describe('an answer about a transaction is malformed', () => {
  test.each<[string, { readonly place: unknown; readonly logs?: unknown }]>([
    ['missing', { place: undefined }],
    ['a string', { place: 'transaction' }],
    ['of another transaction', placed({ hash: blockHash })],
    ['with a decimal block number', placed({ blockNumber: 16 })],
    ['with an endless block number', placed({ blockNumber: `0x${'1'.repeat(17)}` })],
    ['with a short block hash', placed({ blockHash: '0x12' })],
    ['with a null log', { place, logs: [null] }],
    ['with a log that is a text', { place, logs: ['log'] }],
    ['with a log that is a list', { place, logs: [[]] }],
    ['with a short topic', change({ topics: [topics.use, '0x12'] })],
    ['with five topics', change({ topics: [topics.use, word(from), nonce, nonce, nonce] })],
    ['with data that is not a hex', change({ data: '0xzz' })],
    ['with no data', change({ data: null })],
    ['with a removed log', change({ removed: true })],
    ['with a log of another block', change({ blockHash: transaction })],
    ['with a log of no block', change({ blockHash: null, blockNumber: null })],
    ['with no list of logs', { place, logs: null }],
    ['with logs in an object', { place, logs: { logs: [] } }],
    ['with a log of another contract', change({ address: other })],
    ['with a log of another payer', change({ topics: [topics.use, word(other), nonce] })],
    ['with a log of another event', change({ topics: [abiTrue, word(from), nonce] })],
  ])('when it is %s', async (_, node) => {
    const chain = await serve((_request, response, text) => {
      const result = text.includes('eth_getLogs') ? node.logs : node.place;
      response.end(JSON.stringify({ jsonrpc: '2.0', id: 1, result }));
    });
    const answer = await chain.findSettlement(transaction, expected);
    expect(answer).toMatchObject({ kind: 'unavailable', cause: 'malformed' });
  });

  test('when one place in the block has two logs, the node contradicts itself', async () => {
    const chain = await nodeWith({ place, logs: mined(plain, { logIndex: '0x5' }) });
    expect(await chain.findSettlement(transaction, expected)).toMatchObject({
      kind: 'unavailable',
      cause: 'inconsistent',
    });
  });
});
