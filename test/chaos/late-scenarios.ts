import { z } from 'zod';
import type { Offer } from '../support/payer.ts';
import { askForOffer } from './client.ts';
import { pay, payerOf, type RunningScenario, sign, signThis } from './scenario-parts.ts';
import type { SignedOnce } from './records.ts';
import { pause } from './until.ts';

/** How many payments a client signs for one caller nonce, or under one id of its own. */
const signedTimes = 3;

/**
 * A client pays again and again with the same caller's nonce, or the same id of its own. All payments but the last are refused,
 * since a malicious facilitator reports failure; then a third party lands those.
 */
export async function payWithSpentCredentials(running: RunningScenario): Promise<void> {
  const { parts, random } = running;
  const payer = payerOf(running);
  const landings: Promise<unknown>[] = [];
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

/** How long before the end of its quote a payment is sent, and how long its start may take to reach the database. */
const [sentBeforeMs, longestStartMs] = [3_000, 10_000];
/** A client waits for the end of a short quote alone. */
const longestWaitMs = 15_000;

/**
 * A payment is sent just before its quote ends, and the append of its start is stalled. When the quote has ended its client asks the other
 * gateways, or the only one again: if they refuse the payment, it must not be started any more.
 */
export async function payAtTheLastMoment(running: RunningScenario): Promise<void> {
  const { parts, random, request } = running;
  const offer = await askForOffer(parts, random, request);
  if (!offer) return;
  const signed = await signThis(running, offer, payerOf(running));
  const endMs = endOf(offer);
  const [url = '', ...others] = random.shuffled(parts.urls);
  if (endMs === undefined || endMs - Date.now() > longestWaitMs) return void (await pay(running, signed));
  const wait = (ms: number) => pause(Math.max(0, ms), parts.deadline);
  const askAt = (urls: readonly string[], who: string) =>
    pay({ ...running, parts: { ...parts, urls } }, signed, random.fork(who));
  await wait(endMs - sentBeforeMs - Date.now());
  const stall = parts.ambushes.stallStart(signed.nonce);
  const first = askAt([url], 'first');
  await Promise.race([stall.begun, first, wait(longestStartMs)]);
  await wait(endMs + 100 - Date.now());
  await askAt(others.length > 0 ? others : [url], 'again').finally(() => stall.letGo());
  await first;
}

/** When the offer's quote ends, in Unix milliseconds; undefined if the offer does not say so. */
function endOf({ accepts: [first] }: Offer): number | undefined {
  const quote = z.object({ expiresAt: z.int() }).safeParse(first?.extra['quote']);
  return quote.success ? quote.data.expiresAt * 1_000 : undefined;
}

/** Lands a payment whose refusal was true when it was sent. Its client returns when the faults have ended. */
export async function landLate(
  running: RunningScenario,
  signed: SignedOnce,
  isLong = false,
): Promise<boolean> {
  const { records, frontRunner, faults, deadline } = running.parts;
  // it has landed before its sender knows
  records.landedLate.set(signed.key, Infinity);
  const submit = isLong ? frontRunner.submitInLongTransaction : frontRunner.submit;
  if (!(await submit(signed.payment))) return !records.landedLate.delete(signed.key);
  records.landedLate.set(signed.key, Date.now());
  await untilAborted(AbortSignal.any([faults.over, deadline]));
  await pay(running, signed);
  return true;
}

function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
