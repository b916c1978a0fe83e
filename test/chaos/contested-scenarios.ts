import { sha256 } from '../../src/base/values/sha256.ts';
import { redeliveryTypedData } from '../../src/payments/rules/payer-signatures.ts';
import type { Address, Caip2, Hex } from '../../src/base/values/primitives.ts';
import { signedTransfer, signOption } from '../support/permit2.ts';
import { isUpto } from '../support/upto.ts';
import { askForOffer } from './client.ts';
import { landLate } from './late-scenarios.ts';
import { pay, payerOf, payLater, type RunningScenario, sign, signThis } from './scenario-parts.ts';
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
    const { accepted } = signed.payment;
    const typedData = redeliveryTypedData({
      network: accepted.network as Caip2,
      asset: accepted.asset.toLowerCase() as Address,
      nonce: signedTransfer(signed.payment).nonce,
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
  // another transfer by upto only its facilitator can submit
  const isCancelled = random.chance(0.5) || isUpto(signed.payment);
  const voidIt = async (): Promise<void> => {
    const { frontRunner, records } = parts;
    const other = { account, nonce: signedTransfer(signed.payment).nonce, amount: 1n };
    const isVoid = isCancelled
      ? await frontRunner.cancel(signed.payment, account)
      : await frontRunner.submit(await signOption(offer, scenario.option, other));
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

/**
 * Two payments of one payer and, mostly, of one amount. A third party lands both in one transaction before they are sent; or it lands the first
 * one, and its calldata has the second one as well, which nothing executes.
 */
export async function sendLandedTogether(running: RunningScenario): Promise<void> {
  const { parts, random } = running;
  const payer = payerOf(running);
  const asking = { ...running, parts: { ...parts, urls: [random.pick(parts.urls)] } };
  const [first, second] = [await sign(asking, payer), await sign(asking, payer)];
  if (!first || !second) return;
  const [both, none] = [[first.payment, second.payment], []];
  const isNamed = random.chance(0.4);
  await parts.frontRunner.submitTogether(isNamed ? [first.payment] : both, isNamed ? [second.payment] : none);
  await Promise.all([first, second].map((signed, index) => payLater(running, signed, `${index}`, 400)));
}
