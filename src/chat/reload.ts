import type { ChatConfig } from '../config/config.ts';
import { canonicalJson } from '../domain/values/canonical-json.ts';
import { type ModelPrice, priceText } from '../domain/credit/price.ts';
import type { LedgerEvent } from '../domain/events/event.ts';
import { sha256 } from '../domain/values/sha256.ts';

/** The event of a reload in the operator's stream, which shows finance when prices changed. */
export function reloadEvent(settings: ChatConfig): LedgerEvent {
  return {
    type: 'operator_models_loaded',
    data: {
      models: settings.models.length,
      models_sha256: modelsHash(settings),
      currency: settings.currency,
    },
  };
}

/** One hash over the names, prices and lengths of all models. */
function modelsHash({ models, currency }: ChatConfig): string {
  const served = models.map(({ name, price, contextLength, maxOutputTokens }) => [
    name,
    price ? pricesOf(price) : [],
    contextLength,
    maxOutputTokens,
  ]);
  return sha256(canonicalJson([currency, served]));
}

function pricesOf(price: ModelPrice): string[] {
  const { inputNanosPerMillion: input, outputNanosPerMillion: output } = price;
  const { cachedInputNanosPerMillion: cached = input, cacheWriteNanosPerMillion: written = input } = price;
  return [input, output, cached, written].map(priceText);
}
