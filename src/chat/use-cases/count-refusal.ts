import { randomUUID } from 'node:crypto';
import { appendAdmission, refusedEvents } from './admission.ts';
import type { Refused } from './answer.ts';
import { type Caller, refuseKey, spendingOf } from './caller.ts';
import { limitStateOf, refusedLimits, refuseFull } from './chat-limits.ts';
import type { ChatContext } from './context.ts';

/** The refusal of a request whose limit is known to be full, before its body is parsed: parsing costs more than refusing. */
export function refuseEarly(context: ChatContext, caller: Caller): Refused | undefined {
  const full = context.findFullLimit(refusedLimits(context, caller));
  return full && refuseFull(context, full, 0n);
}

/**
 * Counts a request that was refused before its admission. The answer is the refusal, or 429 if a limit is full. What is refused
 * because the gateway or the client is busy does not count; a credential that is not valid has counted by itself.
 */
export async function countRefusal(context: ChatContext, caller: Caller, refused: Refused): Promise<Refused> {
  const { status } = refused.error;
  if (refused.limit || status === 401 || status === 429 || status >= 500) return refused;
  const spending = spendingOf(caller);
  const chatId = randomUUID();
  const outcome = await appendAdmission(context, {
    stream: `chat:${chatId}`,
    events: [],
    admit: {
      ...refusedLimits(context, caller),
      chatId,
      processId: context.processId,
      isRefused: true,
      holdMicros: 0n,
      keyId: spending?.key_id,
      accountId: spending?.account_id,
    },
    refused: refusedEvents(caller, undefined),
  });
  if (outcome === 'lane_full') return refused;
  if (outcome.outcome === 'ok') throw new Error('the ledger admitted a request that was refused');
  if (outcome.code === 'counted') return { ...refused, limit: limitStateOf(outcome.detail) };
  if (outcome.code === 'invalid_api_key' && caller.kind === 'api_key') return refuseKey(context, caller);
  return refuseFull(context, outcome, 0n);
}
