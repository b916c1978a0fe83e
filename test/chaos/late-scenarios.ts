import { pay, payerOf, type RunningScenario, sign } from './scenario-parts.ts';
import type { SignedOnce } from './records.ts';

/** How many payments a client signs for one caller nonce, or under one id of its own. */
const signedTimes = 3;

/**
 * A client pays again and again with the same caller's nonce, or the same id of its own. All payments but the last are refused,
 * since a malicious facilitator reports failure; then a third party lands those.
 */
export async function payWithSpentCredentials(running: RunningScenario): Promise<void> {
  const { parts, random } = running;
  const payer = payerOf(running);
  const landings: Promise<void>[] = [];
  const refused: SignedOnce[] = [];
  for (let times = 1; times <= signedTimes; times++) {
    const signed = await sign(running, payer);
    if (!signed) break;
    if (times < signedTimes) parts.ambushes.failFirstSettle(signed.nonce);
    const end = await pay(running, signed);
    if (end !== 'refused' || !(await parts.isStarted(signed))) continue;
    if (random.chance(0.3)) landings.push(landLate(running, signed));
    else refused.push(signed);
  }
  await Promise.all([...landings, ...refused.map((signed) => landLate(running, signed))]);
}

/**
 * The facilitator reports a failure before broadcast, and the append of that failure is stalled. Another gateway settles the
 * payment again meanwhile: a failure that is recorded after that would be false.
 */
export async function payWithStalledFailure(running: RunningScenario): Promise<void> {
  const signed = await sign(running, payerOf(running));
  if (!signed) return;
  running.parts.ambushes.stallFailure(signed.nonce);
  await pay(running, signed);
}

/** Lands a payment whose refusal was true when it was sent. */
export async function landLate({ parts }: RunningScenario, signed: SignedOnce): Promise<void> {
  const { records, frontRunner } = parts;
  records.landedLate.add(signed.key);
  if (!(await frontRunner.submit(signed.payment))) records.landedLate.delete(signed.key);
}
