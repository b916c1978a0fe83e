// Asks for the refund of a call that was not delivered. Beside a running `npm start`:
//   node_modules/.bin/node examples/refund-request.ts QUOTE_DIGEST 'why'
import { readFile } from 'node:fs/promises';
import { privateKeyToAccount } from 'viem/accounts';

const { DEVNET = '.tollbook/devnet.json' } = process.env;
const devnet = JSON.parse(await readFile(DEVNET, 'utf8')) as {
  gateway_url: string;
  payer_private_key: `0x${string}`;
};
const [quoteDigest, reason = ''] = process.argv.slice(2) as [`0x${string}`, string?];
const account = privateKeyToAccount(devnet.payer_private_key);
const receiptUrl = `${devnet.gateway_url}/x402/receipts/${quoteDigest}`;
const { payment } = (await (await fetch(receiptUrl)).json()) as { payment: { network: string } };

const signature = await account.signTypedData({
  domain: { name: 'Tollbook', version: '1', chainId: Number(payment.network.slice('eip155:'.length)) },
  types: {
    RefundRequest: [
      { name: 'quoteDigest', type: 'bytes32' },
      { name: 'reason', type: 'string' },
    ],
  },
  primaryType: 'RefundRequest',
  message: { quoteDigest, reason },
});
const answer = await fetch(`${receiptUrl}/refund-request`, {
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({ reason, signature }),
});
console.log(answer.status, await answer.text());
