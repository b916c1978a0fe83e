import type { ModelConfig } from '../../base/config/config.ts';
import { priceText } from '../../base/values/price.ts';
import { html, type Html } from '../../base/values/html.ts';
import { type Column, count, decimalsOf, digitsOf } from './elements.ts';

/** The columns of a model after its name: its context, and its prices in this currency. `models`: all that the table has. */
export function modelColumns(
  currency: string,
  models: readonly ModelConfig[] = [],
): readonly Column<ModelConfig>[] {
  const prices = models.flatMap(({ price }) =>
    price ? [price.inputNanosPerMillion, price.outputNanosPerMillion] : [],
  );
  const digits = digitsOf(prices.map(priceText));
  const price = (nanos: bigint | undefined): Html | string =>
    nanos === undefined
      ? 'free'
      : html`${decimalsOf(priceText(nanos), digits)} <span class="unit">${currency}</span>`;
  return [
    { label: 'Context, tokens', isNumber: true, cell: ({ contextLength }) => count(contextLength) },
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

/** The prices of a model in one line. */
export function modelPrice({ price }: ModelConfig, currency: string): Html | string {
  if (!price) return 'free';
  const { inputNanosPerMillion: input, outputNanosPerMillion: output } = price;
  const digits = digitsOf([priceText(input), priceText(output)]);
  return html`${decimalsOf(priceText(input), digits)} in, ${decimalsOf(priceText(output), digits)} out
    <span class="unit">${currency} a million tokens</span>`;
}
