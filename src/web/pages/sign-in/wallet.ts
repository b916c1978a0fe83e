import { refusals } from '../../../base/errors/refusal.ts';
import { siweMessage } from '../../../accounts/rules/siwe.ts';
import { parseAddress } from '../../../base/values/primitives.ts';
import { walletCookie } from '../../../accounts/http/siwe.ts';
import { addressOf } from '../../../base/http/request-values.ts';
import { endFormerSession } from '../../../accounts/use-cases/sessions.ts';
import { takeAttempt } from '../../../accounts/use-cases/sign-in-limits.ts';
import {
  issueNonce,
  signInByWallet,
  type SiweTerms,
  type WalletSignIn,
} from '../../../accounts/use-cases/siwe.ts';
import { problemView } from '../problem.ts';
import type { Pages } from '../serve.ts';
import type { Data, Site } from '../visit.ts';
import { nextOf } from './call.ts';

/** Signing in with a wallet: the message to sign, and its signature. */
export function walletPages(pages: Pages): void {
  pages.take('/sign-in/wallet/message', { shownAt: '/sign-in' }, async ({ site, request }, { fields }) => {
    const { identity } = site;
    const waitSecs = await takeAttempt(identity, addressOf(request), { kind: 'nonce' });
    if (waitSecs > 0) return refusedData(429, `Too many attempts. Try again in ${waitSecs} seconds.`);
    const terms = await issueNonce(identity);
    const statement = 'Sign in. This costs nothing and moves no tokens.';
    return messageData(site, { ...terms, statement }, fields.get('address') ?? '');
  });

  pages.take(
    '/sign-in/wallet',
    { shownAt: '/sign-in', secrets: walletSecrets },
    async (visit, { fields }) => {
      const { identity, auth } = visit.site;
      const answer = await signInByWallet(
        identity,
        await auth.load(false),
        signedIn(fields),
        addressOf(visit.request),
      );
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
    },
  );
}

/** The message for a wallet to sign, for the module of the pages. */
export function messageData(
  { identity }: Site,
  { statement, domain, uri, chainId, nonce }: SiweTerms & { readonly statement: string },
  given: string,
): Data {
  const address = parseAddress(given);
  if (address === undefined) return refusedData(400, 'The wallet did not name an address.');
  const issuedAt = new Date(Date.now() + identity.lane.state.clockOffsetMs).toISOString();
  const message = siweMessage({ domain, address, statement, uri, chainId, nonce, issuedAt });
  return { kind: 'data', status: 200, json: { message } };
}

export function refusedData(status: number, error: string): Data {
  return { kind: 'data', status, json: { error } };
}

/** What the form of a wallet carries. */
export function signedIn(fields: URLSearchParams): WalletSignIn {
  return {
    address: fields.get('address') ?? '',
    message: (fields.get('message') ?? '').replaceAll('\r\n', '\n'),
    signature: fields.get('signature') ?? '',
  };
}

export const walletSecrets = ['address', 'message', 'signature'];
export const mismatch =
  'What the wallet signed is not the message that this page showed, or it is too old. Nothing was changed: go back and try again.';
