import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { createWalletClient, http, keccak256, stringToHex } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { expect, test } from 'vitest';
import { devnetAddress, devnetKeys } from '../../../../src/devnet/accounts.ts';
import { multicall3Address } from '../../../../src/devnet/chain.ts';
import { multicall3 } from '../../../../src/devnet/contracts.ts';
import { type RefundBatch, safeBatch } from '../../../../src/finance/rules/refund-batch.ts';
import type { Hex } from '../../../../src/base/values/primitives.ts';
import { useChain } from '../../../support/devnet.ts';
import { allEvents, expectSoundLedger } from '../../../support/invariants.ts';
import { withEuroByPermit2 } from '../../../support/permit2.ts';
import { temporaryFolder, tollbook } from '../../../support/program.ts';
import { giveBack, network, payerAddress, price, refunding, transactionCount } from './support.ts';

const chain = useChain();

/** Sends the calls of a batch in one transaction, as a multisig does. */
async function sendAtOnce({ refunds }: RefundBatch): Promise<Hex> {
  const wallet = createWalletClient({
    account: privateKeyToAccount(devnetKeys.spare),
    transport: http(chain.rpcUrl),
  });
  const calls = refunds.map(({ call }) => ({ target: call.to, callData: call.data as Hex }));
  return wallet.writeContract({
    address: multicall3Address,
    abi: multicall3.abi,
    functionName: 'aggregate',
    args: [calls],
    chain: null,
  });
}

test('refunds that are due are sent as one batch, and each is recorded once by what the chain shows', async () => {
  const { database, owed, final } = await refunding(chain, await withEuroByPermit2(chain));
  const digests: Hex[] = [];
  for (let payment = 0; payment < 4; payment++) digests.push((await owed(payment === 1 ? 1 : 0)).quoteDigest);
  const env = { DATABASE_URL: database.url };
  const folder = temporaryFolder();
  const [out, safe, cut] = ['batch.json', 'safe.json', 'cut.json'].map((file) => path.join(folder, file)) as [
    string,
    string,
    string,
  ];
  const rpc = ['--rpc', `${network}=${chain.rpcUrl}`];
  const make = (...more: string[]) =>
    tollbook(['refunds', 'batch', '--network', network, ...more, ...rpc], env);
  const few = await make('--out', cut, '--max', '1');
  expect([few.code, few.stdout]).toEqual([0, expect.stringContaining(`1 refund in ${cut}.`)]);
  expect(few.stdout).toContain('More are due');
  expect(few.stdout).toContain(
    `They are started: their calls are not delivered, and no other batch has them. Record them with \`tollbook refunds record --batch ${cut} --tx`,
  );
  const made = await make('--out', out, '--safe', safe);
  expect([made.code, made.stdout]).toEqual([0, expect.stringContaining(`3 refunds in ${out} and ${safe}.`)]);
  expect(made.stdout).toContain(`left out: quote ${digests[0]} has a refund under way`);
  const batch = JSON.parse(readFileSync(out, 'utf8')) as RefundBatch;
  expect(batch.refunds.map(({ quote_digest }) => quote_digest)).toEqual(digests.slice(1));
  expect(batch.refunds[0]).toMatchObject({
    to: payerAddress,
    amount: String(price),
    asset: chain.secondToken,
  });
  const forSafe = JSON.parse(readFileSync(safe, 'utf8'));
  expect(forSafe.transactions).toHaveLength(3);
  expect(forSafe.transactions[0].contractInputsValues).toEqual({ to: payerAddress, value: String(price) });

  // the wallet leaves the last one out
  const sent = { ...batch, refunds: batch.refunds.slice(0, 2) };
  await chain.mint(multicall3Address, price);
  await chain.mint(multicall3Address, price, chain.secondToken);
  const transaction = await final(await sendAtOnce(sent));
  const order = ['refunds', 'record', '--batch', out, '--tx', transaction, '--by', 'ada'];
  const [one, other] = await Promise.all([
    tollbook([...order, ...rpc], env),
    tollbook([...order, ...rpc], env),
  ]);
  for (const { code, stderr } of [one, other]) {
    expect(code).toBe(2);
    expect(stderr).toMatch(new RegExp(`quote ${digests[3]}: that transfer is already recorded`));
  }
  expect((one.stdout + other.stdout).match(/^Refunded: /gm)).toHaveLength(2);
  // somebody else sent it for the multisig, and paid for it
  const sender = devnetAddress('spare');
  const command = `tollbook costs record --network ${network} --tx ${transaction} --purpose refund --payer ${sender}`;
  for (const { stdout } of [one, other])
    expect(stdout.match(/^Gas: .*$/gm)).toEqual([
      `Gas: not recorded, because ${sender} sent it, which is not known as yours. If it is: \`${command}\`.`,
    ]);
  const refunds = (await allEvents(database.db)).filter(({ type }) => type === 'refunded');
  expect(refunds.map(({ stream }) => stream)).toEqual(digests.slice(1, 3));
  const last = await final(await giveBack(chain));
  const whole = await tollbook([...order, '--tx', last, ...rpc], env);
  expect([whole.code, whole.stdout.match(/^(?:Refunded|Recorded before): /gm)]).toEqual([
    0,
    ['Recorded before: ', 'Recorded before: ', 'Refunded: '],
  ]);
  const first = await final(await giveBack(chain));
  expect(
    await tollbook(['refunds', 'record', '--batch', cut, '--tx', first, '--by', 'ada', ...rpc], env),
  ).toMatchObject({ code: 0, stdout: expect.stringContaining('Refunded: ') });
  const none = await make('--out', out);
  expect(none.stdout).toContain('No refund is due');
  await database.asOwner((owner) => expectSoundLedger(database.db, owner));
});

test('a batch whose file was lost is written again by the same command, and starts no other refund', async () => {
  const { database, owed } = await refunding(chain);
  for (let payment = 0; payment < 2; payment++) await owed();
  const out = path.join(temporaryFolder(), 'batch.json');
  const sender = devnetAddress('secondSpare');
  const nonce = String(await transactionCount(chain.rpcUrl, sender));
  const make = async () => {
    const by = ['--from', sender, '--nonce', nonce, '--rpc', `${network}=${chain.rpcUrl}`];
    const made = await tollbook(['refunds', 'batch', '--network', network, '--out', out, ...by], {
      DATABASE_URL: database.url,
    });
    expect(made.code).toBe(0);
    return { ...made, refunds: (JSON.parse(readFileSync(out, 'utf8')) as RefundBatch).refunds };
  };
  const first = await make();
  expect(first.refunds.map((one) => one.sender_nonce)).toEqual([Number(nonce), Number(nonce) + 1]);
  const events = await allEvents(database.db);
  rmSync(out);
  await owed();
  const again = await make();
  expect(again.stdout).toContain('They were started before');
  expect(again.refunds).toEqual(first.refunds);
  const started = (all: typeof events) => all.filter(({ type }) => type === 'refund_started');
  expect(started(await allEvents(database.db))).toEqual(started(events));
  await database.asOwner((owner) => expectSoundLedger(database.db, owner));
});

test('a batch whose file names another payee records nothing for that payee', async () => {
  const { database, owed, final } = await refunding(chain);
  const { quoteDigest: digest } = await owed();
  const env = { DATABASE_URL: database.url };
  const out = path.join(temporaryFolder(), 'batch.json');
  const rpc = ['--rpc', `${network}=${chain.rpcUrl}`];
  await tollbook(['refunds', 'batch', '--network', network, '--out', out, ...rpc], env);
  const thief = `0x${'66'.repeat(20)}` as const;
  writeFileSync(out, readFileSync(out, 'utf8').replaceAll(payerAddress, thief));
  const transaction = await final(await giveBack(chain, { to: thief }));
  const order = [
    'refunds',
    'record',
    '--batch',
    out,
    '--tx',
    transaction,
    '--rpc',
    `${network}=${chain.rpcUrl}`,
  ];
  const { code, stderr } = await tollbook(order, env);
  expect([code, stderr]).toEqual([
    2,
    expect.stringContaining(`quote ${digest}: that transaction does not transfer`),
  ]);
  expect((await allEvents(database.db)).filter(({ type }) => type === 'refunded')).toEqual([]);
  expect(await tollbook([...order, '--goodwill'], env)).toMatchObject({ code: 2 });
  writeFileSync(out, '{}');
  expect(await tollbook(order, env)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('is not a batch'),
  });
});

test('a Safe takes the batch as one that was not changed: its checksum is the hash of its own serialisation', () => {
  const file = safeBatch({ version: 1, network, as_of_seq: 7, refunds: [] }, 1_790_000_000_000) as {
    meta: { checksum: string };
  };
  const text =
    '{["chainId","createdAt","meta","transactions","version"]"84532",1790000000000,' +
    '{["createdFromOwnerAddress","createdFromSafeAddress","description","name","txBuilderVersion"]"","",' +
    '"0 refunds that were due at event 7",null,"1.16.5",},[],"1.0",}';
  expect(file.meta.checksum).toBe(keccak256(stringToHex(text)));
});
