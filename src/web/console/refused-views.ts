import type { OperatorRole } from '../../base/values/operator-role.ts';
import { html } from '../../base/values/html.ts';
import type { View } from '../pages/visit.ts';

export function notOperator(): View {
  return {
    kind: 'view',
    status: 403,
    title: 'Not an operator',
    isNarrow: true,
    body: html`<h1>Not an operator</h1>
      <p class="notice bad" role="alert">
        This account has no role in the console. Nothing was shown or changed. An administrator can invite it.
      </p>
      <p><a href="/console/sign-in">Sign in as another user</a></p>`,
  };
}

export function needsRole(role: OperatorRole): View {
  return {
    kind: 'view',
    status: 403,
    title: 'Not permitted',
    isNarrow: true,
    body: html`<h1>Not permitted</h1>
      <p class="notice bad" role="alert">
        This needs the role ${role}, which yours does not include. Nothing was changed.
      </p>
      <p><a href="/console">To the overview</a></p>`,
  };
}
