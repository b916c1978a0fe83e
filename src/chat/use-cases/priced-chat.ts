import type { ModelConfig } from '../../base/config/config.ts';
import type { ChatRequest } from '../rules/chat-request.ts';
import { promptTokensBound } from '../rules/prompt-bound.ts';
import { upperBoundMicros } from '../../base/values/price.ts';

/** A request for a model that costs credit. */
export interface PricedChat {
  readonly request: ChatRequest;
  readonly model: ModelConfig;
  /** The requested length of the answer, or the model's longest one. */
  readonly requestedTokens: number;
  /** The maximum cost of an answer of that length. */
  readonly costOf: (maxTokens: number) => bigint;
}

/** Undefined for a model of the free tier. */
export function priceChat(request: ChatRequest, model: ModelConfig): PricedChat | undefined {
  const { price, contextLength, maxOutputTokens } = model;
  if (!price) return undefined;
  const bound = Math.min(promptTokensBound(request, contextLength), contextLength);
  const costOf = (maxTokens: number): bigint =>
    upperBoundMicros({ promptTokensBound: bound, maxTokens, n: request.n, price });
  return { request, model, requestedTokens: request.maxTokens ?? maxOutputTokens, costOf };
}

/** The longest answer below `tooMany` tokens that this much credit covers; 0 when it covers none. */
export function affordableTokens(
  availableMicros: bigint,
  tooMany: number,
  costOf: (maxTokens: number) => bigint,
): number {
  let [low, high] = [0, tooMany];
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (costOf(middle) <= availableMicros) low = middle;
    else high = middle;
  }
  return low;
}
