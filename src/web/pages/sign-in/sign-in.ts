import { html, type Html } from '../../../base/values/html.ts';
import { type Refusal, sheetView } from '../document.ts';
import { pathWith } from '../own-path.ts';
import { field, form } from '../elements.ts';
import { receiptsCookie } from '../jobs/opened-receipts.ts';
import type { Pages } from '../serve.ts';
import type { Answer, Visit } from '../visit.ts';
import { askAuth, nextOf, signInPath, signOut } from './call.ts';
import { newPasswordPages } from './new-password.ts';
import { signUpPages } from './sign-up.ts';
import { providerButtons, separator, toProvider, walletButton } from './ways.ts';
import { walletPages } from './wallet.ts';

/** Signing in by a password or a provider, and signing out; other files have the other ways. */
export function signInPages(pages: Pages): void {
  pages.show('/sign-in', (visit) => {
    // a provider's callback, or the link of a mail, leads here with its own code
    const refused = noticeFor(visit.query.get('error'));
    if (visit.visitor) return { kind: 'redirect', to: nextOf(visit, visit.query), notice: refused };
    if (refused) return { kind: 'redirect', to: signInPath(nextOf(visit, visit.query)), notice: refused };
    return signInView(visit, { next: nextOf(visit, visit.query), email: visit.query.get('email') ?? '' });
  });

  pages.take('/sign-in', { secrets: ['password'] }, async (visit, { fields }) => {
    const next = nextOf(visit, fields);
    const email = fields.get('email')?.trim() ?? '';
    const result = await askAuth(visit, '/sign-in/email', { email, password: fields.get('password') ?? '' });
    if (result.kind === 'done') return { kind: 'redirect', to: next, cookies: result.cookies };
    if (result.code === 'EMAIL_NOT_VERIFIED')
      return { kind: 'redirect', to: pathWith('/sign-up/sent', { email, why: 'unconfirmed' }) };
    return signInView(visit, { next, email, result });
  });

  pages.take('/sign-in/provider', { shownAt: '/sign-in' }, async (visit, { fields }) => {
    const next = nextOf(visit, fields);
    const body = {
      provider: fields.get('provider') ?? '',
      callbackURL: next,
      errorCallbackURL: signInPath(next),
    };
    const result = await askAuth(visit, '/sign-in/social', body);
    if (result.kind === 'refused') {
      const text = result.status === 404 || result.status >= 500 ? unreachable : result.text;
      return signInView(visit, { next, result: { ...result, text } });
    }
    return toProvider(visit, result);
  });

  pages.take('/sign-out', { shownAt: '/' }, (visit) => signOut(visit, receiptsCookie, '/sign-in'));

  signUpPages(pages);
  newPasswordPages(pages);
  walletPages(pages);
}

const unreachable = 'This provider cannot be reached now. Try again in a moment, or use another way.';

function noticeFor(error: string | null) {
  switch (error?.toLowerCase()) {
    case undefined:
      return undefined;
    case 'invalid_token':
    case 'token_expired':
      return 'link_expired';
    case 'email_not_verified':
    case 'email_not_allowed':
      return 'email_not_verified';
    case 'account_not_linked':
      return 'account_not_linked';
    case 'user_disabled':
      return 'user_disabled';
    default:
      return 'provider_refused';
  }
}

function signInView(
  visit: Visit,
  { next, email = '', result }: { readonly next: string; readonly email?: string; readonly result?: Refusal },
): Answer {
  const { identity } = visit.site;
  const ways = [walletButton(visit, next), providerButtons(visit, next)];
  if (!identity.mailer) return sheetView('Sign in', ways, { refusal: result });
  const signUp = pathWith('/sign-up', { next: next === '/' ? '' : next });
  return sheetView('Sign in', [ways, separator(visit), passwordForm(visit, next, email)], {
    refusal: result,
    below: html`<p class="aside">New here? <a href="${signUp}">Sign up</a></p>`,
  });
}

function passwordForm(visit: Visit, next: string, email: string): Html {
  return form(
    visit,
    '/sign-in',
    html`<input type="hidden" name="next" value="${next}" />
      ${field({ label: 'E-mail', name: 'email', type: 'email', value: email, autocomplete: 'username', maxLength: 254 })}
      ${field({ label: 'Password', name: 'password', type: 'password', autocomplete: 'current-password', maxLength: 128, hint: html`<a href="/forgot-password">Forgotten?</a>` })}
      <button class="wide">Sign in</button>`,
  );
}
