import { afterAll, beforeAll, expect, test } from 'vitest';
import { createDatabase } from '../../../support/database.ts';
import { eventually } from '../../../support/wait.ts';
import { atomsOf, follower, ledger } from './follower.ts';
import { type EventChain, mintTerms, startEventChain } from './support.ts';

let chain: EventChain;
beforeAll(async () => {
  chain = await startEventChain();
});
afterAll(() => chain.stop());

test('each event after the first sight fires once and in order, when its block is final, with what the event says', async () => {
  const database = await createDatabase();
  const calls = ledger();
  await chain.mint(1);
  await chain.mine(3);
  const { look, lag } = follower(database, mintTerms(chain), calls);
  await look();
  const hashes = await chain.mint(2, 3, 3, 4);
  await eventually(async () => {
    await look();
    expect(atomsOf(calls)).toEqual([2, 3, 3, 4]);
  });
  expect(calls.repeated()).toBe(0);
  expect(calls.bodies.map(({ transaction }) => transaction)).toEqual(hashes);
  expect(calls.bodies[0]).toMatchObject({
    trigger: 'mints',
    network: 'eip155:84532',
    address: chain.token,
    event: 'Transfer(address,address,uint256)',
    args: { from: `0x${'0'.repeat(40)}`, to: `0x${'cd'.repeat(20)}`, value: '2' },
    log_index: 0,
  });
  expect(await lag()).toMatchObject({ problem: undefined, isBehind: false });
});

test('with start_block the events since that block fire, over ranges and single blocks, and none twice', async () => {
  const database = await createDatabase();
  const calls = ledger();
  const startBlock = (await chain.height()) + 1n;
  await chain.mint(1);
  await chain.mine(150);
  await chain.mint(2);
  await chain.mine(10);
  await chain.mint(3);
  const { look, lag } = follower(
    database,
    mintTerms(chain, { startBlock, finality: { confirmations: 0 } }),
    calls,
  );
  await look();
  expect(atomsOf(calls)).toEqual([1, 2, 3]);
  await look();
  expect([atomsOf(calls), calls.repeated()]).toEqual([[1, 2, 3], 0]);
  expect(await lag()).toMatchObject({ blocks: 0 });
});

test('after a reorg no event is lost and none done twice: one that lands again in another block is the same, a new one is not', async () => {
  const database = await createDatabase();
  const calls = ledger();
  const { look, lines } = follower(database, mintTerms(chain, { finality: { confirmations: 0 } }), calls);
  await look();
  const before = await chain.height();
  const kept = await chain.signMint(11);
  await chain.send(kept);
  await chain.mint(12);
  await look();
  expect(atomsOf(calls)).toEqual([11, 12]);
  const [first] = calls.bodies;

  await chain.reorg(before, [kept]);
  await chain.mint(13);
  await look();
  expect(atomsOf(calls)).toEqual([11, 12, 13]);
  expect(calls.repeated()).toBe(1);
  // the call has the block of its first time
  expect(calls.bodies[0]).toEqual(first);
  expect(lines.map(({ msg }) => msg)).toEqual([
    'blocks that a trigger had read were replaced: it reads them again',
  ]);
  await chain.mine(2);
  await look();
  expect([atomsOf(calls), calls.repeated()]).toEqual([[11, 12, 13], 1]);
});

test('a reorg below every block that was kept in memory is found from the database by the next process', async () => {
  const database = await createDatabase();
  const calls = ledger();
  const terms = mintTerms(chain, { finality: { confirmations: 0 } });
  const one = follower(database, terms, calls);
  await one.look();
  const before = await chain.height();
  for (const atoms of [21, 22, 23, 24, 25, 26, 27]) {
    await chain.mint(atoms);
    await one.look();
  }
  await chain.reorg(before);
  await chain.mint(28, 29);
  await chain.mine(20);
  await follower(database, terms, calls).look();
  expect(atomsOf(calls)).toEqual([21, 22, 23, 24, 25, 26, 27, 28, 29]);
});

test('a process that ends at any event loses none: the next process continues at the cursor and repeats only known ones', async () => {
  const database = await createDatabase();
  const calls = ledger();
  const terms = mintTerms(chain, { finality: { confirmations: 0 } });
  await follower(database, terms, calls).look();
  const all = [31, 32, 33, 34, 35, 36];
  await chain.mint(...all);
  for (const last of all) {
    calls.before = (atoms) => {
      if (atoms === last) throw new Error('the process ends');
    };
    await expect(follower(database, terms, calls).look()).rejects.toThrow('the process ends');
    expect(atomsOf(calls)).toEqual(all.filter((atoms) => atoms < last));
  }
  calls.before = () => undefined;
  await follower(database, terms, calls).look();
  expect(atomsOf(calls)).toEqual(all);
});

test('one process at a time looks at the chain of a trigger, and another one takes over once its time is over', async () => {
  const database = await createDatabase();
  const calls = ledger();
  const terms = mintTerms(chain, { finality: { confirmations: 0 }, pollSecs: 3_600 });
  const [one, other] = [follower(database, terms, calls), follower(database, terms, calls)];
  await one.look();
  await chain.mint(41);
  await one.followIfDue();
  await other.followIfDue();
  expect(atomsOf(calls)).toEqual([]);
  await database.moveClock(3_601);
  await other.followIfDue();
  expect(atomsOf(calls)).toEqual([41]);
  await database.moveClock(-100);
  await chain.mint(42);
  await one.followIfDue();
  expect(atomsOf(calls)).toEqual([41, 42]);
});

test('a ledger that takes no further call stops the cursor, and the events continue once it does', async () => {
  const database = await createDatabase();
  const calls = ledger();
  const terms = mintTerms(chain, { finality: { confirmations: 0 } });
  const { look } = follower(database, terms, calls);
  await look();
  await chain.mint(51, 52, 53);
  calls.room = 2;
  await look();
  await look();
  expect([atomsOf(calls), calls.repeated()]).toEqual([[51, 52], 0]);
  calls.room = 3;
  await look();
  expect([atomsOf(calls), calls.repeated()]).toEqual([[51, 52, 53], 0]);
});

test('a trigger that gets other contracts or blocks continues from its place: no event between the two configurations is lost', async () => {
  const database = await createDatabase();
  const calls = ledger();
  const finality = { confirmations: 0 };
  await follower(database, mintTerms(chain, { finality }), calls).look();
  await chain.mint(61);
  const addresses = [chain.token, `0x${'99'.repeat(20)}`] as const;
  await follower(database, mintTerms(chain, { finality, addresses }), calls).look();
  expect(atomsOf(calls)).toEqual([61]);
  await chain.mint(62);
  const final = follower(database, mintTerms(chain), calls);
  await eventually(async () => {
    await final.look();
    expect(atomsOf(calls)).toEqual([61, 62]);
  });
});
