import { html } from '../../../base/values/html.ts';
import { type Refusal, sheetView } from '../document.ts';
import { field, form, hidden } from '../elements.ts';
import { notFound } from '../problem.ts';
import type { Pages } from '../serve.ts';
import type { Answer, Visit } from '../visit.ts';
import { askAuth } from './call.ts';

/** A forgotten password: a mail with a link, and the page that it leads to. */
export function newPasswordPages(pages: Pages): void {
  pages.show('/forgot-password', (visit) => (visit.site.identity.mailer ? forgottenView(visit) : notFound()));

  pages.take('/forgot-password', {}, async (visit, { fields }) => {
    const email = fields.get('email')?.trim() ?? '';
    const result = await askAuth(visit, '/request-password-reset', { email, redirectTo: '/reset-password' });
    if (result.kind === 'refused') return forgottenView(visit, email, result);
    return { kind: 'redirect', to: '/forgot-password/sent' };
  });

  pages.show('/forgot-password/sent', () => sheetView('Look into your mail', sentText));

  pages.show('/reset-password', (visit) => {
    const token = visit.query.get('token');
    if (!token || visit.query.has('error'))
      return { kind: 'redirect', to: '/forgot-password', notice: 'link_expired' };
    return resetView(visit, token);
  });

  pages.take('/reset-password', { secrets: ['password'] }, async (visit, { fields }) => {
    const token = fields.get('token') ?? '';
    const newPassword = fields.get('password') ?? '';
    const result = await askAuth(visit, '/reset-password', { token, newPassword });
    if (result.kind === 'done') return { kind: 'redirect', to: '/sign-in', notice: 'password_set' };
    if (result.code === 'INVALID_TOKEN')
      return { kind: 'redirect', to: '/forgot-password', notice: 'link_expired' };
    return resetView(visit, token, result);
  });
}

const sentText = html`<p>
    If the address has an account here, a mail with a link is on its way. The link works once, within an hour.
  </p>
  <p class="hint">Nothing there? Look into the spam folder, or <a href="/forgot-password">ask again</a>.</p>`;

function forgottenView(visit: Visit, email = visit.query.get('email') ?? '', result?: Refusal): Answer {
  const content = html`<p>We mail you a link. With it you set a new password.</p>
    ${form(visit, '/forgot-password', html`${field({ label: 'E-mail', name: 'email', type: 'email', value: email, autocomplete: 'username', maxLength: 254 })}<button class="wide">Send the link</button>`)}`;
  const below = html`<p class="aside"><a href="/sign-in">Back to the sign-in</a></p>`;
  return sheetView('Forgotten password', content, { refusal: result, below });
}

function resetView(visit: Visit, token: string, result?: Refusal): Answer {
  const password = field({
    label: 'New password',
    name: 'password',
    type: 'password',
    autocomplete: 'new-password',
    minLength: 10,
    maxLength: 128,
    hint: 'At least 10 characters. It ends all your sessions.',
  });
  const fields = html`${hidden({ token })}${password}<button class="wide">Set the password</button>`;
  return sheetView('New password', form(visit, '/reset-password', fields), { refusal: result });
}
