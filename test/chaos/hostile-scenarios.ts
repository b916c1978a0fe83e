import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { signOffer } from '../support/payer.ts';
import { sendHead } from '../support/raw-request.ts';
import { askForOffer } from './client.ts';
import { requestAs, sendAsStranger, strangers } from './stranger.ts';
import { pay, type RunningScenario, sign } from './scenario-parts.ts';

/** More than the failures that open the gateway's circuit to the facilitator. */
export const provocations = 20;
/** The magic end of an ERC-6492 signature. */
const erc6492End = '6492'.repeat(16);

/** A payer without balance: the facilitator calls its payment invalid, and nothing may be claimed for it. */
export async function payWithoutMoney(running: RunningScenario): Promise<void> {
  const signed = await sign(running, privateKeyToAccount(running.random.hex32()));
  if (signed) await pay(running, signed);
}

/** A stranger without money whose payments make the facilitator answer 500: half of them by their signature's form. */
export async function provokeFacilitator({ parts, random, request }: RunningScenario): Promise<void> {
  const offer = await askForOffer(parts, random, request);
  if (!offer) return;
  const gateways = Array.from({ length: provocations }, () => random.pick(parts.urls));
  await Promise.all(
    gateways.map(async (gateway, index) => {
      // new payers cost nothing
      const payment = await signOffer(offer, { account: privateKeyToAccount(generatePrivateKey()) });
      const { payload } = payment;
      if (index % 2 === 0) parts.ambushes.provokeErrors(payload.authorization.nonce);
      else payload.signature = `0x${'11'.repeat(96)}${erc6492End}`;
      await sendAsStranger(gateway, request, payment, parts.deadline);
    }),
  );
}

type Route = readonly [method: 'GET' | 'POST', path: string];

/** Jobs, which answer with a quote, and one that does not exist. */
const jobRoutes: readonly Route[] = [
  ['POST', '/x402/jobs/1/0'],
  ['POST', '/x402/jobs/2/0'],
  ['POST', '/x402/jobs/9/9'],
];
/** Other routes that need no credentials. */
const openRoutes: readonly Route[] = [
  ['POST', '/x402/jobs/1/0/dry-run'],
  ['GET', '/x402/receipts/0x' + '00'.repeat(32)],
  ['GET', '/x402/stats'],
  ['GET', '/x402/ready'],
  ['GET', '/status'],
  ['GET', '/audit/payments'],
  ['GET', '/openapi.json'],
  ['POST', '/runner/leases'],
];
/** More than a client address may send in a minute, and enough to be told from honest clients in the ledger. */
const floodRequests = 1_200;
const floodersAtOnce = 16;

/** A stranger sends requests to every route that needs no credentials, as fast as they are answered. */
export async function flood(running: RunningScenario): Promise<void> {
  const { parts, random } = running;
  let left = floodRequests;
  const flooders = Array.from({ length: floodersAtOnce }, async () => {
    while (left-- > 0 && !parts.deadline.aborted) {
      const isForJob = random.chance(0.7);
      const [method, path] = random.pick(isForJob ? jobRoutes : openRoutes);
      const body = method === 'POST' ? random.hex32().repeat(random.between(1, 100)) : undefined;
      const headers = random.chance(0.3)
        ? { 'x-payment': Buffer.from(random.hex32()).toString('base64') }
        : {};
      const init = { method, headers: { 'content-type': 'text/plain', ...headers }, signal: parts.deadline };
      const status = await requestAs('flooder', random.pick(parts.urls) + path, {
        ...init,
        ...(body === undefined ? {} : { body }),
      });
      if (isForJob && status !== undefined) parts.records.floodStatuses.push(status);
    }
  });
  await Promise.all([...flooders, withholdBodies(running)]);
}

/** Routes for which credentials are needed: a stranger is refused before anything of his body is read. */
const closedRoutes = ['/runner/leases', '/runner/calls/1/complete', '/operator/dead-letters/1/requeue'];
const largeBody = {
  'content-type': 'application/json',
  'content-length': 1_000_000,
  authorization: 'Bearer x',
};
const refusedWithinMs = 10_000;

/** Announces large bodies to each gateway, and never sends them. */
async function withholdBodies({ parts: { urls, records } }: RunningScenario): Promise<void> {
  const all = urls.flatMap((url) => closedRoutes.map((path) => ({ url, path })));
  await Promise.all(
    all.map(async ({ url, path }) => {
      const request = await sendHead(url, path, largeBody, strangers.flooder);
      if ((await request.status(refusedWithinMs)) === undefined) records.awaitedBodies.push(url + path);
      request.socket.destroy();
    }),
  );
}
