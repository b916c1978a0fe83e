import { gasBoundWei, type SpendAuth } from '../../../accounts/rules/spend/spend-auth.ts';
import { backOffMs } from '../../../base/values/back-off.ts';
import type { CreditsAnswer, Landed, SpendRecord } from '../../peers/prepaid/prepaid-contract.ts';
import { pause } from '../../../base/runtime/pause.ts';
import type { SpendContext } from '../context.ts';
import { recordAuthorized } from './record-spend.ts';
import { invalidSpend, type SpendRefusal } from './refusal.ts';
import type { AcceptedSpend, VerifiedSpend } from './spend.ts';
import { neededUntilSecs } from './verify-spend.ts';

/** The contract has debited the spend. `landed` is undefined when it is not known by which transaction. */
interface Authorized {
  readonly kind: 'authorized';
  readonly landed?: Landed;
}

/** The spend's nonce is higher than the account's next one. */
interface Ahead {
  readonly kind: 'ahead';
  readonly next: bigint;
}

const aheadPauses = { firstMs: 100, longestMs: 500, factor: 1.5 };

/**
 * Lands a spend on its chain, in the order of its account's nonces; waits for lower nonces up to the configured time.
 * A spend whose answer is delivered already (`isAnswered`) is landed up to its expiry; another one only while it can still be
 * paid out for an answer that begins now.
 */
export async function authorizeSpend(
  context: SpendContext,
  spend: AcceptedSpend,
  signal: AbortSignal,
  isAnswered = false,
): Promise<{ readonly kind: 'authorized' } | SpendRefusal> {
  const { settings, queue } = context;
  const checkExpiry = () => (isAnswered ? undefined : refuseLate(context, spend));
  const endMs = performance.now() + settings.nonceWaitMs;
  const { commitment, nonce } = spend.auth;
  for (let tries = 0; ; tries += 1) {
    const leave = await queue.enter(commitment, nonce);
    if (!leave) return { kind: 'queue_full' };
    let result: Authorized | Ahead | SpendRefusal;
    try {
      const refusal = signal.aborted ? ({ kind: 'client_left' } as const) : checkExpiry();
      result = refusal ?? (await land(context, spend));
    } finally {
      leave();
    }
    if (result.kind === 'authorized') {
      recordAuthorized(context, spend, result.landed);
      return checkExpiry() ?? { kind: 'authorized' };
    }
    if (result.kind !== 'ahead') return result;
    if (performance.now() >= endMs || signal.aborted)
      return invalidSpend('authorization_failed', aheadText(result.next));
    await pause(backOffMs(aheadPauses, tries));
  }
}

/** Waiting and landing may take longer than the check before allowed for; an answer that cannot be paid out must not begin. */
function refuseLate(context: SpendContext, { auth, firstByteSecs }: AcceptedSpend): SpendRefusal | undefined {
  const untilSecs = neededUntilSecs(context, firstByteSecs);
  if (auth.expiry >= BigInt(untilSecs)) return undefined;
  const message =
    `The spend authorization expires too early after the wait for its turn; sign one with an expiry of ` +
    `${untilSecs} (Unix seconds) or later. The gateway collects nothing for this request.`;
  return invalidSpend('invalid_spend_auth', message);
}

function aheadText(next: bigint): string {
  return (
    `The nonce of the spend authorization is too high: the next nonce of its account is ${next}. ` +
    'Nothing was charged; send the spends before it first.'
  );
}

async function land(
  { log, prepaid, settings }: SpendContext,
  spend: AcceptedSpend,
): Promise<Authorized | Ahead | SpendRefusal> {
  const { auth, authHash, facts } = spend;
  const account = await prepaid.getAccount(auth.commitment);
  if (account.kind === 'unavailable') return { kind: 'chain_unavailable' };
  const { nonce = 0n, balance = 0n } = account.value ?? {};
  if (nonce > auth.nonce) {
    spend.isPublic = true;
    return (await findDebit(prepaid, { auth, authHash })) ?? nonceUsed(auth);
  }
  if (nonce < auth.nonce) return { kind: 'ahead', next: nonce };
  if (balance < auth.amount) return invalidSpend('insufficient_balance');
  const mostWei = gasBoundWei(auth.amount, settings.atomsPerNativeUnit, settings.maxGasPercent);
  // a node sees the whole spend even if it does not broadcast it
  spend.isPublic = true;
  const answer = await prepaid.authorizeSpend(auth, settings.authorizeTimeoutMs, mostWei);
  if (answer.kind === 'landed') return { kind: 'authorized', landed: answer };
  // anyone may land a spend: it may have landed through another transaction, or through ours after the time limit
  const debit = await findDebit(prepaid, { auth, authHash });
  if (debit) return debit;
  log.warn({ chat_id: facts.chat_id, ...fieldsOf(answer) }, 'a spend authorization did not land');
  if (answer.kind === 'too_expensive') return { kind: 'gas_too_expensive' };
  return answer.kind === 'reverted' ? refuseReverted(answer.reason, auth) : { kind: 'chain_unavailable' };
}

function fieldsOf(answer: Exclude<CreditsAnswer, { kind: 'landed' }>): object {
  switch (answer.kind) {
    case 'reverted':
      return { kind: answer.kind, reason: answer.reason, transaction: answer.transaction };
    case 'unknown':
      return { kind: answer.kind, transaction: answer.transaction };
    case 'too_expensive':
      return { kind: answer.kind, cost_wei: String(answer.costWei) };
    case 'not_sent':
    case 'unavailable':
      return { kind: answer.kind, cause: answer.cause, err: answer.error };
  }
}

function refuseReverted(reason: string, auth: SpendAuth): SpendRefusal {
  switch (reason) {
    case 'insufficient_credits':
      return invalidSpend('insufficient_balance');
    case 'spend_expired':
      return invalidSpend('invalid_spend_auth');
    case 'invalid_nonce':
      return nonceUsed(auth);
    default:
      return invalidSpend('authorization_failed');
  }
}

/** An account's nonce is used up, for this gateway's purposes. */
export function nonceUsed({ nonce }: SpendAuth): SpendRefusal {
  const message =
    `The account has used nonce ${nonce} on the chain for another spend. Nothing was charged for this request; ` +
    "sign a new spend authorization with the account's next nonce.";
  return invalidSpend('nonce_replay', message);
}

/** Whether the contract holds this very spend for its operator; undefined when it does not. */
async function findDebit(
  prepaid: SpendContext['prepaid'],
  { auth, authHash }: Pick<VerifiedSpend, 'auth' | 'authHash'>,
): Promise<Authorized | SpendRefusal | undefined> {
  const answer = await prepaid.getSpendAuth(authHash);
  if (answer.kind === 'unavailable') return { kind: 'chain_unavailable' };
  return answer.value && isThisSpend(auth, answer.value) && !answer.value.claimed
    ? { kind: 'authorized' }
    : undefined;
}

/** The contract's hash of a spend covers neither amount nor operator, so another spend may have the same hash. */
export function isThisSpend(auth: SpendAuth, { amount, operator, expiry }: SpendRecord): boolean {
  return amount === auth.amount && operator === auth.operator && expiry === auth.expiry;
}
