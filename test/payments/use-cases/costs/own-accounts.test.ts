import { createTestClient, http, parseAbiItem, publicActions } from 'viem';
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts';
import { expect, test } from 'vitest';
import { ownAccounts } from '../../../../src/payments/use-cases/costs/own-accounts.ts';
import { recordCost } from '../../../../src/payments/use-cases/costs/record-cost.ts';
import { checkpointAnchorAddress, deployCheckpointAnchor } from '../../../../src/devnet/checkpoint-anchor.ts';
import { deployPrepaidContract } from '../../../../src/devnet/prepaid-contract.ts';
import { parse, minimal, networks } from '../../../base/config/support.ts';
import { chainsAt, network, openLedger } from '../../../finance/use-cases/refunds/support.ts';
import { startPublisher } from '../../../support/anchor-publisher.ts';
import { createDatabase } from '../../../support/database.ts';
import { useChain } from '../../../support/devnet.ts';
import { eventually } from '../../../support/wait.ts';

const chain = useChain();
const payee = '0x70997970c51812dc3a010c7d01b50e0d17dc79c8';
const stated = `0x${'ab'.repeat(20)}`;
const logTables = `[[networks]]
id = "${network}"
rpc_url = "http://127.0.0.1:1"

[log]
origin = "jobs.example/log"
key = "env:LOG_KEY"

[[log.anchors]]
kind = "chain"
name = "chain"
network = "${network}"
contract = "${checkpointAnchorAddress}"
secret = "env:ANCHOR_KEY"
`;

test('accounts of the operator are the payees and keys that the configuration has on that network, and those that somebody states', async () => {
  const database = await createDatabase();
  const key = generatePrivateKey();
  const variables = { LOG_KEY: 'ab'.repeat(32), ANCHOR_KEY: key };
  const { config } = await parse(`${minimal()}\n${networks}\n${logTables}`, {}, variables);
  const of = async (where: 'eip155:84532' | 'eip155:8453') =>
    [...(await ownAccounts(database.pool, where, [stated], config))].toSorted();
  expect(await of('eip155:84532')).toEqual([stated, privateKeyToAddress(key).toLowerCase()].toSorted());
  expect(await of('eip155:8453')).toEqual([stated, payee].toSorted());
});

test('what the transaction of an anchor cost is recorded where the configuration has its key', async () => {
  await deployPrepaidContract(chain.chain, chain.token);
  await deployCheckpointAnchor(chain.chain);
  const { key, by, publish } = await startPublisher(chain.rpcUrl);
  await publish(3);
  const node = createTestClient({ mode: 'anvil', transport: http(chain.rpcUrl) }).extend(publicActions);
  const [published] = await node.getLogs({
    address: checkpointAnchorAddress,
    event: parseAbiItem(
      'event Anchored(address indexed by, bytes32 indexed origin, uint64 size, bytes32 root)',
    ),
    args: { by },
    fromBlock: 0n,
  });
  const transaction = published?.transactionHash ?? '0x';
  const chains = chainsAt(chain.rpcUrl);
  await eventually(async () =>
    expect(await chains.get(network)?.readCost(transaction)).toMatchObject({ kind: 'final' }),
  );
  const database = await createDatabase();
  const ledger = openLedger(database);
  const { config } = await parse(
    `${minimal()}\n${networks}\n${logTables}`,
    {},
    {
      LOG_KEY: 'ab'.repeat(32),
      ANCHOR_KEY: key,
    },
  );
  const order = { network, transaction, purpose: 'anchor', operator: 'ada' } as const;
  const own = await ownAccounts(ledger.pool, network, []);
  expect(await recordCost(ledger, { ...order, own }, chains.get(network))).toMatchObject({
    code: 'foreign_payer',
  });
  const known = await ownAccounts(ledger.pool, network, [], config);
  expect(await recordCost(ledger, { ...order, own: known }, chains.get(network))).toMatchObject({
    kind: 'recorded',
    cost: { purpose: 'anchor', payer: by },
  });
});
