import { html } from '../../../base/values/html.ts';
import { type Refusal, sheetView } from '../document.ts';
import { pathWith } from '../own-path.ts';
import { field, form, personName } from '../elements.ts';
import { notFound } from '../problem.ts';
import type { Pages } from '../serve.ts';
import type { Answer, Visit } from '../visit.ts';
import { askAuth, nextOf, signInPath } from './call.ts';
import { providerButtons, separator, walletButton } from './ways.ts';

/** Signing up with an address and a password. The answer is the same whether the address has an account or not. */
export function signUpPages(pages: Pages): void {
  pages.show('/sign-up', (visit) => {
    if (visit.visitor) return { kind: 'redirect', to: nextOf(visit, visit.query) };
    return signUpView(visit, visit.query);
  });

  pages.take('/sign-up', { secrets: ['password'] }, async (visit, { fields }) => {
    const email = fields.get('email')?.trim() ?? '';
    const body = {
      email,
      name: fields.get('name')?.trim() ?? '',
      password: fields.get('password') ?? '',
      callbackURL: pathWith(signInPath(nextOf(visit, fields)), { notice: 'verified' }),
    };
    const result = await askAuth(visit, '/sign-up/email', body);
    if (result.kind === 'done') return { kind: 'redirect', to: pathWith('/sign-up/sent', { email }) };
    return signUpView(visit, fields, result);
  });

  pages.show('/sign-up/sent', (visit) => (visit.site.identity.mailer ? sentView(visit) : notFound()));

  pages.take('/sign-up/again', { shownAt: '/sign-up/sent' }, async (visit, { fields }) => {
    const email = fields.get('email')?.trim() ?? '';
    const result = await askAuth(visit, '/send-verification-email', {
      email,
      callbackURL: pathWith('/sign-in', { notice: 'verified' }),
    });
    if (result.kind === 'refused') return sentView(visit, { email, result });
    return { kind: 'redirect', to: pathWith('/sign-up/sent', { email, why: 'again' }) };
  });
}

function signUpView(visit: Visit, values: URLSearchParams, result?: Refusal): Answer {
  const next = nextOf(visit, values);
  const fields = html`<input type="hidden" name="next" value="${next}" />
    ${field({ label: 'Name', name: 'name', value: values.get('name'), autocomplete: 'name', maxLength: 100 })}
    ${field({ label: 'E-mail', name: 'email', type: 'email', value: values.get('email'), autocomplete: 'username', maxLength: 254, hint: 'A link is sent there, which confirms the address.' })}
    ${field({ label: 'Password', name: 'password', type: 'password', autocomplete: 'new-password', minLength: 10, maxLength: 128, hint: 'At least 10 characters. Four random words are good.' })}
    <button class="wide">Sign up</button>`;
  const byPassword = visit.site.identity.mailer && [separator(visit), form(visit, '/sign-up', fields)];
  return sheetView('Sign up', [walletButton(visit, next), providerButtons(visit, next), byPassword], {
    refusal: result,
    below: html`<p class="aside">You have an account? <a href="${signInPath(next)}">Sign in</a></p>`,
  });
}

function sentView(visit: Visit, again?: { readonly email: string; readonly result: Refusal }): Answer {
  const email = again?.email ?? visit.query.get('email') ?? '';
  const isUnconfirmed = visit.query.get('why') === 'unconfirmed';
  const title = isUnconfirmed ? 'Confirm your address' : 'Look into your mail';
  const content = html`<p>
      ${isUnconfirmed ? 'You can sign in once the link in our mail was opened.' : 'A mail is on its way'}${!isUnconfirmed && email !== '' && html` to <strong>${personName(email)}</strong>`}${!isUnconfirmed && '. Open its link within an hour, then sign in.'}
    </p>
    <p class="hint">Nothing there? Look into the spam folder, or have it sent again.</p>
    ${form(
      visit,
      '/sign-up/again',
      html`${field({ label: 'E-mail', name: 'email', type: 'email', value: email, autocomplete: 'username', maxLength: 254 })}<button
          class="plain wide"
        >
          Send it again
        </button>`,
    )}`;
  const below = html`<p class="aside"><a href="/sign-in">To the sign-in</a></p>`;
  return sheetView(title, content, { refusal: again?.result, below });
}
