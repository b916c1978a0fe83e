import { html, type Html } from '../../../base/values/html.ts';
import type { PasskeyAnswer, PasskeyQuestion } from '../../../accounts/use-cases/passkeys.ts';
import { form } from '../../pages/elements.ts';
import type { AnyVisit } from './next.ts';

/** The module of pages with a form for a passkey. */
export const passkeyScript = 'passkey.js';

/** Fields that a form of `passkeyForm` sends and that are never repeated. */
export const passkeyFields = ['sealed', 'credential', 'response'] as const;

/**
 * A form that the browser's authenticator fills in, for a new passkey or with one that the user has. It shows itself if the browser
 * can: it takes JavaScript.
 */
export function passkeyForm(
  visit: AnyVisit,
  action: string,
  { options, sealed }: PasskeyQuestion,
  {
    does,
    label,
    next = '',
  }: { readonly does: 'create' | 'get'; readonly label: string; readonly next?: string },
): Html {
  const fields = html`<input type="hidden" name="next" value="${next}" />
    <input type="hidden" name="sealed" value="${sealed}" />
    <input type="hidden" name="credential" />
    <input type="hidden" name="response" />
    <button type="button" class="plain wide">${label}</button>
    <p class="notice bad" role="alert" hidden></p>`;
  return html`<div data-passkey="${does}" data-options="${options}" hidden>
    ${form(visit, action, fields)}
  </div>`;
}

export function passkeyAnswerOf(fields: URLSearchParams): PasskeyAnswer {
  return {
    sealed: fields.get('sealed') ?? '',
    credentialId: fields.get('credential') ?? '',
    response: fields.get('response') ?? '',
  };
}
