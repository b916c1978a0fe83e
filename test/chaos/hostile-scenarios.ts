import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { signOffer } from '../support/payer.ts';
import { askForOffer } from './client.ts';
import { sendAsStranger } from './stranger.ts';
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
