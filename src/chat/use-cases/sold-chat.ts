import type { Address } from '../../base/values/primitives.ts';
import { boundOf } from './admit-chat.ts';
import { openAiError } from '../../base/errors/openai-error.ts';
import { type ChatAnswer, refuse, type Refused } from './answer.ts';
import { completeChat, requestChat } from './complete-chat.ts';
import type { ChatContext } from './context.ts';

/** A completion that somebody without an account pays for by x402, in a flow that settles what it has cost. */
export interface SoldChat {
  readonly body: Buffer;
  readonly payer: Address;
  /** What its payment covers. */
  readonly coveredMicros: bigint;
  /** Ends it: what it has cost until then is charged by nobody. */
  readonly signal: AbortSignal;
}

export interface SoldAnswer {
  readonly answer: ChatAnswer;
  /** Once the completion has ended. 0 if nothing was delivered. */
  readonly costMicros: Promise<bigint>;
}

/** In units of 10^-18 dollars. */
const unitsPerMicro = 10n ** 12n;

/**
 * What a request costs at most, or by the operator's prices for models, in units of 10^-18 dollars; its refusal if no payment changes that.
 * What is free costs the least that there is, of which nothing is taken.
 */
export function priceSoldChat(
  context: ChatContext,
  body: Buffer,
  modelPrices: Readonly<Record<string, bigint>> | undefined,
): bigint | Refused {
  const bound = boundOf(context, { kind: 'anonymous', client: '' }, body);
  if (bound.kind === 'refused') return bound;
  if (!modelPrices) return (bound.micros > 0n ? bound.micros : 1n) * unitsPerMicro;
  const message = `Completions of ${bound.model} are not sold without an account. Nothing was charged.`;
  const fixed = Object.hasOwn(modelPrices, bound.model) ? modelPrices[bound.model] : undefined;
  return fixed ?? refuse(openAiError('insufficient_funds', { message }));
}

/** Makes a completion whose payment is on record. Its client may leave: it is read to its end all the same. */
export async function makeSoldChat(
  context: ChatContext,
  { body, payer, coveredMicros, signal }: SoldChat,
  cutShort: AbortSignal,
): Promise<SoldAnswer> {
  const { promise: costMicros, resolve: onCost } = Promise.withResolvers<bigint>();
  const caller = { kind: 'x402', client: `payer:${payer}`, payer, order: { coveredMicros, onCost } } as const;
  const admission = await requestChat(context, caller, body);
  if (admission.kind === 'refused') return { answer: admission, costMicros: Promise.resolve(0n) };
  const made = completeChat(context, admission, signal, cutShort);
  void context.running.add(made);
  return { answer: await made, costMicros };
}
