import { sha256 } from '../../src/base/values/sha256.ts';
import { redeliveryTypedData } from '../../src/payments/rules/payer-signatures.ts';
import type { Address, Caip2, Hex } from '../../src/base/values/primitives.ts';
import { signOffer } from '../support/payer.ts';
import { askForOffer } from './client.ts';
import { landLate } from './late-scenarios.ts';
import { pay, payerOf, type RunningScenario, sign, signThis } from './scenario-parts.ts';
import { pause } from './until.ts';

/** An operator's refund is sent some seconds after the payment landed. */
const longestHesitationMs = 6_000;

/**
 * Two payments for one quote: the second one is refused, and a third party lands it. Its payer asks for delivery while the operator
 * refunds it.
 */
export async function payTakenQuote(running: RunningScenario): Promise<void> {
  const { parts, random, request } = running;
  const offer = await askForOffer(parts, random, request);
  if (!offer) return;
  await pay(running, await signThis(running, offer, payerOf(running)));
  const payer = payerOf(running);
  const signed = await signThis(running, offer, payer);
  if ((await pay(running, signed)) !== 'refused') return;
  const returned = landLate(running, signed);
  await pause(random.between(0, longestHesitationMs), parts.deadline);
  if (random.chance(0.7)) {
    const { accepted, payload } = signed.payment;
    const typedData = redeliveryTypedData({
      network: accepted.network as Caip2,
      asset: accepted.asset.toLowerCase() as Address,
      nonce: payload.authorization.nonce as Hex,
      quoteDigest: accepted.extra['quoteDigest'] as Hex,
      method: request.method ?? 'POST',
      path: request.path,
      bodySha256: sha256(request.body),
    });
    const headers = { ...request.headers, 'x-net-redelivery-sig': await payer.signTypedData(typedData) };
    await pay({ ...running, request: { ...request, headers } }, signed);
  }
  await returned;
}

/** A payment lands in a transaction with more logs than a gateway reads at once: before it is sent, or after it was reported as failed. */
export async function landInLongTransaction(running: RunningScenario): Promise<void> {
  const { parts, random } = running;
  const signed = await sign(running, payerOf(running));
  if (!signed) return;
  if (random.chance(0.5)) {
    await parts.frontRunner.submitInLongTransaction(signed.payment);
    return void (await pay(running, signed));
  }
  parts.ambushes.failFirstSettle(signed.nonce);
  const end = await pay(running, signed);
  if (end === 'refused' && (await parts.isStarted(signed))) await landLate(running, signed, true);
}

/**
 * A payer cancels the nonce of its payment, or signs it a second time for one atom and lands that: before it pays, meanwhile, or after the
 * payment was reported as failed.
 */
export async function useNonceOtherwise(running: RunningScenario): Promise<void> {
  const { parts, random, request, scenario } = running;
  const offer = await askForOffer(parts, random, request);
  if (!offer) return;
  const account = payerOf(running);
  const signed = await signThis(running, offer, account);
  const isCancelled = random.chance(0.5);
  const voidIt = async (): Promise<void> => {
    const { frontRunner, records } = parts;
    const other = { nonce: signed.nonce, value: '1' };
    const isVoid = isCancelled
      ? await frontRunner.cancel(signed.payment, account)
      : await frontRunner.submit(await signOffer(offer, { account, option: scenario.option, signed: other }));
    if (isVoid) records.voided.add(signed.key);
  };
  switch (random.pick(['before', 'meanwhile', 'after'] as const)) {
    case 'before':
      await voidIt();
      await pay(running, signed);
      return;
    case 'meanwhile':
      await Promise.all([pay(running, signed), voidIt()]);
      return;
    case 'after':
      parts.ambushes.failFirstSettle(signed.nonce);
      if ((await pay(running, signed)) !== 'refused') return;
      await voidIt();
      await pay(running, signed);
  }
}
