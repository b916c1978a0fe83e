import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { createTestClient, http, publicActions } from 'viem';
import { beforeAll, expect, test } from 'vitest';
import { openPublicationsOf } from '../../../../src/audit/terminal/chains.ts';
import { checkpointAnchorAddress, deployCheckpointAnchor } from '../../../../src/devnet/checkpoint-anchor.ts';
import { deployPrepaidContract } from '../../../../src/devnet/prepaid-contract.ts';
import type { Hex } from '../../../../src/base/values/primitives.ts';
import { listCosts } from '../../../../src/payments/store/refunds.ts';
import { network } from '../../../finance/use-cases/refunds/support.ts';
import { startPublisher } from '../../../support/anchor-publisher.ts';
import { booksConfig, booksConfigOf, booksEnv } from '../../../support/books.ts';
import { createDatabase } from '../../../support/database.ts';
import { useChain } from '../../../support/devnet.ts';
import { expectSoundLedger } from '../../../support/invariants.ts';
import { appendRefusals, beginGeneration, sealAll, testSigner } from '../../../support/log.ts';
import { temporaryFolder, tollbook } from '../../../support/program.ts';
import { startRpcProxy } from '../../../support/rpc-proxy.ts';
import { eventually } from '../../../support/wait.ts';
import { timeLimits } from '../../../support/time-limits.ts';

const chain = useChain();
beforeAll(async () => {
  await deployPrepaidContract(chain.chain, chain.token);
  await deployCheckpointAnchor(chain.chain);
});
const node = () =>
  createTestClient({
    mode: 'anvil',
    transport: http(chain.rpcUrl, { timeout: timeLimits.conditionMs }),
  }).extend(publicActions);

const anchorTable = (rpcUrl: string): string => `[[networks]]
id = "${network}"
rpc_url = "${rpcUrl}"
[[log.anchors]]
kind = "chain"
network = "${network}"
contract = "${checkpointAnchorAddress}"
secret = "env:ANCHOR_KEY"`;

/** A ledger, its gateway's configuration with an anchor by that key, and a node that may refuse to search for logs. */
async function setUp(key: Hex) {
  const database = await createDatabase();
  await appendRefusals(database, 3);
  const proxy = await startRpcProxy(chain.rpcUrl);
  const file = path.join(temporaryFolder(), 'gateway.toml');
  writeFileSync(file, booksConfig({ tables: anchorTable(proxy.url) }));
  const env = { ...booksEnv, ANCHOR_KEY: key, DATABASE_URL: database.url };
  return {
    database,
    proxy,
    missing: (...more: readonly string[]) =>
      tollbook(['costs', 'record', '--missing', '--by', 'ada', '--config', file, ...more], env),
    payers: async () =>
      (await listCosts(database.pool, 10)).map(({ data: { payer, purpose } }) => `${purpose} ${payer}`),
  };
}

async function untilFinal(): Promise<void> {
  const { number } = await node().getBlock({ blockTag: 'latest' });
  await eventually(async () =>
    expect((await node().getBlock({ blockTag: 'finalized' })).number).toBeGreaterThanOrEqual(number),
  );
}

test("`costs record --missing` records what each anchor of the configuration cost, once, and none of another log or of another's account", async () => {
  const [own, other] = [await startPublisher(chain.rpcUrl), await startPublisher(chain.rpcUrl)];
  const { database, proxy, missing, payers } = await setUp(own.key);
  await own.publish(2);
  await own.publish(2, 'another.example/log');
  await other.publish(2);
  await own.publish(3);
  await untilFinal();
  // a node that answers for few blocks at a time
  const asked: bigint[] = [];
  proxy.lie = ({ method, params }) => {
    if (method !== 'eth_getLogs') return undefined;
    const { fromBlock, toBlock } = params[0] as { readonly fromBlock: Hex; readonly toBlock: Hex };
    const blocks = BigInt(toBlock) - BigInt(fromBlock) + 1n;
    asked.push(blocks);
    return blocks > 4n ? { error: { code: -32_000, message: 'the range is too wide' } } : undefined;
  };
  const first = await missing();
  expect(first).toMatchObject({ code: 0, stderr: '' });
  const line = new RegExp(
    String.raw`^Recorded: 0\.\d{18} ETH of gas \(anchor\), paid by ${own.by}, transaction 0x[0-9a-f]{64} \(anchor\) on ${network}\.$`,
  );
  expect(first.stdout.trim().split('\n')).toEqual([expect.stringMatching(line), expect.stringMatching(line)]);
  expect(asked.filter((blocks) => blocks > 4n).length).toBeGreaterThan(0);
  // what was refused once is not asked again
  expect(asked.slice(asked.findLastIndex((blocks) => blocks > 4n) + 1).length).toBeGreaterThan(1);
  expect(await missing()).toMatchObject({ code: 0, stdout: 'No cost is missing.\n' });
  expect(await payers()).toEqual([`anchor ${own.by}`, `anchor ${own.by}`]);

  expect(await missing('--payer', other.by)).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(new RegExp(`^Recorded: .* paid by ${other.by}, .*\n$`)) as string,
  });
  expect(await payers()).toEqual([`anchor ${other.by}`, `anchor ${own.by}`, `anchor ${own.by}`]);
  await database.asOwner((owner) => expectSoundLedger(database.db, owner));
});

test('`costs record --missing` names the contract whose anchors a node does not tell, and is not done then', async () => {
  const own = await startPublisher(chain.rpcUrl);
  const { proxy, missing, payers } = await setUp(own.key);
  await own.publish(3);
  await untilFinal();
  proxy.lie = ({ method }) =>
    method === 'eth_getLogs' ? { error: { code: -32_000, message: 'no logs here' } } : undefined;
  expect(await missing()).toMatchObject({
    code: 2,
    stdout: '',
    stderr: expect.stringMatching(
      new RegExp(
        `^anchors in the contract ${checkpointAnchorAddress} on ${network}: the chain did not name all of them.*\\(rpc_error\\)\n$`,
      ),
    ) as string,
  });
  expect(await missing('--network', 'eip155:1')).toMatchObject({ code: 0, stdout: 'No cost is missing.\n' });
  // the given node is asked in place of the configured one
  expect(await missing('--rpc', `${network}=${chain.rpcUrl}`)).toMatchObject({ code: 0, stderr: '' });
  expect(await payers()).toEqual([`anchor ${own.by}`]);
});

test('`costs record --missing` finds the anchors of the log before and after a recovery, which gives it another name', async () => {
  const own = await startPublisher(chain.rpcUrl);
  const { database, missing, payers } = await setUp(own.key);
  await sealAll(database);
  await own.publish(3);
  await beginGeneration(database, 2, 3);
  await sealAll(database);
  await own.publish(4, `${testSigner.name}/2`);
  await untilFinal();
  expect(await missing()).toMatchObject({ code: 0, stderr: '' });
  expect(await payers()).toEqual([`anchor ${own.by}`, `anchor ${own.by}`]);
});

test('anchors before the wanted time are not looked for', async () => {
  const own = await startPublisher(chain.rpcUrl);
  const found = async (sinceSecs: number): Promise<number> => {
    const config = await booksConfigOf({ tables: anchorTable(chain.rpcUrl), env: { ANCHOR_KEY: own.key } });
    const [publications] = openPublicationsOf(config, new Map());
    let count = 0;
    for await (const range of publications?.find({
      sinceSecs,
      origins: [],
      others: [],
      onProgress: () => {},
    }) ?? [])
      if (range.kind === 'answer') count += range.published.length;
    await publications?.close();
    return count;
  };
  await own.publish(1);
  // a search begins at most a thousand blocks too early
  await node().mine({ blocks: 1_100, interval: 60 });
  const { number } = await node().getBlock({ blockTag: 'latest' });
  const later = await node().getBlock({ blockNumber: number - 500n });
  await own.publish(2);
  await untilFinal();
  expect(await found(0)).toBe(2);
  expect(await found(Number(later.timestamp))).toBe(1);
});

test.each([
  [['--missing', '--from', '2999-01'], /--from is in the future/],
  [['--missing', '--from', 'monday'], /--from is a date/],
  [['--from', '2026-01', '--tx', `0x${'1'.repeat(64)}`, '--purpose', 'anchor'], /--from is of --missing/],
])('what `costs record` takes for --from is said before anything is read: %s', async (args, words) => {
  expect(await tollbook(['costs', 'record', ...args, '--rpc', 'eip155:1=http://127.0.0.1:1'])).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(words) as string,
  });
});
