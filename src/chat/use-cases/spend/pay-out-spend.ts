import {
  gasBoundWei,
  type SpendAuth,
  spendAuthHash,
  authFromData,
} from '../../../accounts/rules/spend/spend-auth.ts';
import type { CreditsAnswer, PrepaidContract } from '../../peers/prepaid/prepaid-contract.ts';
import type { NewPayout } from '../../store/payouts.ts';
import type { StreamReading } from '../../../ledger/store/streams.ts';
import { isThisSpend } from './authorize-spend.ts';
import type { SpendContext } from '../context.ts';
import {
  type Accepted,
  advancePayout,
  failOrRetry,
  isExpired,
  outcomeOfClaimed,
  type PayingOut,
  type PayoutOutcome,
  unavailable,
} from './payout.ts';

/** Transactions are sent and not waited for: a slow one delays no other payout. */
const waitMs = 0;

/**
 * Sends the transaction that has an earned spend paid out to its operator. A failed attempt is repeated until the spend has
 * expired; then the operator has lost it, which is recorded. Throws when the ledger cannot be reached.
 */
export function payOutSpend(context: PayingOut, due: NewPayout): Promise<void> {
  return advancePayout(context, due, (accepted, reading) => send(context, accepted, reading));
}

async function send(
  { prepaid, settings }: PayingOut,
  accepted: Accepted,
  reading: StreamReading,
): Promise<PayoutOutcome> {
  const { network, contract } = settings;
  const { data } = accepted;
  const auth = authFromData(data);
  const isLate = isExpired(auth, reading);
  if (data.network !== network || data.contract !== contract) return failOrRetry(isLate, 'other_contract');
  const authHash = spendAuthHash(auth);
  const found = await prepaid.getSpendAuth(authHash);
  // an unreachable chain does not end a spend
  if (found.kind === 'unavailable') return unavailable;
  // a spend that was paid out to an earlier key of the operator is paid out
  if (auth.operator !== prepaid.operator && !found.value?.claimed)
    return failOrRetry(isLate, 'other_operator');
  const mostWei = gasBound(settings, auth, reading);
  if (!found.value) return landAgain(prepaid, settings, auth, reading, mostWei);
  if (!isThisSpend(auth, found.value))
    return failOrRetry(isLate || (await isNonceUsed(prepaid, auth)), 'other_spend');
  if (found.value.claimed) return outcomeOfClaimed(prepaid, authHash, accepted);
  const recipient = settings.recipient ?? prepaid.operator;
  const answer = await prepaid.claimPayment(authHash, recipient, waitMs, mostWei);
  if (answer.kind === 'landed' || answer.kind === 'unknown')
    return { kind: 'sent', transaction: answer.transaction };
  const reason = reasonOf(answer);
  // another payout transaction may have landed meanwhile: the next attempt finds it
  const mayBePaid = reason === 'already_claimed' || ('transaction' in answer && answer.transaction);
  const isLost = answer.kind === 'reverted' && !mayBePaid && (isLate || reason === 'spend_expired');
  return failOrRetry(isLost, reason);
}

/** Shortly before its expiry a payout may cost the whole amount: otherwise all of it is lost. */
function gasBound(
  { atomsPerNativeUnit, maxGasPercent, claimMarginSecs }: SpendContext['settings'],
  { amount, expiry }: SpendAuth,
  { nowSecs }: StreamReading,
): bigint {
  const isLastChance = expiry < BigInt(nowSecs + Math.ceil(claimMarginSecs / 2));
  return gasBoundWei(amount, atomsPerNativeUnit, isLastChance ? 100 : maxGasPercent);
}

/** The spend has not landed, or its block was reorganized out: it is landed again while its account allows that. */
async function landAgain(
  prepaid: PrepaidContract,
  settings: SpendContext['settings'],
  auth: SpendAuth,
  reading: StreamReading,
  mostWei: bigint,
): Promise<PayoutOutcome> {
  if (isLanding(settings, reading)) return { kind: 'retry', reason: 'landing' };
  const answer = await prepaid.authorizeSpend(auth, waitMs, mostWei);
  if (answer.kind === 'landed' || answer.kind === 'unknown')
    return { kind: 'retry', reason: 'landing_again' };
  const isLost =
    answer.kind === 'reverted' && (isExpired(auth, reading) || (await isNonceUsed(prepaid, auth)));
  const wasAuthorized = reading.events.some(({ type }) => type === 'spend_authorized');
  return failOrRetry(isLost, isLost && wasAuthorized ? 'authorization_reorged' : reasonOf(answer));
}

/**
 * Whether the account has used the nonce for another spend, in a final block; false when the node cannot tell. The spend itself
 * may have landed since the last look-up, since anyone can land it.
 */
async function isNonceUsed(prepaid: PrepaidContract, auth: SpendAuth): Promise<boolean> {
  const finalized = await prepaid.finalizedBlock();
  if (finalized.kind === 'unavailable') return false;
  const at = { blockHash: finalized.block.hash, requireCanonical: true } as const;
  const account = await prepaid.getAccount(auth.commitment, at);
  if (account.kind === 'unavailable' || (account.value?.nonce ?? 0n) <= auth.nonce) return false;
  const spend = await prepaid.getSpendAuth(spendAuthHash(auth), at);
  return spend.kind === 'answer' && !(spend.value && isThisSpend(auth, spend.value));
}

/** Whether the process that answered may still be landing the spend. */
function isLanding(
  { exposure, authorizeTimeoutMs, nonceWaitMs }: SpendContext['settings'],
  { events, nowSecs }: StreamReading,
): boolean {
  if (exposure === 0n || events.some(({ type }) => type === 'spend_authorized')) return false;
  const since = Date.parse(events.at(-1)?.at ?? '');
  // an event's time may be ahead of the clock for as long as the clock once was
  return Math.abs(nowSecs * 1_000 - since) < authorizeTimeoutMs + nonceWaitMs;
}

function reasonOf(answer: Exclude<CreditsAnswer, { kind: 'landed' | 'unknown' }>): string {
  switch (answer.kind) {
    case 'reverted':
      return answer.reason;
    case 'not_sent':
      return 'not_sent';
    case 'too_expensive':
      return 'gas_too_expensive';
    case 'unavailable':
      return 'chain_unavailable';
  }
}
