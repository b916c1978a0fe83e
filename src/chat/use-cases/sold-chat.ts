import { unitsPerMicro } from '../../base/values/amount.ts';
import type { Address } from '../../base/values/primitives.ts';
import { boundOf } from './admit-chat.ts';
import type { OrderEnd } from './caller.ts';
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
  /** Ends it: what it has cost until then is not charged. */
  readonly signal: AbortSignal;
}

export interface SoldAnswer {
  readonly answer: ChatAnswer;
  /** Once the completion has ended. */
  readonly end: Promise<OrderEnd>;
}

/**
 * What a request costs at most, or by the operator's prices for models, in units of 10^-18 dollars; its refusal if no payment changes that.
 * What is free is not sold.
 */
export function priceSoldChat(
  context: ChatContext,
  body: Buffer,
  modelPrices: Readonly<Record<string, bigint>> | undefined,
): bigint | Refused {
  const bound = boundOf(context, { kind: 'anonymous', client: '' }, body);
  if (bound.kind === 'refused') return bound;
  const prices = modelPrices ?? { [bound.model]: bound.micros * unitsPerMicro };
  const price = Object.hasOwn(prices, bound.model) ? prices[bound.model] : undefined;
  // a wallet of its own for every few requests would pass by the limits of what is free
  if (price !== undefined && price > 0n) return price;
  const why = price === 0n ? 'free: they need no payment' : 'not sold without an account';
  const message = `Completions of ${bound.model} are ${why}. Nothing was charged.`;
  return refuse(openAiError('insufficient_funds', { message }));
}

/** Makes a completion whose payment is on record. Its client may leave: it is read to its end all the same. */
export async function makeSoldChat(
  context: ChatContext,
  { body, payer, coveredMicros, signal }: SoldChat,
  cutShort: AbortSignal,
): Promise<SoldAnswer> {
  const { promise: end, resolve: onEnd } = Promise.withResolvers<OrderEnd>();
  const caller = { kind: 'x402', client: `payer:${payer}`, payer, order: { coveredMicros, onEnd } } as const;
  const admission = await requestChat(context, caller, body);
  if (admission.kind === 'refused')
    return { answer: admission, end: Promise.resolve({ costMicros: 0n, isWhole: false }) };
  const made = completeChat(context, admission, signal, cutShort);
  void context.running.add(made);
  return { answer: await made, end };
}
