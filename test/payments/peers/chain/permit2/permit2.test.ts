import type { TransactionReceipt } from 'viem';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { createScanner } from '../../../../../src/payments/peers/chain/transfer-scan.ts';
import type { ExpectedTransfer } from '../../../../../src/payments/rules/payment.ts';
import { exactProxyAddress } from '../../../../../src/payments/rules/schemes/permit2/signature-transfer.ts';
import type { RpcRequest } from '../../../../base/peers/rpc/rpc-stub.ts';
import { placeOf } from '../authorizations.ts';
import {
  broken,
  changingNode,
  openChain,
  type PermitChain,
  prunedNode,
  startPermitChain,
  transfersIn,
} from './permits.ts';

let devnet: PermitChain;
beforeAll(async () => {
  devnet = await startPermitChain();
});
afterAll(async () => {
  await devnet.stop();
});

const open = (rpcUrl = devnet.url) => openChain(rpcUrl);

const isLogs = ({ body }: RpcRequest): boolean => body.method === 'eth_getLogs';

const transferIn = (receipt: TransactionReceipt, at = 0) => transfersIn(receipt)[at];

const paidAt = (receipt: TransactionReceipt, at = 0) => ({
  kind: 'paid',
  ...placeOf(receipt),
  logIndex: transferIn(receipt, at),
});

/** What a transaction shows when somebody names it, and what is found without it. */
async function looks(expected: ExpectedTransfer, { transactionHash }: TransactionReceipt, chain = open()) {
  return {
    named: await chain.findSettlement(transactionHash, expected),
    found: await chain.findAuthorization(expected, 0),
  };
}

describe('a permit', () => {
  test('is paid by the transfer of the transaction that used it', async () => {
    const expected = devnet.expected();
    expect(await open().isUsed(expected)).toEqual({ kind: 'answer', used: false });
    await devnet.use(devnet.expected());
    const receipt = await devnet.use(expected);
    expect(await open().isUsed(expected)).toEqual({ kind: 'answer', used: true });
    const { named, found } = await looks(expected, receipt);
    expect(found).toMatchObject(paidAt(receipt));
    expect(named).toMatchObject({ kind: 'paid', logIndex: transferIn(receipt) });
  });

  test('is absent while it is unused, whatever else its payer paid the same payee', async () => {
    const expected = devnet.expected();
    const other = await devnet.use(devnet.expected());
    const plain = await devnet.transfer(expected);
    expect(await open().findAuthorization(expected, 0)).toEqual({ kind: 'absent' });
    for (const { transactionHash } of [other, plain])
      expect(await open().findSettlement(transactionHash, expected)).toMatchObject({ kind: 'contradicted' });
  });

  test('is canceled where its payer invalidated its nonce, also if the payer paid another one of the same amount at once', async () => {
    const expected = devnet.expected();
    const receipt = await devnet.cancel(expected);
    await devnet.use(devnet.expected());
    const { named, found } = await looks(expected, receipt);
    expect(found).toEqual({ kind: 'canceled', ...placeOf(receipt) });
    expect(named).toMatchObject({ kind: 'contradicted', why: 'no_transfer' });
  });

  test('is paid where its payer invalidated its nonce afterwards', async () => {
    const expected = devnet.expected();
    const receipt = await devnet.use(expected);
    await devnet.cancel(expected);
    expect(await open().findAuthorization(expected, 0)).toMatchObject(paidAt(receipt));
  });

  test.each([
    ['another payee', (): Partial<ExpectedTransfer> => ({ payTo: devnet.token })],
    ['the payee less', (): Partial<ExpectedTransfer> => ({ value: 1n })],
    ['the payee more', (): Partial<ExpectedTransfer> => ({ value: 1_001n })],
  ])('is used otherwise where its nonce paid %s', async (_, change) => {
    const expected = devnet.expected();
    const receipt = await devnet.use({ ...expected, ...change() });
    const { blockNumber, blockHash } = receipt;
    const { named, found } = await looks(expected, receipt);
    expect(found).toEqual({ kind: 'used_otherwise', blockNumber, blockHash });
    expect(named).toMatchObject({ kind: 'contradicted', why: 'no_transfer' });
  });
});

describe('of several permits of one payer, payee and amount', () => {
  test('each has its own transfer, in blocks of their own, in one block and in one transaction', async () => {
    const [a, b, c, d] = [devnet.expected(), devnet.expected(), devnet.expected(), devnet.expected()];
    const apart = await devnet.use(a);
    const together = await devnet.useAll([b, c, d]);
    expect((await looks(a, apart)).found).toMatchObject(paidAt(apart));
    for (const [at, each] of [b, c, d].entries()) {
      const { named, found } = await looks(each, together);
      expect(found).toMatchObject(paidAt(together, at));
      expect(named).toMatchObject({ kind: 'paid', logIndex: transferIn(together, at) });
    }
  });

  test('one in a block with another is paid by its own transaction', async () => {
    const [a, b] = [devnet.expected(), devnet.expected()];
    const [first, second] = await devnet.inOneBlock([() => devnet.use(a), () => devnet.use(b)]);
    if (!first || !second) throw new Error('not mined');
    expect(first.blockHash).toBe(second.blockHash);
    expect((await looks(a, first)).found).toMatchObject(paidAt(first));
    expect((await looks(b, second)).found).toMatchObject(paidAt(second));
    expect((await looks(b, first)).named).toMatchObject({
      kind: 'contradicted',
      why: 'no_authorization_used',
    });
  });

  test('one that failed in a batch is not paid by the transfer of the other', async () => {
    const [used, failed] = [devnet.expected(), devnet.expected()];
    const calls = [await devnet.settleData(used), broken(await devnet.settleData(failed))];
    const receipt = await devnet.batch(calls.map((callData) => ({ target: exactProxyAddress, callData })));
    const own = await looks(used, receipt);
    // the block has one transfer alone, made by x402's contract, and its state shows that this nonce was used in it
    expect(own.found).toMatchObject(paidAt(receipt));
    expect(own.named).toMatchObject({ kind: 'ambiguous', transfers: [{ logIndex: transferIn(receipt) }] });
    const other = await looks(failed, receipt);
    expect(other.found).toEqual({ kind: 'absent' });
    expect(other.named).toMatchObject({ kind: 'contradicted' });
  });
});

describe('a transaction that hides the permits that it uses', () => {
  test('pays the only one that its block used', async () => {
    const expected = devnet.expected();
    const receipt = await devnet.useHidden(expected);
    const { named, found } = await looks(expected, receipt);
    expect(found).toMatchObject(paidAt(receipt));
    expect(named).toMatchObject({ kind: 'ambiguous', transfers: [{ logIndex: transferIn(receipt) }] });
  });

  test('or names another one in its place leaves the payment to an operator, and is never reported as no payment', async () => {
    const [used, named] = [devnet.expected(), devnet.expected()];
    const receipt = await devnet.useHidden(used, await devnet.settleData(named));
    expect((await looks(used, receipt)).found).toEqual({ kind: 'ambiguous' });
    // the one that it names is unused
    expect(await looks(named, receipt)).toMatchObject({
      named: { kind: 'contradicted', why: 'no_authorization_used' },
      found: { kind: 'absent' },
    });
  });

  test('in a block with a cancellation and a plain transfer of the same amount does not make that transfer a payment', async () => {
    const expected = devnet.expected();
    const [canceled] = await devnet.inOneBlock([
      () => devnet.cancel(expected),
      () => devnet.transfer(expected),
    ]);
    expect(canceled?.status).toBe('success');
    expect(await open().findAuthorization(expected, 0)).toEqual({ kind: 'ambiguous' });
  });
});

describe('a node', () => {
  test('that leaves the transfer out of its first answer does not make a payment one that was not made', async () => {
    const expected = devnet.expected();
    const receipt = await devnet.use(expected);
    let answers = 0;
    const { url } = await changingNode(devnet.url, (request, result) =>
      isLogs(request) && answers++ === 0 ? [] : result,
    );
    expect(await open(url).findAuthorization(expected, 0)).toMatchObject(paidAt(receipt));
  });

  test('without the states of earlier blocks shows a payment, and never that one was not made', async () => {
    const paid = { ...devnet.expected(), value: 1_002n };
    const canceled = { ...devnet.expected(), value: 1_002n };
    const receipt = await devnet.use(paid);
    await devnet.cancel(canceled);
    await devnet.rpc('anvil_mine', '0x3');
    const { url } = await prunedNode(devnet.url);
    expect(await open(url).findAuthorization(paid, 0)).toMatchObject(paidAt(receipt));
    expect(await open(url).findAuthorization(canceled, 0)).toEqual({ kind: 'absent' });
  });

  test('that shows another calldata than that of the transaction is not believed', async () => {
    const expected = devnet.expected();
    const { transactionHash } = await devnet.use(expected);
    const { url } = await changingNode(devnet.url, (request, result) =>
      request.body.method === 'eth_getTransactionByHash'
        ? { ...(result as object), hash: `0x${'cd'.repeat(32)}` }
        : result,
    );
    expect(await open(url).findSettlement(transactionHash, expected)).toMatchObject({
      kind: 'unavailable',
      cause: 'malformed',
    });
  });

  test('finds a payment hundreds of blocks later with a number of requests that grows with their logarithm', async () => {
    const expected = devnet.expected();
    const receipt = await devnet.use(expected);
    await devnet.rpc('anvil_mine', '0x190');
    let calls = 0;
    const { url } = await changingNode(devnet.url, (request, result) => {
      if (request.body.method === 'eth_call') calls++;
      return result;
    });
    expect(await open(url).findAuthorization(expected, 0)).toMatchObject(paidAt(receipt));
    expect(calls).toBeLessThan(25);
  });
});

test('the evidence of a transaction names the permit of each of its transfers', async () => {
  const [a, b] = [devnet.expected(), devnet.expected()];
  const receipt = await devnet.useAll([a, b]);
  const scanner = createScanner({
    network: 'eip155:84532',
    chainId: 84_532,
    rpcUrl: devnet.url,
    timeoutMs: 20_000,
  });
  onTestFinished(() => scanner.close());
  const wanted = { transaction: receipt.transactionHash, assets: [devnet.token], from: [a.from] };
  const evidence = await scanner.evidence(wanted);
  const used = [a, b].map(({ nonce, asset, from }, at) => ({
    transferMethod: 'permit2',
    asset,
    payer: from,
    nonce,
    logIndex: transferIn(receipt, at),
  }));
  expect(evidence).toMatchObject({ kind: 'answer', value: { kind: 'mined', authorizations: used } });
  const plain = await devnet.transfer(a);
  expect(await scanner.evidence({ ...wanted, transaction: plain.transactionHash })).toMatchObject({
    value: { kind: 'mined', authorizations: [] },
  });
});
