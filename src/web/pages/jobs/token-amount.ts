import { formatUnits } from 'viem/utils';
import { html, type Html } from '../../../base/values/html.ts';
import { decimalsOf } from '../elements.ts';
import { networkText } from '../known-networks.ts';

/** An amount of a token, exact, with its network; its smallest units on hover. `digits`: after the point, in a column. */
export function tokenAmount(
  atoms: bigint,
  {
    symbol,
    decimals,
    network,
  }: { readonly symbol: string; readonly decimals: number; readonly network: string },
  digits = 0,
): Html {
  const exact = formatUnits(atoms, decimals);
  return html`<data
    class="amount"
    value="${exact}"
    title="${atoms} units of ${symbol} on ${networkText(network)}"
    >${decimalsOf(exact, digits)} <span class="unit">${symbol}</span></data
  >`;
}
