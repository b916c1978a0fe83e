import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { devnetAddress, devnetKeys } from '../../../../src/devnet/accounts.ts';
import { listCosts, listSweeps } from '../../../../src/payments/store/refunds.ts';
import { useChain } from '../../../support/devnet.ts';
import { payTo } from '../../../support/gateway.ts';
import type { EventOf } from '../../../../src/ledger/rules/event.ts';
import { temporaryFolder, tollbook } from '../../../support/program.ts';
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

test('lists of refunds due, sweeps and costs have the worth of each amount by default, and say where no rate is known', async () => {
  const { database, ledger, paid, sweep, final } = await refunding(chain);
  const digest = await paid();
  await sweep(await final(await giveBack(chain, { to: devnetAddress('operator'), amount: 5n })));
  const rates = path.join(temporaryFolder(), 'rates.csv');
  writeFileSync(rates, '2020-01-01,USDC-84532,USD,2\n2999-01-01,ETH-84532,USD,3000\n');
  const list = (args: readonly string[], env = {}) => tollbook(args, { DATABASE_URL: database.url, ...env });
  const valued = { TOLLBOOK_RATES: rates };
  const [{ data: cost }] = (await listCosts(ledger.pool, 10)) as [EventOf<'transaction_cost_recorded'>];
  expect((await list(['sweeps', 'list'], valued)).stdout).toContain('(5 atoms; 0.000010 USD) on');
  expect((await list(['costs', 'list'], valued)).stdout).toContain(`${cost.symbol}, no rate in USD (sweep)`);
  const due = (await list(['refunds', 'due'], valued)).stdout;
  expect(due).toContain(`quote ${digest}  due since`);
  expect(due).toMatch(/\(\d+ (?:s|min)\).*\n {2}[\d.]+ USDC \(\d+ atoms; [\d.]+ USD\) on/);
  // without rates, as before
  expect((await list(['sweeps', 'list'])).stdout).toContain('(5 atoms) on');
  expect(await list(['sweeps', 'list', '--value-in', 'USD'])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('--value-in goes with --rates'),
  });
});
