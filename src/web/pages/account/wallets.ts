import { refusals } from '../../../base/errors/refusal.ts';
import { html, type Html } from '../../../base/values/html.ts';
import { parseAddress } from '../../../base/values/primitives.ts';
import { linkRefusals, unlinkRefusals } from '../../../chat/http/identity/wallets.ts';
import { addressOf } from '../../../base/http/request-values.ts';
import { issueLinkTerms, linkUserWallet, unlinkUserWallet } from '../../../accounts/use-cases/link-wallet.ts';
import { takeAttempt } from '../../../accounts/use-cases/sign-in-limits.ts';
import type { LinkedWallet } from '../../../accounts/store/sign-in-ways.ts';
import { badge, buttonForm, shortId, time } from '../elements.ts';
import { networkText } from '../known-networks.ts';
import type { Pages } from '../serve.ts';
import type { Refusal } from '../document.ts';
import { messageData, mismatch, refusedData, signedIn, walletSecrets } from '../sign-in/wallet.ts';
import { walletForm } from '../sign-in/ways.ts';
import type { SignedInVisit, View } from '../visit.ts';

/** Adding and removing wallets; `showRefused` is the account page with the refusal. */
export function walletPages(
  pages: Pages,
  showRefused: (visit: SignedInVisit, result: Refusal) => Promise<View>,
): void {
  const shown = { shownAt: '/account' };

  pages.takeForUsers('/account/wallets/message', shown, async ({ site, request, visitor }, { fields }) => {
    const { identity } = site;
    const waitSecs = await takeAttempt(identity, addressOf(request), { kind: 'nonce' });
    if (waitSecs > 0) return refusedData(429, `Too many attempts. Try again in ${waitSecs} seconds.`);
    const answer = await issueLinkTerms(identity, visitor, undefined);
    if (answer.kind === 'stale') return refusedData(403, refusals.session_not_fresh.sentence);
    return messageData(site, answer.terms, fields.get('address') ?? '');
  });

  pages.takeForUsers('/account/wallets', { ...shown, secrets: walletSecrets }, async (visit, { fields }) => {
    const { identity } = visit.site;
    const answer = await linkUserWallet(identity, visit.visitor, signedIn(fields), addressOf(visit.request));
    if (answer.kind === 'linked') return { kind: 'redirect', to: '/account', notice: 'wallet_linked' };
    const { code, retryAfterSecs } = linkRefusals[answer.kind];
    const { status, sentence } = refusals[code];
    return showRefused(visit, {
      status,
      text: answer.kind === 'refused' ? mismatch : sentence,
      ...(retryAfterSecs !== undefined && { retryAfterSecs }),
    });
  });

  pages.takeForUsers('/account/wallets/remove', shown, async (visit, { fields }) => {
    const address = parseAddress(fields.get('address') ?? '');
    const { kind } = address
      ? await unlinkUserWallet(visit.site.identity, visit.visitor, address)
      : { kind: 'unknown' as const };
    if (kind === 'removed') return { kind: 'redirect', to: '/account', notice: 'wallet_unlinked' };
    const { status, sentence } = refusals[unlinkRefusals[kind]];
    return showRefused(visit, { status, text: sentence });
  });
}

export function walletRows(visit: SignedInVisit, wallets: readonly LinkedWallet[]): readonly Html[] {
  return wallets.map(
    ({ address, chainId, addedAt }) =>
      html`<li>
        <span
          ><strong>Wallet</strong> ${shortId(address, 'the address')}
          ${chainId !== 0 && badge(`contract on ${networkText(`eip155:${chainId}`)}`)}
          <span class="hint">since ${time(addedAt)}</span></span
        >${buttonForm(visit, '/account/wallets/remove', 'Remove', {
          look: 'quiet small',
          about: `the wallet ${address}`,
          values: { address },
        })}
      </li>`,
  );
}

/** Shown if the browser has a wallet. */
export function addWallet(visit: SignedInVisit): Html {
  return walletForm(
    visit,
    '/account/wallets',
    html`<button class="plain">Add the wallet of this browser</button>`,
  );
}
