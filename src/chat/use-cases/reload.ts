import type { ChatConfig } from '../../base/config/config.ts';
import { canonicalJson } from '../../base/values/canonical-json.ts';
import { type ModelPrice, priceText } from '../../base/values/price.ts';
import type { LedgerEvent } from '../../ledger/rules/event.ts';
import { sha256 } from '../../base/values/sha256.ts';

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
