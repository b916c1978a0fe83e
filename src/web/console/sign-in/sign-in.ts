import { html } from '../../../base/values/html.ts';
import { noticeOf, type Refusal, sheetView } from '../../pages/document.ts';
import { pathWith } from '../../pages/own-path.ts';
import { field, form } from '../../pages/elements.ts';
import type { Requests } from '../../pages/requests.ts';
import { askAuth, signOut } from '../../pages/sign-in/call.ts';
import { providerButtons, toProvider } from '../../pages/sign-in/ways.ts';
import type { View } from '../../pages/visit.ts';
import type { ConsoleSite } from '../visit.ts';
import { factorPages } from './factors.ts';
import { invitationPages } from './invitation.ts';
import { type AnyVisit, anyone, nextOf } from './next.ts';
import { consoleCookie, secondFactorPages } from './second-factor.ts';

/** Signing in to the console, in two steps: a password or a provider, then a second factor. */
export function signInPages(requests: Requests<ConsoleSite>): void {
  requests.get('/console/sign-in', anyone, (visit) => {
    const next = nextOf(visit, visit.query);
    if (visit.query.get('error') !== null)
      return {
        kind: 'redirect',
        to: pathWith('/console/sign-in', { next }),
        notice: 'provider_refused',
      };
    if (visit.visitor?.operator) return { kind: 'redirect', to: next };
    return signInView(visit, { next, email: visit.query.get('email') ?? '' });
  });

  requests.post('/console/sign-in', { secrets: ['password'] }, anyone, async (visit, { fields }) => {
    const next = nextOf(visit, fields);
    const email = fields.get('email')?.trim() ?? '';
    const result = await askAuth(visit, '/sign-in/email', { email, password: fields.get('password') ?? '' });
    if (result.kind === 'done') return { kind: 'redirect', to: next, cookies: result.cookies };
    return signInView(visit, { next, email, result });
  });

  requests.post('/console/sign-in/provider', { shownAt: '/console/sign-in' }, anyone, async (visit, sent) => {
    const next = nextOf(visit, sent.fields);
    const body = {
      provider: sent.fields.get('provider') ?? '',
      callbackURL: next,
      errorCallbackURL: pathWith('/console/sign-in', { next }),
    };
    const result = await askAuth(visit, '/sign-in/social', body);
    return result.kind === 'refused' ? signInView(visit, { next, result }) : toProvider(visit, result);
  });

  requests.post('/console/sign-out', { shownAt: '/console' }, anyone, (visit) =>
    signOut(visit, consoleCookie, '/console/sign-in'),
  );

  secondFactorPages(requests);
  factorPages(requests);
  invitationPages(requests);
}

function signInView(
  visit: AnyVisit,
  { next, email = '', result }: { readonly next: string; readonly email?: string; readonly result?: Refusal },
): View {
  const { identity, hasCustomerPages } = visit.site;
  const forgotten = hasCustomerPages && html`<a href="/forgot-password">Forgotten your password?</a>`;
  const content = html`${
    visit.visitor &&
    noticeOf({
      tone: 'warn',
      text: `You are signed in as ${visit.visitor.user.email}, who is not an operator. Sign in as another user.`,
    })
  }
  ${providerButtons(visit, next, '/console/sign-in/provider')}
  ${
    identity.mailer &&
    form(
      visit,
      '/console/sign-in',
      html`<input type="hidden" name="next" value="${next}" />
        ${field({ label: 'E-mail', name: 'email', type: 'email', value: email, autocomplete: 'username', maxLength: 254 })}
        ${field({ label: 'Password', name: 'password', type: 'password', autocomplete: 'current-password', maxLength: 128, ...(forgotten && { hint: forgotten }) })}
        <button class="wide">Continue</button>`,
    )
  }`;
  return sheetView('Sign in', content, { heading: 'Sign in to the console', refusal: result });
}
