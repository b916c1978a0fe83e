import { randomUUID } from 'node:crypto';
import { createTestClient, http } from 'viem';
import { expect, onTestFinished, test } from 'vitest';
import { devnetKeys } from '../../../../src/devnet/accounts.ts';
import { prepaidContractAddress } from '../../../../src/devnet/prepaid-contract.ts';
import { createPrepaidContract } from '../../../../src/chat/peers/prepaid/prepaid-contract.ts';
import {
  spendConditions,
  createOperatorBalance,
} from '../../../../src/chat/use-cases/spend/operator-balance.ts';
import { reportAlerts, takeAlertMessages } from '../../../../src/ledger/store/alerts.ts';
import { endMessage } from '../../../../src/ledger/store/tasks.ts';
import { createDatabase } from '../../../support/database.ts';
import { documentOf } from '../../../support/documented.ts';
import { logLines } from '../../../support/log-lines.ts';
import { operator } from '../../../support/spend.ts';
import { useSpendChain } from '../../../support/spend-gateway.ts';
import { operatorOf } from '../../../support/operator.ts';
import { eventually } from '../../../support/wait.ts';

const spends = useSpendChain();
const node = () => createTestClient({ mode: 'anvil', transport: http(spends.chain.rpcUrl) });

function creditsAt(rpcUrl: string) {
  const { chainId } = spends.chain.chain;
  const privateKey = devnetKeys.operator;
  const prepaid = createPrepaidContract({
    chainId,
    rpcUrl,
    contract: prepaidContractAddress,
    privateKey,
    timeoutMs: 20_000,
  });
  onTestFinished(() => prepaid.close());
  return prepaid;
}

/** For one test only. */
async function setBalance(value: bigint): Promise<void> {
  await node().setBalance({ address: operator, value });
  onTestFinished(() => node().setBalance({ address: operator, value: 10n ** 21n }));
}

test("the operator's balance is low while it covers too few spends, and each change is reported once", async () => {
  const funds = createOperatorBalance(creditsAt(spends.chain.rpcUrl));
  expect([await funds.refresh(), funds.isLow()]).toEqual([false, false]);
  // enough for a few
  await setBalance(10n ** 15n);
  expect([await funds.refresh(), funds.isLow()]).toEqual([true, true]);
  expect([await funds.refresh(), funds.isLow()]).toEqual([false, true]);
  await setBalance(10n ** 18n);
  expect([await funds.refresh(), funds.isLow()]).toEqual([true, false]);
});

test("little ether of the operator's key fires the alert low_gas, and its return resolves it", async () => {
  const { pool, moveClock } = await createDatabase();
  const prepaid = creditsAt(spends.chain.rpcUrl);
  const operatorBalance = createOperatorBalance(prepaid);
  const report = async () => {
    await operatorBalance.refresh();
    const settings = { receivers: ['webhook'], repeatSecs: 3_600, quietSecs: 20, isComplete: true };
    const conditions = spendConditions({ operatorBalance, prepaid });
    await reportAlerts(pool, { ...settings, processId: randomUUID(), conditions });
    const messages = await takeAlertMessages(pool, 'webhook', 16);
    for (const { message_id: id } of messages) await endMessage(pool, id);
    return messages.map(({ kind, subject, status }) => [kind, subject, status]);
  };
  expect(await report()).toEqual([]);
  await setBalance(10n ** 15n);
  expect(await report()).toEqual([['low_gas', `operator ${operator}`, 'firing']]);
  expect(await report()).toEqual([]);
  await setBalance(10n ** 18n);
  await moveClock(30);
  expect(await report()).toEqual([['low_gas', `operator ${operator}`, 'resolved']]);
});

test('an unreachable chain does not change the known balance', async () => {
  const funds = createOperatorBalance(creditsAt('http://127.0.0.1:9'));
  expect([await funds.refresh(), funds.isLow()]).toEqual([false, false]);
});

test('a gateway whose operator has no ether reports that in its status and once in its log, and is ready', async () => {
  await setBalance(0n);
  const { lines, logger } = logLines();
  const gateway = await spends.gateway({ logger });
  const check = await documentOf(gateway);
  const detail = 'the operator has too little ether to land and pay out spends';
  const { authorization } = await operatorOf(gateway.database, ['status:read']);
  const answer = await eventually(async () => {
    const response = await gateway.get('/status', authorization.slice('Bearer '.length));
    const text = await response.text();
    expect(JSON.parse(text).chat).toMatchObject({ status: 'degraded', spend_auth: { ok: false, detail } });
    return { status: response.status, headers: response.headers, text };
  });
  expect([answer.status, check('GET', '/status', answer)]).toEqual([200, []]);
  await eventually(async () => expect((await gateway.get('/v1/ready')).status).toBe(200));
  expect(lines.filter(({ msg }) => msg === detail)).toEqual([
    expect.objectContaining({ level: 40, operator }),
  ]);
});
