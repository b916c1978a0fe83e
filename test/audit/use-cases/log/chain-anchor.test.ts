import { createTestClient, type Hex, http, publicActions } from 'viem';
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { checkpointAnchor } from '../../../../src/devnet/contracts.ts';
import { checkpointAnchorAddress, deployCheckpointAnchor } from '../../../../src/devnet/checkpoint-anchor.ts';
import { deployPrepaidContract } from '../../../../src/devnet/prepaid-contract.ts';
import { callAs, readAt } from '../../../../src/devnet/deploy.ts';
import { sha256 } from '../../../../src/base/values/sha256.ts';
import { createAnchorConditions } from '../../../../src/audit/use-cases/log/conditions.ts';
import { createAnchor } from '../../../../src/audit/peers/anchors/create-anchor.ts';
import { readHead } from '../../../../src/audit/store/log.ts';
import { backUp } from '../../../support/backup.ts';
import { startBooks } from '../../../support/books.ts';
import { createDatabase } from '../../../support/database.ts';
import { useChain } from '../../../support/devnet.ts';
import { appendRefusals, rootOfEvents, sealAll, testSigner } from '../../../support/log.ts';
import { logLines } from '../../../support/log-lines.ts';
import { startRpcProxy } from '../../../support/rpc-proxy.ts';
import { eventually } from '../../../support/wait.ts';

const chain = useChain();
beforeAll(async () => {
  await deployPrepaidContract(chain.chain, chain.token);
  await deployCheckpointAnchor(chain.chain);
});

const origin = testSigner.name;
const nothing = { kind: 'none' } as const;
const node = () => createTestClient({ mode: 'anvil', transport: http(chain.rpcUrl) }).extend(publicActions);
const ether = (key: Hex, value = 10n ** 18n) =>
  node().setBalance({ address: privateKeyToAddress(key), value });

/** Its own key for every test: what another has anchored is not its own. */
async function fundedKey(): Promise<Hex> {
  const key = generatePrivateKey();
  await ether(key);
  return key;
}

const tableOf = (rpcUrl = chain.rpcUrl, contract = checkpointAnchorAddress) => `[[networks]]
id = "eip155:${chain.chain.chainId}"
rpc_url = "${rpcUrl}"
[[log.anchors]]
kind = "chain"
network = "eip155:${chain.chain.chainId}"
contract = "${contract}"
secret = "env:ANCHOR_KEY"
every_ms = 20`;
const tablesFor = (key: Hex, rpcUrl?: string) => ({ tables: tableOf(rpcUrl), env: { ANCHOR_KEY: key } });

function anchorOf(
  key: Hex,
  change: { readonly rpcUrl?: string; readonly contract?: Hex; readonly chainId?: number } = {},
) {
  const { chainId, rpcUrl } = { chainId: chain.chain.chainId, rpcUrl: chain.rpcUrl, ...change };
  const contract = change.contract ?? checkpointAnchorAddress;
  const network = `eip155:${chainId}` as const;
  return createAnchor({
    kind: 'chain',
    name: 'chain',
    everyMs: 20,
    network,
    chainId,
    rpcUrl,
    contract,
    privateKey: key,
  });
}

/** Reads like any account: with the key's address and the hash of the name. */
async function anchored(key: Hex, name = origin): Promise<{ size: number; root: Hex }> {
  const args = [privateKeyToAddress(key), sha256(name)];
  const call = { address: checkpointAnchorAddress, artifact: checkpointAnchor, functionName: 'newest', args };
  const [size, root] = (await readAt(chain.rpcUrl, call)) as [bigint, Hex, bigint];
  return { size: Number(size), root };
}

test("an anchor's key with ether for few checkpoints is an alert, which ends once it has enough", async () => {
  const database = await createDatabase();
  const key = generatePrivateKey();
  const anchor = anchorOf(key);
  onTestFinished(() => anchor.close());
  const subjects = async () => {
    // the ether is read behind a look, and again after a minute
    const { look, funds } = createAnchorConditions(database.pool, testSigner, [anchor]);
    await look();
    await eventually(() => expect(funds.size).toBe(1));
    return (await look()).map(({ kind, subject }) => `${kind} ${subject}`);
  };
  await ether(key, 10n ** 12n);
  expect(await subjects()).toEqual(['low_gas anchor chain']);
  await ether(key);
  expect(await subjects()).toEqual([]);
});

test('the newest head is on the chain, and its size only grows', async () => {
  const database = await createDatabase();
  const key = await fundedKey();
  await startBooks(database, tablesFor(key));
  for (const size of [30, 60]) {
    await appendRefusals(database, 30);
    await eventually(async () => expect((await anchored(key)).size).toBe(size));
    const root = (await rootOfEvents(database, size)).toString('hex');
    expect((await anchored(key)).root).toBe(`0x${root}`);
  }
  const again = (size: bigint) =>
    callAs(chain.chain, key, {
      address: checkpointAnchorAddress,
      artifact: checkpointAnchor,
      functionName: 'anchor',
      args: [sha256(origin), size, sha256('another history')],
    });
  await expect(again(60n)).rejects.toThrow(/NotNewer/);
  await expect(again(59n)).rejects.toThrow(/NotNewer/);
  expect((await anchored(key, 'another/log')).size).toBe(0);
});

test('a restored older database is refused with the chain as the only anchor', async () => {
  const database = await createDatabase();
  const key = await fundedKey();
  const first = await startBooks(database, tablesFor(key));
  await appendRefusals(database, 30);
  await eventually(async () => expect((await anchored(key)).size).toBe(30));
  await first.stop();
  const restore = await backUp(database);
  const second = await startBooks(database, tablesFor(key));
  await appendRefusals(database, 12);
  await eventually(async () => expect((await anchored(key)).size).toBe(42));
  await second.stop();
  await restore();
  await expect(startBooks(database, tablesFor(key))).rejects.toThrow(
    /has 30 events, but the contract 0x\w+ on eip155:\d+ .* holds a checkpoint of 42 events: the last 12 events are missing/,
  );

  await appendRefusals(database, 50);
  await sealAll(database);
  await expect(startBooks(database, tablesFor(key))).rejects.toThrow(/first 42 events .* another history/);

  await startBooks(database, { ...tablesFor(key), origin: `${origin}/2` });
  await eventually(async () => expect((await anchored(key, `${origin}/2`)).size).toBe(80));
  expect((await anchored(key)).size).toBe(42);
});

test('a gateway whose node is unreachable starts with a warning, and publishes once the node is back', async () => {
  const database = await createDatabase();
  const key = await fundedKey();
  const proxy = await startRpcProxy(chain.rpcUrl);
  proxy.lie = () => ({ error: { code: -32_603, message: 'out of order' } });
  const { logger, lines } = logLines();
  await startBooks(database, { ...tablesFor(key, proxy.url), logger });
  expect(lines).toContainEqual(
    expect.objectContaining({
      anchor: 'anchor-1',
      cause: 'rpc_error',
      msg: expect.stringMatching(/cannot be read/),
    }),
  );
  await appendRefusals(database, 5);
  await eventually(() =>
    expect(lines).toContainEqual(
      expect.objectContaining({ msg: 'an anchor did not take the checkpoint: it is tried again' }),
    ),
  );
  proxy.lie = () => undefined;
  await eventually(async () => expect((await anchored(key)).size).toBe(5));
});

test('a key without ether is logged and delays nothing else, and the head is published once the key has ether', async () => {
  const database = await createDatabase();
  const key = generatePrivateKey();
  const { logger, lines } = logLines();
  const gateway = await startBooks(database, { ...tablesFor(key), logger });
  await appendRefusals(database, 5);
  await eventually(() =>
    expect(lines).toContainEqual(expect.objectContaining({ cause: 'insufficient_funds' })),
  );
  expect((await fetch(`${gateway.url}/log/checkpoint`)).status).toBe(200);
  expect((await anchored(key)).size).toBe(0);
  await ether(key);
  await eventually(async () => expect((await anchored(key)).size).toBe(5));
});

test('a transaction that does not land is reported, and one that landed late is not sent again', async () => {
  const database = await createDatabase();
  const key = await fundedKey();
  await appendRefusals(database, 5);
  await sealAll(database);
  const { root, note } = (await readHead(database.pool, origin))!;
  const anchor = anchorOf(key);
  await node().setAutomine(false);
  await node().setIntervalMining({ interval: 0 });
  const answer = await anchor.publish({ origin, size: 5, root, note }, nothing);
  await node().setAutomine(true);
  expect(answer).toEqual({ kind: 'failed', cause: 'not_in_a_block_yet' });
  await node().mine({ blocks: 1 });
  expect((await anchored(key)).size).toBe(5);
  const sent = () => node().getTransactionCount({ address: privateKeyToAddress(key) });
  const before = await sent();
  expect(await anchor.publish({ origin, size: 5, root, note }, nothing)).toEqual({ kind: 'done' });
  expect(await sent()).toBe(before);
  await anchor.close();
});

test('an address without the contract, a node of another chain, and another root of the same size are no anchors', async () => {
  const database = await createDatabase();
  const key = await fundedKey();
  await appendRefusals(database, 5);
  await sealAll(database);
  const { root, note } = (await readHead(database.pool, origin))!;
  const missing = anchorOf(key, { contract: `0x${'ab'.repeat(20)}` });
  expect(await missing.publish({ origin, size: 5, root, note }, nothing)).toEqual({
    kind: 'failed',
    cause: 'no_contract',
  });
  const elsewhere = anchorOf(key, { chainId: 1 });
  expect(await elsewhere.newest?.(origin)).toEqual({ kind: 'failed', cause: 'wrong_chain' });
  const anchor = anchorOf(key);
  expect(await anchor.publish({ origin, size: 5, root: Buffer.alloc(32, 9), note }, nothing)).toEqual({
    kind: 'done',
  });
  expect(await anchor.publish({ origin, size: 5, root, note }, nothing)).toEqual({
    kind: 'failed',
    cause: 'another_history',
  });
  for (const one of [missing, elsewhere, anchor]) await one.close();
});
