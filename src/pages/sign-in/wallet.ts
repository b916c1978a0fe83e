import { isAddress } from 'viem/utils';
import { refusals } from '../../domain/errors/refusal.ts';
import { siweMessage } from '../../domain/identity/siwe.ts';
import type { Address } from '../../domain/values/primitives.ts';
import { walletCookie } from '../../http/identity/siwe.ts';
import { addressOf } from '../../http/server/request-values.ts';
import { endFormerSession } from '../../identity/sessions.ts';
import { takeAttempt } from '../../identity/sign-in-limits.ts';
import { issueNonce, signInByWallet } from '../../identity/siwe.ts';
import { problemView } from '../problem.ts';
import type { Pages } from '../serve.ts';
import { nextOf } from './next.ts';

/** Signing in with a wallet: the message that it is to sign, and what it has signed. */
export function walletPages(pages: Pages): void {
  pages.take('/sign-in/wallet/message', { shownAt: '/sign-in' }, async ({ site, request }, { fields }) => {
    const address = fields.get('address') ?? '';
    if (!isAddress(address, { strict: false }))
      return { kind: 'data', status: 400, json: { error: 'The wallet did not name an address.' } };
    const { identity } = site;
    const waitSecs = await takeAttempt(identity, addressOf(request), { kind: 'nonce' });
    if (waitSecs > 0)
      return {
        kind: 'data',
        status: 429,
        json: { error: `Too many attempts. Try again in ${waitSecs} seconds.` },
      };
    const { nonce, domain, uri, chainId } = await issueNonce(identity);
    const message = siweMessage({
      domain,
      address: address.toLowerCase() as Address,
      statement: 'Sign in. This costs nothing and moves no tokens.',
      uri,
      chainId,
      nonce,
      issuedAt: new Date(Date.now() + identity.lane.state.clockOffsetMs).toISOString(),
    });
    return { kind: 'data', status: 200, json: { message } };
  });

  pages.take('/sign-in/wallet', { shownAt: '/sign-in', secrets }, async (visit, { fields }) => {
    const { identity, auth } = visit.site;
    const signIn = {
      address: fields.get('address') ?? '',
      message: (fields.get('message') ?? '').replaceAll('\r\n', '\n'),
      signature: fields.get('signature') ?? '',
    };
    const answer = await signInByWallet(identity, await auth.load(false), signIn, addressOf(visit.request));
    switch (answer.kind) {
      case 'signed_in':
        await endFormerSession(identity, visit.request.headers.cookie);
        return {
          kind: 'redirect',
          to: nextOf(visit, fields),
          cookies: [walletCookie(identity, answer.session)],
        };
      case 'refused':
        return problemView(refusals.siwe_mismatch.status, mismatch);
      case 'disabled':
        return problemView(refusals.user_disabled.status, refusals.user_disabled.sentence);
      case 'limited':
        return { ...problemView(429, 'Too many attempts. Try again in a minute.'), retryAfterSecs: 60 };
      case 'unavailable':
        return { ...problemView(503, refusals.sign_in_unavailable.sentence), retryAfterSecs: 2 };
    }
  });
}

const secrets = ['address', 'message', 'signature'];
const mismatch =
  'What the wallet signed is not the message that this page showed, or it is too old. Nothing was changed: go back to the sign-in page and try again.';
