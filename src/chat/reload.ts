import type { ChatConfig } from '../config/config.ts';
import { canonicalJson } from '../domain/values/canonical-json.ts';
import { priceText } from '../domain/credit/price.ts';
import type { LedgerEvent } from '../domain/events/event.ts';
import { sha256 } from '../domain/payments/payment.ts';

/** A reload as it stands in the operator's stream: finance sees when prices changed. */
export function reloadEvent(settings: ChatConfig): LedgerEvent {
  return {
    type: 'operator_models_loaded',
    data: { models: settings.models.length, models_sha256: modelsHash(settings) },
  };
}

/** What is served, as one hash: equal where every name, price and length is. */
function modelsHash({ models, currency }: ChatConfig): string {
  const served = models.map(({ name, price, contextLength, maxOutputTokens }) => [
    name,
    price ? [priceText(price.inputNanosPerMillion), priceText(price.outputNanosPerMillion)] : [],
    contextLength,
    maxOutputTokens,
  ]);
  return sha256(canonicalJson([currency, served]));
}
