import { randomUUID } from 'node:crypto';
import { microsOfAtoms } from '../../accounts/rules/spend/spend-auth.ts';
import { acceptSpend } from './spend/accept-spend.ts';
import type { SpendContext } from './spend/context.ts';
import { offerOf } from './spend/payment-offer.ts';
import { releaseSpend } from './spend/record-spend.ts';
import { invalidSpend } from './spend/refusal.ts';
import { type Admitted, admit, withoutShort } from './admission.ts';
import type { Refused } from './answer.ts';
import type { Caller } from './caller.ts';
import { limitsOf, limitStateOf, refuseAdmission } from './chat-limits.ts';
import type { ChatContext } from './context.ts';
import { affordableTokens, type PricedChat } from './priced-chat.ts';
import { refuseSpend } from './refuse-spend.ts';

type Spender = Extract<Caller, { kind: 'spend_auth' }>;

/**
 * Admits a completion that a spend authorization pays for. A spend pays its whole amount, so that is the maximum cost of the
 * answer. The spend is accepted first, then the limits are checked; a limit that is known to be full is refused before both.
 */
export async function admitBySpend(
  context: ChatContext,
  spending: SpendContext,
  caller: Spender,
  chat: PricedChat,
  body: Uint8Array,
): Promise<Admitted | Refused> {
  const { request, model, costOf } = chat;
  const coveredMicros = microsOfAtoms(caller.spend.auth.amount, spending.settings.atomsPerUnit);
  const maxTokens = coveredTokens(chat, coveredMicros);
  if (maxTokens === 0 || costOf(maxTokens) > coveredMicros) {
    const { amount } = offerOf(spending, costOf(request.maxTokens ?? 1));
    const message =
      `This request may cost up to ${amount} atoms, more than the spend authorization pays. Nothing was charged; ` +
      'sign a larger amount, or request fewer tokens.';
    return refuseSpend(invalidSpend('below_min_charge', message));
  }
  // saves accepting and releasing the spend for a request that comes too soon
  const tooSoon = refuseFullLimit(context, caller, coveredMicros);
  if (tooSoon) return tooSoon;
  const chatId = randomUUID();
  const result = await acceptSpend(spending, caller.spend, chatId, body);
  if (result.kind !== 'accepted') return refuseSpend(result);
  const { spend } = result;
  const admission = withoutShort(
    await admit(context, caller, { request, model, maxTokens }, { holdMicros: coveredMicros }, chatId),
  );
  if (admission.kind === 'admitted') return { ...admission, spend };
  await releaseSpend(spending, spend, admission.error.body.error.code);
  return admission;
}

/** The requested length where the request sets one; else the longest that the spend covers, 0 when it covers none. */
function coveredTokens({ request, requestedTokens, costOf }: PricedChat, coveredMicros: bigint): number {
  if (request.maxTokens !== undefined || costOf(requestedTokens) <= coveredMicros) return requestedTokens;
  return affordableTokens(coveredMicros, requestedTokens, costOf);
}

function refuseFullLimit(context: ChatContext, caller: Caller, holdMicros: bigint): Refused | undefined {
  const limits = limitsOf(context, caller, false);
  const full = context.findFullLimit(limits);
  if (!full) return undefined;
  const result = refuseAdmission(context, full, holdMicros, limitStateOf(full.detail));
  return result.kind === 'short' ? result.refused : result;
}
