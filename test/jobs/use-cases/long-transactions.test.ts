import { describe, expect, test } from 'vitest';
import { giveBack } from '../../finance/use-cases/refunds/support.ts';
import { useChain } from '../../support/devnet.ts';
import { expectSoundLedger } from '../../support/invariants.ts';
import { landInLongTransaction } from '../../support/onchain.ts';
import { quoteAndSign } from '../../support/payer.ts';
import { tollbook } from '../../support/program.ts';
import { eventually } from '../../support/wait.ts';
import { behindProxy, digestOf, job, pay, reaches } from '../../payments/use-cases/settlement-support.ts';

const chain = useChain();

describe('a payment that a stranger landed in a transaction with more logs than anybody would read', () => {
  test('while its settlement was under way is paid, and can be refunded', async () => {
    const { proxy, database, gateway, runner } = await behindProxy(chain, {
      settleMs: 1_000,
      react: () => ({ status: 400, body: 'no' }),
    });
    const payment = await quoteAndSign(gateway, job, 'x');
    proxy.faults.settle = 'hang';
    const answer = pay(gateway, payment);
    await eventually(() => expect(proxy.seen).toContain('settle'));
    await landInLongTransaction(chain.rpcUrl, payment);
    expect((await answer).status).toBe(503);
    await reaches(gateway, payment, 'dead_lettered', database);
    expect(runner.deliveries).toHaveLength(1);
    const at = ['--rpc', `eip155:84532=${chain.rpcUrl}`, '--by', 'ada'];
    const back = await giveBack(chain);
    await eventually(async () =>
      expect(
        await tollbook(['refunds', 'record', '--quote-digest', digestOf(payment), '--tx', back, ...at], {
          DATABASE_URL: database.url,
        }),
      ).toMatchObject({ code: 0 }),
    );
    await database.asOwner((owner) => expectSoundLedger(database.db, owner));
  });
});
