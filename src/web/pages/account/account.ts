import { html, type Html } from '../../../base/values/html.ts';
import { isUnreachable } from '../../../accounts/use-cases/wallet-user.ts';
import {
  type Credential,
  type LinkedWallet,
  listCredentials,
  listWallets,
} from '../../../accounts/store/sign-in-ways.ts';
import { noticeOf, type Refusal, refusedView } from '../document.ts';
import type { NoticeCode } from '../notices.ts';
import { badge, buttonForm, factList, field, form, personName, shortId, time } from '../elements.ts';
import type { Pages } from '../serve.ts';
import { askAuth } from '../sign-in/call.ts';
import { providerLabel, toProvider } from '../sign-in/ways.ts';
import type { SignedInVisit, View } from '../visit.ts';
import { sessionPages, sessionsSection } from './sessions.ts';
import { addWallet, walletPages, walletRows } from './wallets.ts';

/** Which form was refused, and why. */
interface RefusedForm {
  readonly at: 'name' | 'password' | 'ways';
  readonly result: Refusal;
  /** The name that was typed. */
  readonly name?: string;
}

/** A user's name, ways to sign in, and sessions. */
export function accountPages(pages: Pages): void {
  pages.showForUsers('/account', (visit) => {
    const error = visit.query.get('error');
    if (error !== null) return { kind: 'redirect', to: '/account', notice: refusedLink(error) };
    return accountView(visit);
  });

  pages.takeForUsers('/account/name', { shownAt: '/account' }, async (visit, { fields }) => {
    const name = fields.get('name')?.trim() ?? '';
    const result = await askAuth(visit, '/update-user', { name });
    if (result.kind === 'refused') {
      const text = result.status === 400 ? nameMistake : result.text;
      return accountView(visit, { at: 'name', name, result: { ...result, text } });
    }
    return { kind: 'redirect', to: '/account', notice: 'name_changed', cookies: result.cookies };
  });

  const secrets = ['current', 'password'];
  pages.takeForUsers('/account/password', { shownAt: '/account', secrets }, async (visit, { fields }) => {
    const result = await askAuth(visit, '/change-password', {
      currentPassword: fields.get('current') ?? '',
      newPassword: fields.get('password') ?? '',
    });
    if (result.kind === 'refused') return accountView(visit, { at: 'password', result });
    return { kind: 'redirect', to: '/account', notice: 'password_changed', cookies: result.cookies };
  });

  pages.takeForUsers('/account/link', { shownAt: '/account' }, async (visit, { fields }) => {
    const result = await askAuth(visit, '/link-social', {
      provider: fields.get('provider') ?? '',
      callbackURL: '/account?notice=provider_linked',
      errorCallbackURL: '/account',
    });
    if (result.kind === 'refused') return accountView(visit, { at: 'ways', result });
    return toProvider(visit, result);
  });

  pages.takeForUsers('/account/unlink', { shownAt: '/account' }, async (visit, { fields }) => {
    const result = await askAuth(visit, '/unlink-account', { accountId: fields.get('credential') ?? '' });
    if (result.kind === 'refused') return accountView(visit, { at: 'ways', result });
    return { kind: 'redirect', to: '/account', notice: 'provider_unlinked' };
  });

  walletPages(pages, (visit, result) => accountView(visit, { at: 'ways', result }));
  sessionPages(pages);
}

/** Why a provider was not added, by the library's code. */
function refusedLink(error: string): NoticeCode {
  return /already_linked|does_not_match/.test(error) ? 'provider_not_linked' : 'provider_refused';
}

const nameMistake = 'A name has 1 to 100 characters on one line.';

async function accountView(visit: SignedInVisit, refused?: RefusedForm): Promise<View> {
  const { identity } = visit.site;
  const { userId, user } = visit.visitor;
  const credentials = await listCredentials(identity.pool, userId);
  const wallets = await listWallets(identity.pool, userId);
  const mistake = (at: RefusedForm['at']): Html | false =>
    refused?.at === at && noticeOf({ tone: 'bad', text: refused.result.text });
  // typed before it was refused, or before the session ended
  const name = refused?.name ?? visit.query.get('name') ?? user.name;
  const hasPassword = credentials.some(({ provider }) => provider === 'credential');
  const body = html`<div class="head"><h1>Account</h1></div>
    <section class="sheet">
      <h2>You</h2>
      ${mistake('name')}
      ${factList([
        ['E-mail', emailOf(user)],
        ['Account since', time(user.createdAt)],
        ['Account id', shortId(userId, 'the id of your account')],
      ])}
      ${form(visit, '/account/name', html`${field({ label: 'Name', name: 'name', value: name, autocomplete: 'name', maxLength: 100 })}<button class="plain">Change the name</button>`)}
    </section>
    <section class="sheet">
      <h2>Ways to sign in</h2>
      ${mistake('ways')}${waysList(visit, credentials, wallets)}${linkButtons(visit, credentials)}${addWallet(visit)}
    </section>
    ${
      hasPassword &&
      html`<section class="sheet">
        <h2>Password</h2>
        ${mistake('password')}${passwordForm(visit)}
      </section>`
    }
    ${await sessionsSection(visit)}`;
  return refusedView({ kind: 'view', title: 'Account', section: 'account', body }, refused?.result);
}

function emailOf({ email, isEmailVerified }: SignedInVisit['visitor']['user']): Html {
  if (isUnreachable(email)) return html`<span class="muted">none: you sign in with a wallet</span>`;
  return html`${personName(email)}
  ${isEmailVerified ? badge('confirmed', 'good') : badge('not confirmed', 'warn')}`;
}

function waysList(
  visit: SignedInVisit,
  credentials: readonly Credential[],
  wallets: readonly LinkedWallet[],
): Html {
  return html`<ul class="rows">
    ${credentials.map(
      ({ credentialId, provider, addedAt }) =>
        html`<li>
          <span
            ><strong>${provider === 'credential' ? 'Password' : providerLabel(provider)}</strong>
            <span class="hint">since ${time(addedAt)}</span></span
          >${
            provider !== 'credential' &&
            buttonForm(visit, '/account/unlink', 'Remove', {
              look: 'quiet small',
              about: providerLabel(provider),
              values: { credential: credentialId },
            })
          }
        </li>`,
    )}${walletRows(visit, wallets)}
  </ul>`;
}

function linkButtons(visit: SignedInVisit, credentials: readonly Credential[]): Html | undefined {
  const linked = new Set(credentials.map(({ provider }) => provider));
  const others = visit.site.identity.settings.providers.filter(({ name }) => !linked.has(name));
  if (others.length === 0) return undefined;
  return html`<div class="actions">
    ${others.map(({ name }) =>
      form(
        visit,
        '/account/link',
        html`<button class="plain" name="provider" value="${name}">Add ${providerLabel(name)}</button>`,
      ),
    )}
  </div>`;
}

function passwordForm(visit: SignedInVisit): Html {
  return form(
    visit,
    '/account/password',
    html`${field({ label: 'Current password', name: 'current', type: 'password', autocomplete: 'current-password', maxLength: 128 })}
      ${field({ label: 'New password', name: 'password', type: 'password', autocomplete: 'new-password', minLength: 10, maxLength: 128, hint: 'At least 10 characters. It ends your other sessions.' })}
      <button class="plain">Change the password</button>`,
  );
}
