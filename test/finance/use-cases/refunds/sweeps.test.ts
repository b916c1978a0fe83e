import { describe, expect, test } from 'vitest';
import { devnetAddress, devnetKeys } from '../../../../src/devnet/accounts.ts';
import { listCosts, listSweeps } from '../../../../src/payments/store/refunds.ts';
import { useChain } from '../../../support/devnet.ts';
import { payTo } from '../../../support/gateway.ts';
import { expectSoundLedger } from '../../../support/invariants.ts';
import { chainsThatStandStill, giveBack, refunding } from './support.ts';

const chain = useChain();
const nowhere = `0x${'a'.repeat(64)}` as const;

describe('a sweep', () => {
  test('is recorded once, and a refund is not a sweep', async () => {
    const { database, ledger, paid, record, sweep, final } = await refunding(chain);
    const digest = await paid();
    const refund = await final(await giveBack(chain));
    expect(await sweep(refund)).toMatchObject({ code: 'refund_due', detail: digest });
    expect(await listSweeps(ledger.pool, 10)).toEqual([]);
    expect(await record(digest, refund)).toMatchObject({ kind: 'recorded' });
    expect(await sweep(refund)).toMatchObject({ code: 'transfer_claimed', detail: digest });
    expect(await sweep(refund, { isNoRefund: true })).toMatchObject({ code: 'transfer_claimed' });

    const chains = await chainsThatStandStill(chain.rpcUrl);
    const transaction = await final(await giveBack(chain, { to: devnetAddress('operator'), amount: 5n }));
    expect(await sweep(transaction, {}, chains)).toMatchObject({ code: 'not_final' });
    expect(await sweep(transaction)).toMatchObject({
      kind: 'recorded',
      recorded: [{ amount: '5', pay_to: payTo, swept_to: devnetAddress('operator'), symbol: 'USDC' }],
    });
    const both = await Promise.all([sweep(transaction), sweep(transaction)]);
    expect(both).toMatchObject([
      { recorded: [], repeated: [{ amount: '5' }] },
      { repeated: [{ amount: '5' }] },
    ]);
    expect(await listSweeps(ledger.pool, 10)).toMatchObject([{ data: { transaction } }]);
    expect((await listCosts(ledger.pool, 10)).map(({ data }) => data)).toMatchObject([
      { purpose: 'sweep', transaction, payer: payTo, operator: 'ada' },
      { purpose: 'refund', transaction: refund, payer: payTo, operator: 'ada' },
    ]);
    await database.asOwner((owner) => expectSoundLedger(database.db, owner));
  });

  test('that looks like a refund is recorded only if an operator says so, and is then no refund', async () => {
    const { database, paid, record, sweep, final } = await refunding(chain);
    const digest = await paid();
    const transaction = await final(await giveBack(chain));
    expect(await sweep(transaction, { isNoRefund: true })).toMatchObject({ kind: 'recorded' });
    expect(await record(digest, transaction)).toMatchObject({
      code: 'transfer_claimed',
      detail: expect.stringMatching(/^sweep:84532:/),
    });
    await database.asOwner((owner) => expectSoundLedger(database.db, owner));
  });

  test('may come from a payee that only the ledger knows, and from no other address', async () => {
    const { paid, sweep, final } = await refunding(chain);
    await paid();
    const transaction = await final(await giveBack(chain, { to: devnetAddress('operator'), amount: 7n }));
    expect(await sweep(transaction, {}, undefined, [])).toMatchObject({ recorded: [{ amount: '7' }] });
    const foreign = await giveBack(chain, { key: devnetKeys.thirdSpare, amount: 7n });
    expect(await sweep(foreign)).toMatchObject({ code: 'no_sweep' });
    expect(await sweep(nowhere)).toMatchObject({ code: 'transaction_unknown' });
    expect(await sweep(nowhere, { network: 'eip155:1' })).toMatchObject({ code: 'network_unknown' });
  });
});
