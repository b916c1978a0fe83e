import { expect, test } from 'vitest';
import { createWalletClient, http } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { devnetKeys } from '../../../../src/devnet/accounts.ts';
import type { Address, Hex } from '../../../../src/base/values/primitives.ts';
import { chainsAt, giveBack, network, payerAddress } from '../../../finance/use-cases/refunds/support.ts';
import { useChain } from '../../../support/devnet.ts';
import { startRpcProxy } from '../../../support/rpc-proxy.ts';
import { askNode } from '../../../support/tokens.ts';

const chain = useChain();
const account = privateKeyToAccount(devnetKeys.spare);
const sender = account.address.toLowerCase() as Address;

async function latest(at = chain.rpcUrl) {
  const node = chainsAt(at).get(network)!;
  const answer = await node.latestBlock();
  if (answer.kind !== 'answer') throw new Error(answer.cause);
  return { node, block: answer.block };
}

test('an account has spent the nonces of its transactions up to exactly a block, also if it lends its code', async () => {
  const { node, block } = await latest();
  const before = await node.readSpentNonces(sender, block.hash);
  const wallet = createWalletClient({ account, transport: http(chain.rpcUrl) });
  const transaction = await wallet.sendTransaction({ to: sender, value: 0n, chain: null });
  const { block: later } = await latest();
  const spent = before.kind === 'answer' ? before.value : Number.NaN;
  expect(await node.readSpentNonces(sender, block.hash)).toEqual({ kind: 'answer', value: spent });
  expect(await node.readSpentNonces(sender, later.hash)).toEqual({ kind: 'answer', value: spent + 1 });
  expect(await node.readSignedBy(transaction)).toEqual({ kind: 'answer', value: { sender, nonce: spent } });
  expect(await node.readSignedBy(`0x${'ab'.repeat(32)}`)).toEqual({ kind: 'answer', value: undefined });
  await askNode(chain.rpcUrl, 'anvil_setCode', [sender, `0xef0100${'11'.repeat(20)}`]);
  await askNode(chain.rpcUrl, 'anvil_mine', []);
  const { block: delegated } = await latest();
  expect(await node.readSpentNonces(sender, delegated.hash)).toEqual({ kind: 'answer', value: spent + 1 });
  await askNode(chain.rpcUrl, 'anvil_setCode', [sender, '0x']);
});

test('a Safe has spent the nonces that it says, and a contract without any is unavailable', async () => {
  const [safe, other] = [`0x${'5a'.repeat(20)}`, `0x${'5b'.repeat(20)}`] as [Address, Address];
  // returns 7, and reverts
  await askNode(chain.rpcUrl, 'anvil_setCode', [safe, '0x600760005260206000f3']);
  await askNode(chain.rpcUrl, 'anvil_setCode', [other, '0x60006000fd']);
  await askNode(chain.rpcUrl, 'anvil_mine', []);
  const { node, block } = await latest();
  expect(await node.readSpentNonces(safe, block.hash)).toEqual({ kind: 'answer', value: 7 });
  expect(await node.readSpentNonces(other, block.hash)).toMatchObject({ kind: 'unavailable' });
  expect(await node.readSpentNonces(safe, `0x${'ab'.repeat(32)}`)).toMatchObject({ kind: 'unavailable' });
});

test('the transfers of an amount to an address are found in ranges that a node allows, and nowhere else', async () => {
  const { block: before } = await latest();
  const amount = 1_234n;
  const transactions: Hex[] = [];
  for (const value of [amount, amount + 1n, amount])
    transactions.push(await giveBack(chain, { amount: value }));
  await giveBack(chain, { amount, to: `0x${'66'.repeat(20)}` });
  const proxy = await startRpcProxy(chain.rpcUrl);
  proxy.lie = ({ method, params: [query] }) => {
    const { fromBlock = '', toBlock = '' } = (query ?? {}) as { fromBlock?: string; toBlock?: string };
    return method === 'eth_getLogs' && Number(toBlock) - Number(fromBlock) > 1
      ? { error: { code: -32005, message: 'the range is too wide' } }
      : undefined;
  };
  const { node, block } = await latest(proxy.url);
  const wanted = { asset: chain.token, to: payerAddress, value: amount };
  const found = await node.findTransfers(wanted, before.number + 1n, block.number);
  expect(found).toMatchObject({
    kind: 'answer',
    value: [{ transaction: transactions[0] }, { transaction: transactions[2] }],
  });
  expect(await node.findTransfers(wanted, block.number + 1n, block.number)).toEqual({
    kind: 'answer',
    value: [],
  });
  proxy.lie = ({ method }) =>
    method === 'eth_getLogs' ? { error: { code: -32005, message: 'no' } } : undefined;
  expect(await node.findTransfers(wanted, before.number, block.number)).toMatchObject({
    kind: 'unavailable',
  });
});
