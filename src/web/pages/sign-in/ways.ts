import { html, type Html } from '../../../base/values/html.ts';
import { issuerOrigins } from '../../../accounts/use-cases/auth-providers.ts';
import { sheetView } from '../document.ts';
import { form } from '../elements.ts';
import type { Answer, PageHost, Visit, VisitOf } from '../visit.ts';
import { type AuthResult, textOf } from './call.ts';

const names: Readonly<Record<string, string>> = { google: 'Google', gitlab: 'GitLab', github: 'GitHub' };

/** What people call a provider. */
export function providerLabel(name: string): string {
  return names[name] ?? name;
}

export function providerButtons(
  visit: VisitOf<PageHost>,
  next: string,
  action = '/sign-in/provider',
): Html | undefined {
  const { providers } = visit.site.identity.settings;
  if (providers.length === 0) return undefined;
  return html`<div class="ways">
    ${providers.map(({ name }) =>
      form(
        visit,
        action,
        html`<input type="hidden" name="next" value="${next}" /><button
            class="plain wide"
            name="provider"
            value="${name}"
          >
            Continue with ${providerLabel(name)}
          </button>`,
      ),
    )}
  </div>`;
}

/** Between the other ways and a password. */
export function separator({ site }: Visit): Html {
  const hasProviders = site.identity.settings.providers.length > 0;
  return html`<p class="or ${hasProviders ? '' : 'for-wallet'}"><span>or with a password</span></p>`;
}

/**
 * To where a provider signs people in. A form may redirect only to the issuer, as the page that has the form says; if the provider
 * has another origin for that, a page in between leads there.
 */
export function toProvider(
  { site }: VisitOf<PageHost>,
  { json, cookies }: Extract<AuthResult, { kind: 'done' }>,
): Answer {
  const url = textOf(json, 'url');
  const { origin, host } = new URL(url);
  if (issuerOrigins(site.identity.settings.providers).includes(origin))
    return { kind: 'redirect', to: url, cookies };
  const content = html`<p>Your browser continues there. If it does not:</p>
    <p><a class="button" href="${url}">Continue</a></p>`;
  return sheetView('To the sign-in', content, { heading: `You sign in at ${host}`, leadsTo: url, cookies });
}

export function walletButton(visit: Visit, next: string): Html {
  return html`${walletForm(
      visit,
      '/sign-in/wallet',
      html`<input type="hidden" name="next" value="${next}" /><button class="plain wide">
          Continue with your wallet
        </button>`,
    )} <noscript><p class="hint">Signing in with a wallet needs JavaScript.</p></noscript>`;
}

/**
 * Shown by the module of the pages where the browser has a wallet. It requests, at the form's path with `/message`, the text for the wallet to
 * sign; the form carries the signature.
 */
export function walletForm(visit: Visit, action: string, content: Html): Html {
  return html`<div class="ways" data-wallet="${action}/message" hidden>
    ${form(
      visit,
      action,
      html`<input type="hidden" name="address" /><input type="hidden" name="message" /><input
          type="hidden"
          name="signature"
        />${content}`,
    )}
    <p class="mistake" data-wallet-mistake role="alert" hidden></p>
  </div>`;
}
