import { html, type Html } from '../../../base/values/html.ts';
import { knownNetworks } from '../../pages/known-networks.ts';

/** A link to a transaction in the block explorer of a public network; undefined for networks without a known one. */
export function explorerLink(network: unknown, transaction: string): Html | undefined {
  const [explorer] =
    (typeof network === 'string' ? knownNetworks[network]?.blockExplorerUrls : undefined) ?? [];
  if (explorer === undefined) return undefined;
  return html`<a href="${explorer}/tx/${transaction}" rel="noreferrer noopener">in the explorer</a>`;
}
