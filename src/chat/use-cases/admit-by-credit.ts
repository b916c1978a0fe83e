import { type Admitted, admit } from './admission.ts';
import type { Refused } from './answer.ts';
import type { Caller } from './caller.ts';
import type { ChatContext } from './context.ts';
import { affordableTokens, type PricedChat } from './priced-chat.ts';

/** How often the affordable length is computed again while other requests spend from the same account. */
const maxTries = 3;

/**
 * Admits a completion that is paid from an account's credit. When the request sets no length, the answer may be as long as the
 * account can pay for.
 */
export async function admitByCredit(
  context: ChatContext,
  caller: Caller,
  { request, model, requestedTokens, costOf }: PricedChat,
): Promise<Admitted | Refused> {
  for (let tries = 1, maxTokens = requestedTokens; ; tries++) {
    const isLast = request.maxTokens !== undefined || tries === maxTries;
    const result = await admit(
      context,
      caller,
      { request, model, maxTokens },
      { holdMicros: costOf(maxTokens), leastMicros: isLast ? undefined : costOf(1) },
    );
    if (result.kind !== 'short') return result;
    if (isLast) return result.refused;
    maxTokens = affordableTokens(result.availableMicros, maxTokens, costOf);
    if (maxTokens === 0) return result.refused;
  }
}
