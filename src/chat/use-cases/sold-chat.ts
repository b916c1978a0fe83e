import type { Address } from '../../base/values/primitives.ts';
import { boundOf } from './admit-chat.ts';
import type { ChatAnswer, Refused } from './answer.ts';
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

/** What a request costs at most, in micros of the currency; its refusal if no payment changes that. */
export function priceSoldChat(context: ChatContext, body: Buffer): bigint | Refused {
  return boundOf(context, { kind: 'anonymous', client: '' }, body);
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
