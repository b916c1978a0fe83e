import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { signOffer } from '../support/payer.ts';
import { askForOffer } from './client.ts';
import { requestAsStranger, sendAsStranger } from './stranger.ts';
import { pay, type RunningScenario, sign } from './scenario-parts.ts';

/** More than the failures that open the gateway's circuit to the facilitator. */
const provocations = 20;
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

/** Routes that need no credentials. */
const openRoutes = [
  ['POST', '/x402/jobs/1/0'],
  ['POST', '/x402/jobs/2/0'],
  ['POST', '/x402/jobs/9/9'],
  ['POST', '/x402/jobs/1/0/dry-run'],
  ['GET', '/x402/receipts/0x' + '00'.repeat(32)],
  ['GET', '/x402/stats'],
  ['GET', '/x402/ready'],
  ['GET', '/status'],
  ['GET', '/audit/payments'],
  ['GET', '/openapi.json'],
  ['POST', '/runner/leases'],
] as const;
/** More than a client address may send in a minute, and enough to be told from honest clients in the ledger. */
const floodRequests = 600;
const floodersAtOnce = 16;

/** A stranger sends requests to every route that needs no credentials, as fast as they are answered. */
export async function flood({ parts, random }: RunningScenario): Promise<void> {
  let left = floodRequests;
  const flooders = Array.from({ length: floodersAtOnce }, async () => {
    while (left-- > 0 && !parts.deadline.aborted) {
      const [method, path] = random.pick(openRoutes);
      const body = method === 'POST' ? random.hex32().repeat(random.between(1, 100)) : undefined;
      const headers = random.chance(0.3)
        ? { 'x-payment': Buffer.from(random.hex32()).toString('base64') }
        : {};
      const init = { method, headers: { 'content-type': 'text/plain', ...headers }, signal: parts.deadline };
      await requestAsStranger(random.pick(parts.urls) + path, {
        ...init,
        ...(body === undefined ? {} : { body }),
      });
    }
  });
  await Promise.all(flooders);
}
