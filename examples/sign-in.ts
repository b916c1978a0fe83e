// Signs in with a wallet (EIP-4361), and prints the session cookie. Beside a running `npm start`:
//   node_modules/.bin/node examples/sign-in.ts
import { readFile } from 'node:fs/promises';
import { privateKeyToAccount } from 'viem/accounts';
import { createSiweMessage } from 'viem/siwe';

const { DEVNET = '.tollbook/devnet.json' } = process.env;
const devnet = JSON.parse(await readFile(DEVNET, 'utf8')) as {
  gateway_url: string;
  payer_private_key: `0x${string}`;
};
const post = (path: string, body: object) =>
  fetch(devnet.gateway_url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });

const account = privateKeyToAccount(devnet.payer_private_key);
const { nonce, domain, uri, chain_id } = (await (await post('/api/siwe/nonce', {})).json()) as {
  nonce: string;
  domain: string;
  uri: string;
  chain_id: number;
};
const message = createSiweMessage({
  address: account.address,
  chainId: chain_id,
  domain,
  nonce,
  uri,
  version: '1',
});
const signature = await account.signMessage({ message });
const answer = await post('/api/siwe/verify', { address: account.address, signature, message });
console.log(answer.headers.getSetCookie()[0]?.split(';')[0]);
