import { expect, onTestFinished, test } from 'vitest';
import { addressWord } from '../../../../src/base/peers/rpc/eth-call.ts';
import { createScanner } from '../../../../src/payments/peers/chain/transfer-scan.ts';
import { transferred } from '../../../../src/payments/peers/chain/transfers.ts';
import { startRpcStub, succeed } from '../../../base/peers/rpc/rpc-stub.ts';

const asset = `0x${'a5'.repeat(20)}` as const;
const payTo = `0x${'9a'.repeat(20)}` as const;
const stranger = `0x${'0e'.repeat(20)}` as const;
const blockHash = `0x${'bb'.repeat(32)}`;
const perBlock = 60_000;

/** As many transfers to the payee as a block can have, each log with fields that nobody asks for. */
const logsAt = (blockNumber: string): readonly object[] =>
  Array.from({ length: perBlock }, (_, at) => ({
    address: asset,
    topics: [transferred, addressWord(stranger), addressWord(payTo)],
    data: `0x${'1'.padStart(64, '0')}`,
    logIndex: `0x${at.toString(16)}`,
    transactionHash: `0x${'77'.repeat(32)}`,
    transactionIndex: '0x0',
    blockNumber,
    blockHash,
    removed: false,
  }));

test('a single block with more transfers than a range may have is read to the last one, and a range with as many is not', async () => {
  const stub = await startRpcStub((request) => {
    const { method, params } = request.body;
    const [filter] = params as [{ fromBlock: string; topics: readonly unknown[] }];
    if (method !== 'eth_getLogs')
      return succeed(request, { number: params[0], hash: blockHash, timestamp: '0x1' });
    const isIncoming = filter.topics.length === 3;
    return succeed(request, isIncoming ? logsAt(filter.fromBlock) : []);
  });
  const scanner = createScanner({
    network: 'eip155:84532',
    chainId: 84_532,
    rpcUrl: stub.url,
    timeoutMs: 60_000,
  });
  onTestFinished(() => scanner.close());
  const query = { assets: [asset], payees: [payTo] };
  expect(JSON.stringify(logsAt('0x10')).length).toBeGreaterThan(32 * 1024 * 1024);
  const one = await scanner.transfers(query, 16n, 16n);
  const transfers = one.kind === 'answer' ? one.value.transfers : [];
  expect(transfers).toHaveLength(perBlock);
  expect(transfers.at(-1)).toMatchObject({ from: stranger, to: payTo, amount: 1n, logIndex: perBlock - 1 });
  const two = await scanner.transfers(query, 16n, 17n);
  expect(two).toMatchObject({ kind: 'unavailable', cause: 'too_large' });
});
