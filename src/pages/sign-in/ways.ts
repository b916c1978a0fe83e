import { html, type Html } from '../../domain/values/html.ts';
import { form } from '../parts.ts';
import type { Visit } from '../site.ts';

const names: Readonly<Record<string, string>> = { google: 'Google', gitlab: 'GitLab', github: 'GitHub' };

/** What people call a provider. */
export function providerLabel(name: string): string {
  return names[name] ?? name;
}

export function providerButtons(visit: Visit, next: string): Html | undefined {
  const { providers } = visit.site.identity.settings;
  if (providers.length === 0) return undefined;
  return html`<div class="ways">
    ${providers.map(({ name }) =>
      form(
        visit,
        '/sign-in/provider',
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

/** Shown by the module of the pages where the browser has a wallet; the form carries what the wallet signed. */
export function walletButton(visit: Visit, next: string): Html {
  return html`<div class="ways" data-wallet hidden>
      ${form(
        visit,
        '/sign-in/wallet',
        html`<input type="hidden" name="next" value="${next}" /><input type="hidden" name="address" /><input
            type="hidden"
            name="message"
          /><input type="hidden" name="signature" /><button class="plain wide">
            Continue with your wallet
          </button>`,
      )}
      <p class="mistake" data-wallet-mistake role="alert" hidden></p>
    </div>
    <noscript><p class="hint">Signing in with a wallet needs JavaScript.</p></noscript>`;
}
