import { endExposure, exposeSpend } from '../../store/exposure.ts';
import { inBackground } from '../../../base/runtime/background.ts';
import { authorizeSpend } from './authorize-spend.ts';
import type { SpendContext } from '../context.ts';
import type { SpendRefusal } from './refusal.ts';
import { type AcceptedSpend, spendStream } from './spend.ts';

/** After one of these a spend never lands: its account has used the nonce, lacks the balance, or the spend has expired. */
const finalFaults = new Set(['nonce_replay', 'insufficient_balance', 'invalid_spend_auth']);

/**
 * Whether a spend may be answered before it has landed: within the exposure that the operator allows each account, over all
 * processes together. If so, its landing has begun after the answer.
 */
export async function mayAnswerBeforeLanding(context: SpendContext, spend: AcceptedSpend): Promise<boolean> {
  const { settings, prepaid, pool, log } = context;
  if (settings.exposure === 0n) return false;
  const { auth, facts, claim } = spend;
  const account = await prepaid.getAccount(auth.commitment);
  if (account.kind === 'unavailable' || !account.value) return false;
  const { nonce: nextNonce, balance } = account.value;
  const { commitment, nonce, amount } = auth;
  const stream = spendStream(facts.chat_id);
  const exposed = { stream, scope: claim.scope, commitment, nonce, amount, nextNonce, balance };
  try {
    if (!(await exposeSpend(pool, { ...exposed, limit: settings.exposure }))) return false;
  } catch (err) {
    const message = 'an exposure could not be recorded: the spend lands before its answer';
    log.error({ err, chat_id: facts.chat_id }, message);
    return false;
  }
  // its landing may begin at any moment
  spend.isPublic = true;
  landBehindAnswer(context, spend, stream);
  return true;
}

/** Lands the spend even if nothing is delivered: spends with higher nonces can land only after it. Shutdown waits for it. */
function landBehindAnswer(context: SpendContext, spend: AcceptedSpend, stream: string): void {
  const { running, log, pool } = context;
  const { chat_id } = spend.facts;
  const land = async (): Promise<void> => {
    const result = await authorizeSpend(context, spend, new AbortController().signal, true);
    const isAuthorized = result.kind === 'authorized';
    if (!isAuthorized) log.warn({ chat_id, code: codeOf(result) }, 'a spend did not land after its answer');
    // a spend that may still land is left to the payout worker
    if (isAuthorized || finalFaults.has(codeOf(result))) await endExposure(pool, stream, !isAuthorized);
  };
  inBackground({ running, log }, land(), 'landing a spend after its answer failed', { chat_id });
}

function codeOf(refusal: SpendRefusal): string {
  return refusal.kind === 'invalid' ? refusal.fault : refusal.kind;
}
