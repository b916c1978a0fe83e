import type { TransactionReceipt } from 'viem';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { Hex } from '../../../../../src/base/values/primitives.ts';
import { multicall3Address } from '../../../../../src/devnet/chain.ts';
import { createScanner } from '../../../../../src/payments/peers/chain/transfer-scan.ts';
import type { ExpectedTransfer } from '../../../../../src/payments/rules/payment.ts';
import {
  exactProxyAddress,
  uptoProxyAddress,
} from '../../../../../src/payments/rules/schemes/permit2/signature-transfer.ts';
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

/** The payment of these atoms by one of a transaction's transfers. */
const paidAt = (receipt: TransactionReceipt, value: bigint | undefined, at = 0) => ({
  kind: 'paid',
  ...placeOf(receipt),
  logIndex: transfersIn(receipt)[at],
  ...(value === undefined ? {} : { value }),
});

/** What a transaction shows when somebody names it, and what is found without it. */
async function looks(expected: ExpectedTransfer, { transactionHash }: TransactionReceipt, rpcUrl?: string) {
  const chain = open(rpcUrl);
  return {
    named: await chain.findSettlement(transactionHash, expected),
    found: await chain.findAuthorization(expected, 0),
  };
}

/** Both looks show that payment, and how many atoms it moved. */
async function expectPaid(expected: ExpectedTransfer, receipt: TransactionReceipt, value?: bigint, at = 0) {
  const { named, found } = await looks(expected, receipt);
  const { transaction: _, ...paid } = paidAt(receipt, value, at);
  expect(found).toMatchObject(paidAt(receipt, value, at));
  expect(named).toMatchObject(paid);
}

/** Neither look shows that payment as made, nor as not made. */
async function expectUnclear(expected: ExpectedTransfer, receipt: TransactionReceipt) {
  const { named, found } = await looks(expected, receipt);
  expect([named.kind, found.kind]).toEqual(['ambiguous', 'ambiguous']);
}

const uptoCall = async (expected: ExpectedTransfer, atoms: bigint) => ({
  target: uptoProxyAddress,
  callData: await devnet.uptoData(expected, atoms),
});
const exactCall = async (expected: ExpectedTransfer) => ({
  target: exactProxyAddress,
  callData: await devnet.settleData(expected),
});
const authorizationCall = async (expected: ExpectedTransfer) => ({
  target: devnet.token,
  callData: await devnet.authorizationData(expected),
});
const authorized = (): ExpectedTransfer => ({ ...devnet.expected(), transferMethod: 'eip3009' });

/** What the evidence of a transaction names: each payment with the index of its transfer. */
async function evidenceOf({ transactionHash: transaction }: TransactionReceipt) {
  const network = 'eip155:84532';
  const scanner = createScanner({ network, chainId: 84_532, rpcUrl: devnet.url, timeoutMs: 20_000 });
  onTestFinished(() => scanner.close());
  const from = [devnet.expected().from];
  const evidence = await scanner.evidence({ transaction, assets: [devnet.token], from });
  if (evidence.kind !== 'answer' || evidence.value.kind !== 'mined') throw new Error('not mined');
  return evidence.value.authorizations;
}

const use = (
  { transferMethod, asset, from: payer, nonce }: ExpectedTransfer,
  logIndex: number | undefined,
) => {
  return { transferMethod, asset, payer, nonce, logIndex };
};

describe('a permit for at most an amount', () => {
  test.each([1n, 300n, 999n, 1_000n])('is paid by the transfer of %s atoms that used it', async (atoms) => {
    const expected = devnet.expectedUpto();
    await devnet.useUpto(devnet.expectedUpto(), atoms);
    const receipt = await devnet.useUpto(expected, atoms);
    await expectPaid(expected, receipt, atoms);
    expect(await open().isUsed(expected)).toEqual({ kind: 'answer', used: true });
  });

  test('is absent while it is unused, whatever else its payer paid the same payee', async () => {
    const expected = devnet.expectedUpto();
    const others = [await devnet.useUpto(devnet.expectedUpto(), 300n), await devnet.transfer(expected)];
    others.push(await devnet.use(devnet.expected()));
    expect(await open().findAuthorization(expected, 0)).toEqual({ kind: 'absent' });
    for (const { transactionHash } of others)
      expect(await open().findSettlement(transactionHash, expected)).toMatchObject({ kind: 'contradicted' });
  });

  test.each<[string, bigint, Partial<ExpectedTransfer>]>([
    ['another payee', 300n, { payTo: multicall3Address }],
    ['more than was expected at most', 1_500n, { value: 2_000n }],
  ])('is used otherwise where its nonce paid %s', async (_, atoms, change) => {
    const expected = devnet.expectedUpto();
    const receipt = await devnet.useUpto({ ...expected, ...change }, atoms);
    const { blockNumber, blockHash } = receipt;
    const { named, found } = await looks(expected, receipt);
    expect(found).toEqual({ kind: 'used_otherwise', blockNumber, blockHash });
    expect(named).toMatchObject({ kind: 'contradicted', why: 'no_transfer' });
  });

  test('is canceled where its payer invalidated its nonce', async () => {
    const expected = devnet.expectedUpto();
    const receipt = await devnet.cancel(expected);
    await devnet.useUpto(devnet.expectedUpto(), 300n);
    expect((await looks(expected, receipt)).found).toEqual({ kind: 'canceled', ...placeOf(receipt) });
  });

  test('is used up without a payment where its facilitator moved nothing', async () => {
    const expected = devnet.expectedUpto();
    const receipt = await devnet.useUpto(expected, 0n);
    const { named, found } = await looks(expected, receipt);
    expect(found).toMatchObject({ kind: 'used_otherwise' });
    expect(named).toMatchObject({ kind: 'contradicted', why: 'no_transfer' });
  });

  test('of the scheme exact is no payment by upto, and the other way round', async () => {
    const expected = devnet.expectedUpto();
    const receipt = await devnet.useUpto(expected, 1_000n);
    const exact: ExpectedTransfer = { ...expected, transferMethod: 'permit2' };
    expect((await looks(exact, receipt)).named.kind).not.toBe('paid');
    expect((await looks(exact, receipt)).found.kind).not.toBe('paid');
    const other = devnet.expected();
    const used = await devnet.use(other);
    const asUpto: ExpectedTransfer = { ...other, transferMethod: 'upto' };
    expect((await looks(asUpto, used)).named.kind).not.toBe('paid');
    expect((await looks(asUpto, used)).found.kind).not.toBe('paid');
  });
});

describe('of several payments of one payer to one payee', () => {
  test('two by upto in one block are each paid by their own transaction', async () => {
    const [a, b] = [devnet.expectedUpto(), devnet.expectedUpto()];
    const [first, second] = await devnet.inOneBlock([
      () => devnet.useUpto(a, 300n),
      () => devnet.useUpto(b, 300n),
    ]);
    if (!first || !second) throw new Error('not mined');
    expect(first.blockHash).toBe(second.blockHash);
    await expectPaid(a, first, 300n);
    await expectPaid(b, second, 300n);
    expect((await looks(b, first)).named).toMatchObject({
      kind: 'contradicted',
      why: 'no_authorization_used',
    });
  });

  test.each<[string, readonly [bigint, bigint], readonly [bigint, bigint]]>([
    ['of one amount', [1_000n, 1_000n], [300n, 300n]],
    ['of different amounts', [1_000n, 1_000n], [300n, 301n]],
    ['of one amount, of which at most different ones were signed', [1_000n, 2_000n], [300n, 300n]],
  ])('two by upto %s in one transaction are each paid by their own transfer', async (_, mosts, atoms) => {
    const [a, b] = [devnet.expectedUpto(mosts[0]), devnet.expectedUpto(mosts[1])];
    const receipt = await devnet.batch([await uptoCall(a, atoms[0]), await uptoCall(b, atoms[1])]);
    await expectPaid(a, receipt, atoms[0], 0);
    await expectPaid(b, receipt, atoms[1], 1);
    const [first, second] = transfersIn(receipt);
    expect(await evidenceOf(receipt)).toEqual(expect.arrayContaining([use(a, first), use(b, second)]));
  });

  test.each([300n, 1_000n])(
    'one by upto of %s atoms and an exact one of 1000 in one transaction are each paid by their own transfer',
    async (atoms) => {
      const [most, exact] = [devnet.expectedUpto(), devnet.expected()];
      const receipt = await devnet.batch([await uptoCall(most, atoms), await exactCall(exact)]);
      await expectPaid(most, receipt, atoms, 0);
      await expectPaid(exact, receipt, undefined, 1);
      const [first, second] = transfersIn(receipt);
      expect(await evidenceOf(receipt)).toEqual(
        expect.arrayContaining([use(most, first), use(exact, second)]),
      );
    },
  );

  test('one by upto, an exact one and an EIP-3009 transfer of different amounts in one transaction are each paid by their own', async () => {
    const [most, exact, transfer] = [devnet.expectedUpto(), devnet.expected(), authorized()];
    const other = { ...transfer, value: 700n };
    const calls = [await authorizationCall(other), await uptoCall(most, 300n), await exactCall(exact)];
    const receipt = await devnet.batch(calls);
    await expectPaid(other, receipt, undefined, 0);
    await expectPaid(most, receipt, 300n, 1);
    await expectPaid(exact, receipt, undefined, 2);
    const [first, second, third] = transfersIn(receipt);
    expect(await evidenceOf(receipt)).toEqual([use(other, first), use(exact, third), use(most, second)]);
  });

  test('one by upto beside an EIP-3009 transfer of the same amount is left to an operator, and the evidence tells them apart', async () => {
    const [most, transfer] = [devnet.expectedUpto(), authorized()];
    const receipt = await devnet.batch([await uptoCall(most, 1_000n), await authorizationCall(transfer)]);
    await expectUnclear(most, receipt);
    await expectPaid(transfer, receipt, undefined, 1);
    const [first, second] = transfersIn(receipt);
    expect(await evidenceOf(receipt)).toEqual([use(transfer, second), use(most, first)]);
  });
});

describe('a permit that a transaction names and does not use', () => {
  test.each<[string, (expected: ExpectedTransfer) => Promise<Hex>, () => ExpectedTransfer]>([
    ['for the same amount at most', (other) => devnet.uptoData(other, 300n), () => devnet.expectedUpto()],
    [
      'for another amount at most',
      (other) => devnet.uptoData(other, 300n),
      () => devnet.expectedUpto(2_000n),
    ],
    [
      'of the scheme exact',
      (other) => devnet.settleData(other),
      () => ({ ...devnet.expected(), value: 300n }),
    ],
  ])('%s is not paid by the transfer of the one beside it', async (_, dataOf, expectedOther) => {
    const [used, unused] = [devnet.expectedUpto(), expectedOther()];
    const target = unused.transferMethod === 'upto' ? uptoProxyAddress : exactProxyAddress;
    const failing = { target, callData: broken(await dataOf(unused)) };
    const receipt = await devnet.batch([failing, await uptoCall(used, 300n)]);
    expect(transfersIn(receipt)).toHaveLength(1);
    const other = await looks(unused, receipt);
    expect(other.found).toEqual({ kind: 'absent' });
    expect(other.named).toMatchObject({ kind: 'contradicted' });
    // the block has one transfer alone, made by x402's contract, and its state shows that this nonce was used in it
    expect((await looks(used, receipt)).found).toMatchObject(paidAt(receipt, 300n));
    // it is not known which of them was used
    expect(await evidenceOf(receipt)).toEqual([]);
  });
});

describe('a node', () => {
  test('without the states of earlier blocks shows a payment by upto, and never that one was not made', async () => {
    // no other payment of these tests has this payee
    const payTo = multicall3Address;
    const [paid, canceled] = [
      { ...devnet.expectedUpto(), payTo },
      { ...devnet.expectedUpto(), payTo },
    ];
    const receipt = await devnet.useUpto(paid, 301n);
    await devnet.cancel(canceled);
    await devnet.rpc('anvil_mine', '0x3');
    const { url } = await prunedNode(devnet.url);
    expect((await looks(paid, receipt, url)).found).toMatchObject(paidAt(receipt, 301n));
    expect((await looks(paid, receipt, url)).named).toMatchObject({ kind: 'paid', value: 301n });
    expect(await open(url).findAuthorization(canceled, 0)).toEqual({ kind: 'absent' });
  });

  test('that leaves the transfer out of its first answer does not make a payment one that was not made', async () => {
    const expected = devnet.expectedUpto();
    const receipt = await devnet.useUpto(expected, 300n);
    let answers = 0;
    const { url } = await changingNode(devnet.url, ({ body }, result) =>
      body.method === 'eth_getLogs' && answers++ === 0 ? [] : result,
    );
    expect(await open(url).findAuthorization(expected, 0)).toMatchObject(paidAt(receipt, 300n));
  });
});
