import { createTestClient, http, publicActions, toFunctionSelector } from 'viem';
import { expect, test } from 'vitest';
import { devnetKeys } from '../../../../src/devnet/accounts.ts';
import { prepaidContractAddress } from '../../../../src/devnet/prepaid-contract.ts';
import type { Hex } from '../../../../src/base/values/primitives.ts';
import { type SpendAuth, spendAuthHash } from '../../../../src/accounts/rules/spend/spend-auth.ts';
import { payOutSpend } from '../../../../src/chat/use-cases/spend/pay-out-spend.ts';
import type { PrepaidContract } from '../../../../src/chat/peers/prepaid/prepaid-contract.ts';
import type { SpendContext } from '../../../../src/chat/use-cases/context.ts';
import { exposeSpend } from '../../../../src/chat/store/exposure.ts';
import {
  dueSpends,
  earned,
  finish,
  paid,
  setUpPayouts,
  troubles,
  runOnce,
} from '../../../support/payouts.ts';
import { type Lie, startRpcProxy } from '../../../support/rpc-proxy.ts';
import { operator } from '../../../support/spend.ts';
import { useSpendChain } from '../../../support/spend-gateway.ts';

const spends = useSpendChain();
const setUp = (change: Partial<SpendContext['settings']> = {}) => setUpPayouts(spends, change);
const node = () => createTestClient({ mode: 'anvil', transport: http(spends.chain.rpcUrl) });

/** The next look at a spend, and no other, is answered by a node that is behind. */
function answerOldOnce(proxy: { lie: Lie }, auth: SpendAuth, result: string): void {
  let looks = 0;
  proxy.lie = ({ method, params }) => {
    const [call] = params as [{ readonly data?: string }];
    const isFirst = method === 'eth_call' && call.data === spendCallOf(auth) && looks++ === 0;
    return isFirst ? { result } : undefined;
  };
}
const spendCallOf = (auth: SpendAuth): Hex =>
  `${toFunctionSelector('getSpendAuth(bytes32)')}${spendAuthHash(auth).slice(2)}`;

test('a spend that lands during an attempt is not lost for the nonce that it has used itself', async () => {
  const proxy = await startRpcProxy(spends.chain.rpcUrl);
  const here = await setUp({ rpcUrl: proxy.url });
  const auth = await (await spends.account()).sign();
  await earned(here, auth);
  await spends.withCredits((prepaid) => prepaid.authorizeSpend(auth, 10_000));
  await node().mine({ blocks: 8 });
  answerOldOnce(proxy, auth, `0x${'00'.repeat(5 * 32)}`);
  await runOnce(here);
  expect(await troubles(here.database)).toEqual([['open', 1, 'invalid_nonce']]);
  await here.database.moveClock(60);
  expect(await finish(here, auth)).toEqual(paid);
});

test('a payout that a lagging node does not show yet is not lost, even after the expiry', async () => {
  const proxy = await startRpcProxy(spends.chain.rpcUrl);
  const here = await setUp({ rpcUrl: proxy.url });
  const auth = await (await spends.account()).sign();
  await spends.withCredits((prepaid) => prepaid.authorizeSpend(auth, 10_000));
  await earned(here, auth);
  const call = { to: prepaidContractAddress, data: spendCallOf(auth) };
  const { data: unclaimed } = await node().extend(publicActions).call(call);
  await here.spending.prepaid.claimPayment(spendAuthHash(auth), operator, 10_000);
  await here.database.moveClock(7_200);
  answerOldOnce(proxy, auth, unclaimed!);
  await runOnce(here);
  expect(await troubles(here.database)).toEqual([['open', 1, 'already_claimed']]);
  await here.database.moveClock(7_300);
  expect(await finish(here, auth)).toEqual(paid);
});

/** A node without receipts: what spends cost is read once they have ended, and counts no request here. */
const readCost: PrepaidContract['readCost'] = () => Promise.resolve({ kind: 'absent' });

test('payouts that wait for finality share one request for the finalized block', async () => {
  const proxy = await startRpcProxy(spends.chain.rpcUrl);
  const whole = await setUp({ rpcUrl: proxy.url });
  const spending = { ...whole.spending, prepaid: { ...whole.spending.prepaid, readCost } };
  const here = { ...whole, spending };
  for (let at = 0; at < 6; at++) {
    const auth = await (await spends.account()).sign();
    await spends.withCredits((prepaid) => prepaid.authorizeSpend(auth, 10_000));
    await earned(here, auth);
  }
  expect(await runOnce(here)).toBe(6);
  await here.database.moveClock(60);
  const asked: string[] = [];
  proxy.lie = ({ method, params }) => void asked.push(`${method} ${String(params[0])}`);
  expect(await runOnce(here)).toBe(6);
  expect(asked.filter((question) => question.startsWith('eth_getTransactionReceipt'))).toHaveLength(6);
  expect(asked.filter((question) => question.endsWith('finalized'))).toHaveLength(1);
});

test('a payout is recorded even if the operator has changed its key meanwhile', async () => {
  const here = await setUp();
  const auth = await (await spends.account()).sign();
  await spends.withCredits((prepaid) => prepaid.authorizeSpend(auth, 10_000));
  await earned(here, auth);
  await runOnce(here);
  const { spending } = await setUp({ operatorKey: devnetKeys.thirdSpare });
  await here.database.moveClock(7_200);
  expect(
    await finish(
      { ...here, spending: { ...here.spending, settings: spending.settings, prepaid: spending.prepaid } },
      auth,
    ),
  ).toEqual(paid);
});

test('the exposure of a spend ends even if the process ended right after recording the payout', async () => {
  const here = await setUp();
  const account = await spends.account();
  const auth = await account.sign();
  await earned(here, auth);
  const [due] = await dueSpends(here);
  expect(await finish(here, auth)).toEqual(paid);
  // as that process left them
  const { stream } = due!;
  const asked = { stream, scope: 'a contract', commitment: auth.commitment, nonce: 0n, amount: 1n };
  expect(await exposeSpend(here.database.pool, { ...asked, limit: 1n, nextNonce: 0n, balance: 1n })).toBe(
    true,
  );
  await payOutSpend(here.spending, due!);
  const { rows } = await here.database.pool.query('select from tollbook.spend_exposure');
  expect(rows).toHaveLength(0);
});
