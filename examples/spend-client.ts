// A client that pays for a completion with a spend authorization. Beside a running `npm start`:
//   node_modules/.bin/node examples/spend-client.ts
import { readFile } from 'node:fs/promises';
import { createPublicClient, http, parseAbi } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';

const { DEVNET = '.tollbook/devnet.json' } = process.env;
const devnet = JSON.parse(await readFile(DEVNET, 'utf8')) as {
  gateway_url: string;
  rpc_url: string;
  chain_id: number;
  credits_contract: `0x${string}`;
  commitment: `0x${string}`;
  operator: `0x${string}`;
  spending_private_key: `0x${string}`;
};
const { commitment, operator, credits_contract: contract } = devnet;

// each spend of an account has the next nonce
const abi = parseAbi([
  'function getAccount(bytes32) view returns ((address spendingKey, address token, uint256 balance, uint256 totalFunded, uint256 totalSpent, uint256 nonce))',
]);
const chain = createPublicClient({ transport: http(devnet.rpc_url) });
const { nonce } = await chain.readContract({
  address: contract,
  abi,
  functionName: 'getAccount',
  args: [commitment],
});
const spend = {
  commitment,
  serviceId: 1n,
  jobIndex: 0,
  amount: 1_000_000n,
  operator,
  nonce,
  expiry: BigInt(Math.floor(Date.now() / 1000) + 3600),
};
const signature = await privateKeyToAccount(devnet.spending_private_key).signTypedData({
  domain: { name: 'ShieldedCredits', version: '1', chainId: devnet.chain_id, verifyingContract: contract },
  types: {
    SpendAuthorization: [
      { name: 'commitment', type: 'bytes32' },
      { name: 'serviceId', type: 'uint64' },
      { name: 'jobIndex', type: 'uint8' },
      { name: 'amount', type: 'uint256' },
      { name: 'operator', type: 'address' },
      { name: 'nonce', type: 'uint256' },
      { name: 'expiry', type: 'uint64' },
    ],
  },
  primaryType: 'SpendAuthorization',
  message: spend,
});

const answer = await fetch(`${devnet.gateway_url}/v1/chat/completions`, {
  method: 'POST',
  headers: {
    'content-type': 'application/json',
    'x-payment-signature': JSON.stringify({ ...spend, signature }, (_, value: unknown) =>
      typeof value === 'bigint' ? String(value) : value,
    ),
    // the same secret and body again repeat a failed request
    'x-payment-secret': crypto.randomUUID(),
  },
  body: JSON.stringify({
    model: 'devnet-large',
    max_tokens: 100,
    messages: [{ role: 'user', content: 'hello' }],
  }),
});
console.log(answer.status, ((await answer.json()) as { object?: string }).object);
