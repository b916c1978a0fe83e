// A client that pays for a job with the official SDK. Beside a running `npm start`:
//   node_modules/.bin/node examples/pay-client.ts 1 0 'your text'
import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { ExactEvmScheme } from '@x402/evm/exact/client';
import { wrapFetchWithPayment, x402Client } from '@x402/fetch';
import { privateKeyToAccount } from 'viem/accounts';

const [service = '1', job = '0', body = 'hello, runner'] = process.argv.slice(2);
const { DEVNET = '.tollbook/devnet.json' } = process.env;
const devnet = JSON.parse(await readFile(DEVNET, 'utf8')) as {
  gateway_url: string;
  payer_private_key: `0x${string}`;
};

// the devnet's wallet, with test money. With real money, leave the SDK's own spending limits on
const account = privateKeyToAccount(devnet.payer_private_key);
const client = x402Client.fromConfig({
  schemes: [{ network: 'eip155:*', client: new ExactEvmScheme(account) }],
  spendControls: false,
});

// a signed payment is charged once, however often it arrives: without an answer, the same request is sent again. To sign anew would pay twice
const untilAnswered: typeof fetch = async (input, init) => {
  const request = new Request(input, init);
  const tries = request.headers.has('payment-signature') ? 10 : 1;
  for (let left = tries - 1; ; left--) {
    const response = await fetch(request.clone()).catch((error: unknown) => {
      if (left === 0) throw error;
    });
    if (response && (left === 0 || ![429, 502, 503, 504].includes(response.status))) return response;
    await sleep(1_000 * Number(response?.headers.get('retry-after') ?? 1));
  }
};

// requests, gets a 402 with an offer, signs it and requests again, all in one call
const payingFetch = wrapFetchWithPayment(untilAnswered, client);
const response = await payingFetch(`${devnet.gateway_url}/x402/jobs/${service}/${job}`, {
  method: 'POST',
  headers: { 'content-type': 'text/plain; charset=utf-8' },
  body,
});
const answer = (await response.json()) as { receipt_url: string; receipt_token: string };
console.log(response.status, answer);
if (response.status !== 202) process.exit(1);

// 202 means paid and enqueued; the receipt shows when the job is done, and has the result
for (;;) {
  const receipt = (await (
    await fetch(answer.receipt_url, { headers: { authorization: `Bearer ${answer.receipt_token}` } })
  ).json()) as { state: string; result?: { content_type: string; body_base64: string } | null };
  if (receipt.result) {
    console.log(`${receipt.state}: ${Buffer.from(receipt.result.body_base64, 'base64').toString('utf8')}`);
    break;
  }
  if (receipt.state === 'dead_lettered') throw new Error('the runner could not do it: its operator knows');
  if (receipt.state === 'completed') break;
  await sleep(200);
}
