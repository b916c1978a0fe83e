// What a wallet has paid for, with the tokens that open its receipts. Beside a running `npm start`:
//   node_modules/.bin/node examples/receipts.ts
import { readFile } from 'node:fs/promises';
import { ExactEvmScheme } from '@x402/evm/exact/client';
import { createSIWxClientExtension } from '@x402/extensions/sign-in-with-x';
import { wrapFetchWithPayment, x402Client } from '@x402/fetch';
import { formatUnits } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';

const { DEVNET = '.tollbook/devnet.json' } = process.env;
const devnet = JSON.parse(await readFile(DEVNET, 'utf8')) as {
  gateway_url: string;
  payer_private_key: `0x${string}`;
};
const account = privateKeyToAccount(devnet.payer_private_key);
const client = x402Client.fromConfig({
  schemes: [{ network: 'eip155:*', client: new ExactEvmScheme(account) }],
});
client.registerExtension(createSIWxClientExtension({ signers: [account] }));
// nothing is paid: the wallet signs a message that says who it is
const signedFetch = wrapFetchWithPayment(fetch, client);

interface Receipt {
  readonly settled_at: string;
  readonly state: string;
  readonly amount: string;
  readonly decimals: number;
  readonly symbol: string;
  readonly receipt_url: string;
  readonly receipt_token: string;
}

for (let cursor: string | null | undefined; cursor !== null;) {
  const query = cursor === undefined ? '' : `?cursor=${cursor}`;
  const answer = await signedFetch(`${devnet.gateway_url}/x402/receipts${query}`);
  if (!answer.ok) throw new Error(`${answer.status}: ${await answer.text()}`);
  const page = (await answer.json()) as { receipts: readonly Receipt[]; next: string | null };
  for (const { settled_at, state, amount, decimals, symbol, receipt_url, receipt_token } of page.receipts)
    console.log(settled_at, state, formatUnits(BigInt(amount), decimals), symbol, receipt_url, receipt_token);
  cursor = page.next;
}
