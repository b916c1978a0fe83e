// A client that pays with the official SDK. Beside a running `npm start`, for a job, or with your own wallet for a URL:
//   node_modules/.bin/node examples/pay-client.ts 1 0 'your text'
//   WALLET_KEY=0x… node_modules/.bin/node examples/pay-client.ts https://api.example/weather/berlin
import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { ExactEvmScheme } from '@x402/evm/exact/client';
import { wrapFetchWithPayment, x402Client } from '@x402/fetch';
import { privateKeyToAccount } from 'viem/accounts';

const [target = '1', job = '0', body = 'hello, runner'] = process.argv.slice(2);
const isUrl = target.includes('://');
const { DEVNET = '.tollbook/devnet.json', WALLET_KEY } = process.env;
const devnet = WALLET_KEY
  ? undefined
  : (JSON.parse(await readFile(DEVNET, 'utf8')) as { gateway_url: string; payer_private_key: string });

const account = privateKeyToAccount((WALLET_KEY ?? devnet?.payer_private_key) as `0x${string}`);
const client = x402Client.fromConfig({
  schemes: [{ network: 'eip155:*', client: new ExactEvmScheme(account) }],
  // the devnet has test money; with real money the SDK's own spending limits stay
  ...(devnet && { spendControls: false }),
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
const response = isUrl
  ? await payingFetch(target)
  : await payingFetch(`${devnet?.gateway_url}/x402/jobs/${target}/${job}`, {
      method: 'POST',
      headers: { 'content-type': 'text/plain; charset=utf-8' },
      body,
    });
if (isUrl) {
  console.log(response.status, await response.text());
  process.exit(response.ok ? 0 : 1);
}
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
