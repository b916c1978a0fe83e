import { backOffMs } from '../domain/values/back-off.ts';
import { pause } from '../runtime/pause.ts';
import { openAiError } from '../domain/errors/openai-error.ts';
import type { SpendAuth } from '../domain/spend/spend-auth.ts';
import type { CreditsAnswer, SpendRecord } from '../peers/prepaid/prepaid-contract.ts';
import { type Refused, refuse } from '../chat/answer.ts';
import type { ChatContext } from '../chat/context.ts';
import { noteAuthorized } from './take-spend.ts';
import { neededUntilSecs } from './verify-spend.ts';
import { spendError, type Spending, type TakenSpend, type VerifiedSpend } from './spend.ts';

/** A spend that the contract has debited; where nobody knows by which transaction there is none. */
interface Authorized {
  readonly kind: 'authorized';
  readonly landed?: Extract<CreditsAnswer, { kind: 'landed' }>;
}

/** Its nonce is ahead of its account's. */
interface Ahead {
  readonly kind: 'ahead';
  readonly next: bigint;
}

const aheadPauses = { firstMs: 100, longestMs: 500, factor: 1.5 };

/**
 * Lands a spend before anything is done for it, in the order of its account's nonces. Waits for those before it as long as
 * the configuration says. Undefined where it has landed. One whose answer is out (`isAnswered`) is landed as late as the
 * contract takes it.
 */
export async function authorizeSpend(
  context: ChatContext,
  spending: Spending,
  spend: TakenSpend,
  signal: AbortSignal,
  isAnswered = false,
): Promise<Refused | undefined> {
  const refusedLate = () => (isAnswered ? undefined : refuseLate(context, spending, spend));
  const endMs = performance.now() + spending.settings.nonceWaitMs;
  const { commitment, nonce } = spend.auth;
  for (let tries = 0; ; tries += 1) {
    const leave = await spending.queue.enter(commitment, nonce);
    if (!leave) return refuse(openAiError('overloaded'), { retryAfterSecs: 2 });
    let answer: Authorized | Ahead | Refused;
    try {
      const refused = signal.aborted ? gone() : refusedLate();
      answer = refused ?? (await land(context, spending, spend));
    } finally {
      leave();
    }
    if (answer.kind === 'authorized') {
      noteAuthorized(context, spend, answer.landed);
      return refusedLate();
    }
    if (answer.kind === 'refused') return answer;
    if (performance.now() >= endMs || signal.aborted)
      return refuse(spendError('authorization_failed', aheadText(answer.next)));
    await pause(backOffMs(aheadPauses, tries));
  }
}

/** Waiting for its turn and landing may take longer than was allowed for: an answer must not go out that cannot be claimed. */
function refuseLate(context: ChatContext, { settings }: Spending, { auth }: TakenSpend): Refused | undefined {
  const untilSecs = neededUntilSecs(context, settings);
  const message = `The spend authorization would have to hold until ${untilSecs} by now, and expires before.`;
  return auth.expiry < BigInt(untilSecs) ? refuse(spendError('invalid_spend_auth', message)) : undefined;
}

function aheadText(next: bigint): string {
  return `The nonce of the spend authorization is ahead: its account's next one is ${next}.`;
}

function gone(): Refused {
  return refuse(openAiError('request_timeout'));
}

async function land(
  { log }: ChatContext,
  { prepaid, settings }: Spending,
  { auth, authHash, facts }: TakenSpend,
): Promise<Authorized | Ahead | Refused> {
  const account = await prepaid.getAccount(auth.commitment);
  if (account.kind === 'unavailable') return unavailable();
  const { nonce = 0n, balance = 0n } = account.value ?? {};
  if (nonce > auth.nonce) return (await isDebited(prepaid, { auth, authHash })) ?? passed(auth);
  if (nonce < auth.nonce) return { kind: 'ahead', next: nonce };
  if (balance < auth.amount) return refuse(spendError('insufficient_balance'));
  const answer = await prepaid.authorizeSpend(auth, settings.authorizeTimeoutMs);
  if (answer.kind === 'landed') return { kind: 'authorized', landed: answer };
  // anyone may land it, and may have been faster; or it has landed, and nobody told us in time
  const debited = await isDebited(prepaid, { auth, authHash });
  if (debited) return debited;
  log.warn({ chat_id: facts.chat_id, ...wordsOf(answer) }, 'a spend authorization did not land');
  return answer.kind === 'reverted' ? refuseReverted(answer.reason, auth) : unavailable();
}

function wordsOf(answer: Exclude<CreditsAnswer, { kind: 'landed' }>): object {
  switch (answer.kind) {
    case 'reverted':
      return { kind: answer.kind, reason: answer.reason, transaction: answer.transaction };
    case 'unknown':
      return { kind: answer.kind, transaction: answer.transaction };
    case 'not_sent':
    case 'unavailable':
      return { kind: answer.kind, cause: answer.cause, err: answer.error };
  }
}

function refuseReverted(reason: string, auth: SpendAuth): Refused {
  switch (reason) {
    case 'insufficient_credits':
      return refuse(spendError('insufficient_balance'));
    case 'spend_expired':
      return refuse(spendError('invalid_spend_auth'));
    case 'invalid_nonce':
      return passed(auth);
    default:
      return refuse(spendError('authorization_failed'));
  }
}

function passed({ nonce }: SpendAuth): Refused {
  const message = `The account has spent its nonce ${nonce} on the chain for something else.`;
  return refuse(spendError('nonce_replay', message));
}

function unavailable(): Refused {
  return refuse(openAiError('chain_unavailable'), { retryAfterSecs: 2 });
}

/** Whether the contract holds this very spend for its operator; undefined where it does not. */
async function isDebited(
  prepaid: Spending['prepaid'],
  { auth, authHash }: Pick<VerifiedSpend, 'auth' | 'authHash'>,
): Promise<Authorized | Refused | undefined> {
  const answer = await prepaid.getSpendAuth(authHash);
  if (answer.kind === 'unavailable') return unavailable();
  return answer.value && isThisSpend(auth, answer.value) && !answer.value.claimed
    ? { kind: 'authorized' }
    : undefined;
}

/** The contract's name for a spend holds neither amount nor operator: another one may have it. */
export function isThisSpend(auth: SpendAuth, { amount, operator, expiry }: SpendRecord): boolean {
  return amount === auth.amount && operator === auth.operator && expiry === auth.expiry;
}
