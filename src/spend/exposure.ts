import { endExposure, exposeSpend } from '../store/spend.ts';
import type { Refused } from '../chat/answer.ts';
import { inBackground } from '../runtime/background.ts';
import { authorizeSpend } from './authorize-spend.ts';
import type { ChatContext } from '../chat/context.ts';
import { type Spending, spendStream, type TakenSpend } from './spend.ts';

/** A spend that was refused so will never land: its account has used the nonce, or has not so much any more. */
const losses = new Set(['nonce_replay', 'insufficient_balance', 'invalid_spend_auth']);

/**
 * Whether a spend may be answered before it has landed: within the exposure that the operator allows each account, over all
 * processes together. It is landed behind the answer then, in its turn.
 */
export async function mayAnswerBeforeLanding(
  context: ChatContext,
  spending: Spending,
  spend: TakenSpend,
): Promise<boolean> {
  const { settings, prepaid } = spending;
  if (settings.exposure === 0n) return false;
  const { auth, facts, claim } = spend;
  const account = await prepaid.getAccount(auth.commitment);
  if (account.kind === 'unavailable' || !account.value) return false;
  const { nonce: nextNonce, balance } = account.value;
  const { commitment, nonce, amount } = auth;
  const stream = spendStream(facts.chat_id);
  const asked = { stream, scope: claim.scope, commitment, nonce, amount, nextNonce, balance };
  try {
    if (!(await exposeSpend(context.pool, { ...asked, limit: settings.exposure }))) return false;
  } catch (err) {
    context.log.error(
      { err, chat_id: facts.chat_id },
      'a spend lands first: its exposure could not be noted',
    );
    return false;
  }
  landBehind(context, spending, spend, stream);
  return true;
}

/** Also where nothing is delivered in the end: those behind it can land only after it. Going down waits for it. */
function landBehind(context: ChatContext, spending: Spending, spend: TakenSpend, stream: string): void {
  const { running, log, pool } = context;
  const chat_id = spend.facts.chat_id;
  const land = async (): Promise<void> => {
    const refused = await authorizeSpend(context, spending, spend, new AbortController().signal, true);
    const code = refused && codeOf(refused);
    if (code !== undefined) log.warn({ chat_id, code }, 'a spend has not landed behind its answer');
    // what may land yet is left to whoever claims it
    if (code === undefined || losses.has(code)) await endExposure(pool, stream, code !== undefined);
  };
  inBackground({ running, log }, land(), 'a spend could not be landed behind its answer', { chat_id });
}

function codeOf({ error }: Refused): string {
  return error.body.error.code;
}
