import { formatUnits } from 'viem/utils';
import { html, type Html } from '../../../base/values/html.ts';
import { withThousands } from '../elements.ts';

/** An amount of a token, exact, with its network; its smallest units on hover. */
export function tokenAmount(
  atoms: bigint,
  {
    symbol,
    decimals,
    network,
  }: { readonly symbol: string; readonly decimals: number; readonly network: string },
): Html {
  const exact = formatUnits(atoms, decimals);
  const [whole = '0', rest] = exact.split('.', 2);
  const shown = rest === undefined ? withThousands(BigInt(whole)) : `${withThousands(BigInt(whole))}.${rest}`;
  return html`<data class="amount" value="${exact}" title="${atoms} units of ${symbol} on ${network}"
    >${shown} <span class="unit">${symbol}</span></data
  >`;
}
