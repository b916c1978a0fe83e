import type { ModelConfig } from '../../base/config/config.ts';
import { priceText } from '../../base/values/price.ts';
import { html, type Html } from '../../base/values/html.ts';
import { type Column, count } from './elements.ts';

/** The columns of a model after its name: its context, and its prices in this currency. */
export function modelColumns(currency: string): readonly Column<ModelConfig>[] {
  const price = (nanos: bigint | undefined): Html | string =>
    nanos === undefined ? 'free' : html`${priceText(nanos)} <span class="unit">${currency}</span>`;
  return [
    { label: 'Context', isNumber: true, cell: ({ contextLength }) => count(contextLength) },
    {
      label: 'Input, a million tokens',
      isNumber: true,
      cell: (model) => price(model.price?.inputNanosPerMillion),
    },
    {
      label: 'Output, a million tokens',
      isNumber: true,
      cell: (model) => price(model.price?.outputNanosPerMillion),
    },
  ];
}
