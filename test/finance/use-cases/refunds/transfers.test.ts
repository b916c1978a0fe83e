import { describe, expect, test } from 'vitest';
import { devnetAddress, devnetKeys } from '../../../../src/devnet/accounts.ts';
import type { Hex } from '../../../../src/base/values/primitives.ts';
import {
  type UnexplainedTransferOrder,
  recordUnexplainedTransfer,
  reverseUnexplainedTransfer,
} from '../../../../src/finance/use-cases/refunds/record-unexplained-transfer.ts';
import { listCosts, listTransfers } from '../../../../src/payments/store/refunds.ts';
import { startFacilitatorProxy } from '../../../support/facilitator-proxy.ts';
import { useChain } from '../../../support/devnet.ts';
import { payTo } from '../../../support/gateway.ts';
import { allEvents, expectSoundLedger } from '../../../support/invariants.ts';
import { header, quoteAndSign } from '../../../support/payer.ts';
import { tollbook } from '../../../support/program.ts';
import { chainsThatStandStill, giveBack, network, price, refunding } from './support.ts';

const chain = useChain();
const nowhere = `0x${'a'.repeat(64)}` as const;
const sender = devnetAddress('thirdSpare');
const strangers = devnetKeys.thirdSpare;

/** A gateway with one payment, so that its payee is known, and what operators record beside. */
async function unexplainedTransfer(options: Parameters<typeof refunding>[1] = {}) {
  const setup = await refunding(chain, options);
  const { ledger, chains, final } = setup;
  return {
    ...setup,
    /** Money that comes to the payee without a payment; waits until it is final. */
    async came(amount: bigint, key = strangers, to: Hex = payTo): Promise<Hex> {
      return final(await giveBack(chain, { key, to, amount }));
    },
    async gone(amount: bigint, to: Hex = sender): Promise<Hex> {
      return final(await giveBack(chain, { to, amount }));
    },
    record: (
      transaction: Hex,
      use: UnexplainedTransferOrder['use'],
      change: Partial<UnexplainedTransferOrder> = {},
      at = chains,
    ) => {
      const order = { network, transaction, logIndex: undefined, use, operator: 'ada', ...change } as const;
      const accepted = [{ network, asset: chain.token, symbol: 'USDC', decimals: 6, payTo }] as const;
      return recordUnexplainedTransfer(ledger, order, at, accepted);
    },
    reverse: (transaction: Hex) =>
      reverseUnexplainedTransfer(ledger, {
        network,
        transaction,
        logIndex: undefined,
        why: 'wrong',
        operator: 'eve',
      }),
  };
}

const suspense = { as: 'suspense' } as const;
const income = { as: 'income' } as const;
const own = { as: 'own' } as const;

describe('money that came without a payment', () => {
  test('is in suspense until it is kept or given back, each once', async () => {
    const { database, ledger, came, gone, record } = await unexplainedTransfer();
    const kept = await came(5n);
    expect(await record(kept, suspense)).toMatchObject({
      kind: 'recorded',
      record: { as: 'suspense', amount: '5', pay_to: payTo, received_from: sender, symbol: 'USDC' },
    });
    expect(await record(kept, suspense)).toMatchObject({ kind: 'repeated' });
    expect(await record(kept, own)).toMatchObject({ code: 'recorded_otherwise', detail: 'suspense' });
    expect(await record(kept, income)).toMatchObject({ kind: 'recorded', record: { as: 'income' } });
    expect(await record(kept, income)).toMatchObject({ kind: 'repeated' });
    expect(await record(kept, suspense)).toMatchObject({ code: 'recorded_otherwise', detail: 'income' });

    const [returned, back] = [await came(7n), await gone(7n)];
    const use = { as: 'returned', by: back } as const;
    expect(await record(kept, use)).toMatchObject({ code: 'recorded_otherwise' });
    expect(await record(returned, use)).toMatchObject({
      kind: 'recorded',
      record: { as: 'returned', returned: { from: payTo, transaction: back } },
    });
    expect(await record(returned, use)).toMatchObject({ kind: 'repeated' });
    const early = await gone(8n);
    const again = await came(8n);
    expect(await record(again, use)).toMatchObject({ code: 'no_return' });
    expect(await record(again, { as: 'returned', by: early })).toMatchObject({ code: 'returned_before' });
    expect(await record(again, { as: 'returned', by: kept })).toMatchObject({ code: 'no_return' });
    expect((await listTransfers(ledger.pool, 10)).map(({ data }) => 'as' in data && data.as)).toEqual([
      'returned',
      'suspense',
      'income',
      'suspense',
    ]);
    await database.asOwner((owner) => expectSoundLedger(database.db, owner));
  });

  test("is the operator's own from a payee to itself, or from another account", async () => {
    const { came, record, final } = await unexplainedTransfer();
    const around = await final(await giveBack(chain, { to: payTo, amount: 3n }));
    expect(await record(around, suspense)).toMatchObject({ code: 'to_itself' });
    expect(await record(around, own)).toMatchObject({ kind: 'recorded', record: { received_from: payTo } });
    expect(await record(await came(4n), own)).toMatchObject({ kind: 'recorded' });
  });

  test('is recorded only as the chain shows it, and only when that is final', async () => {
    const { came, gone, record } = await unexplainedTransfer();
    const transaction = await came(5n);
    const standing = await chainsThatStandStill(chain.rpcUrl);
    const unfinal = await giveBack(chain, { key: strangers, to: payTo, amount: 6n });
    expect(await record(unfinal, suspense, {}, standing)).toMatchObject({ code: 'not_final' });
    expect(await record(nowhere, suspense)).toMatchObject({ code: 'transaction_unknown' });
    expect(await record(transaction, suspense, { network: 'eip155:1' })).toMatchObject({
      code: 'network_unknown',
    });
    expect(await record(transaction, suspense, { logIndex: 99 })).toMatchObject({ code: 'no_transfer' });
    expect(await record(await gone(8n), suspense)).toMatchObject({ code: 'no_transfer' });
    expect(await record(transaction, { as: 'returned', by: await gone(4n) })).toMatchObject({
      code: 'no_return',
    });
    expect(
      await record(transaction, { as: 'returned', by: await gone(5n, devnetAddress('operator')) }),
    ).toMatchObject({ code: 'no_return' });
  });

  test('is not a payment, sweep or refund: each transfer counts once', async () => {
    const { database, paid, record, sweep, came, gone, final } = await unexplainedTransfer();
    const digest = await paid();
    const [settled] = (await allEvents(database.db)).filter(({ type }) => type === 'payment_settled');
    const { transaction } = settled!.data as { transaction: Hex };
    expect(await record(await final(transaction), suspense)).toMatchObject({
      code: 'transfer_claimed',
      detail: digest,
    });
    const [money, back] = [await came(5n), await gone(5n)];
    expect(await sweep(back)).toMatchObject({ kind: 'recorded' });
    expect(await record(money, { as: 'returned', by: back })).toMatchObject({
      code: 'transfer_claimed',
      detail: expect.stringMatching(/^sweep:/),
    });
    const second = await gone(5n);
    expect(await record(money, { as: 'returned', by: second })).toMatchObject({ kind: 'recorded' });
    expect(await sweep(second)).toMatchObject({ code: 'transfer_claimed' });
    await database.asOwner((owner) => expectSoundLedger(database.db, owner));
  });

  test('of a payment whose outcome the gateway does not know yet is that payment', async () => {
    const proxy = await startFacilitatorProxy(chain.facilitatorUrl);
    const { database, gateway, record, final } = await unexplainedTransfer({
      facilitatorUrl: proxy.url,
      top: 'confirm = "never"',
    });
    // settled on the chain, and reported under another transaction
    const payment = await quoteAndSign(gateway, '/x402/jobs/1/0', 'x');
    proxy.faults.settle = 'pass';
    const { json } = await gateway.post('/x402/jobs/1/0', { body: 'x', headers: header(payment) });
    expect(json.quote_digest).toMatch(/^0x/);
    const [settled] = (await allEvents(database.db)).filter(({ type }) => type === 'payment_settled');
    const { transaction, log_index } = settled!.data as { transaction: Hex; log_index?: number };
    expect(log_index).toBeUndefined();
    expect(await record(await final(transaction), income)).toMatchObject({
      code: 'payment_known',
      detail: json.quote_digest,
    });
  });

  test('given back once gives back one amount, also with concurrent commands', async () => {
    const { database, ledger, came, gone, record } = await unexplainedTransfer();
    const [one, other] = [await came(21n), await came(21n)];
    const use = { as: 'returned', by: await gone(21n) } as const;
    const answers = await Promise.all([record(one, use), record(other, use), record(one, use)]);
    const kinds = answers.map((answer) => (answer.kind === 'refused' ? answer.code : answer.kind));
    expect(kinds.filter((kind) => kind === 'recorded')).toHaveLength(1);
    expect((await listCosts(ledger.pool, 10)).map(({ data }) => data)).toMatchObject([
      { purpose: 'transfer', transaction: use.by, payer: payTo },
    ]);
    const returned = (await allEvents(database.db)).filter(
      ({ data }) => (data as { as?: string }).as === 'returned',
    );
    expect(returned).toHaveLength(1);
    await database.asOwner((owner) => expectSoundLedger(database.db, owner));
  });

  test('recorded wrongly is reversed with a reason, and its transfers are free for other records', async () => {
    const { database, came, gone, record, reverse, sweep } = await unexplainedTransfer();
    const [money, back] = [await came(9n), await gone(9n)];
    expect(await reverse(money)).toMatchObject({ code: 'not_recorded' });
    expect(await record(money, { as: 'returned', by: back })).toMatchObject({ kind: 'recorded' });
    const answers = await Promise.all([reverse(money), reverse(money)]);
    expect(answers.map((answer) => answer.kind).toSorted()).toEqual(['refused', 'reversed']);
    expect(await sweep(back)).toMatchObject({ kind: 'recorded' });
    expect(await record(money, { as: 'returned', by: back })).toMatchObject({ code: 'transfer_claimed' });
    expect(await record(money, income)).toMatchObject({ kind: 'recorded' });
    await database.asOwner((owner) => expectSoundLedger(database.db, owner));
  });

  test('is recorded, listed and reversed from the shell', async () => {
    const { database, came } = await unexplainedTransfer();
    const transaction = await came(price);
    const env = { DATABASE_URL: database.url };
    const place = ['--network', network, '--tx', transaction, '--by', 'ada'];
    const rpc = ['--rpc', `${network}=${chain.rpcUrl}`];
    expect(await tollbook(['transfers', 'record', ...place, ...rpc], env)).toMatchObject({ code: 2 });
    const both = await tollbook(['transfers', 'record', ...place, ...rpc, '--own', '--income'], env);
    expect(both).toMatchObject({ code: 2, stderr: expect.stringContaining('--suspense') });
    // the payee of this ledger is known by no quote yet
    const unknown = await tollbook(['transfers', 'record', ...place, ...rpc, '--suspense'], env);
    expect(unknown).toMatchObject({ code: 2, stderr: expect.stringContaining('transfers nothing to') });
    expect(await tollbook(['transfers', 'list'], env)).toMatchObject({
      stdout: 'No transfer is recorded.\n',
    });
    const reversal = await tollbook(['transfers', 'reverse', ...place, '--why', 'wrong'], env);
    expect(reversal).toMatchObject({ code: 2, stderr: expect.stringContaining('nothing that') });
  });
});
