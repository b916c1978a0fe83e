import { html, type Html } from '../../domain/values/html.ts';
import {
  addFirstFactor,
  type FactorProof,
  offerSecret,
  proveFactor,
  type Prover,
} from '../../identity/second-factor.ts';
import { listFactors } from '../../store/operators.ts';
import { ownCookie } from '../../pages/cookies.ts';
import { noticeOf } from '../../pages/layout.ts';
import { pathWith } from '../../pages/own-path.ts';
import { copyButton, field, form } from '../../pages/parts.ts';
import type { Admission, Requests } from '../../pages/requests.ts';
import type { View } from '../../pages/site.ts';
import { notOperator } from '../refused-views.ts';
import type { ConsoleSite } from '../site.ts';
import { type AnyVisit, nextOf } from './next.ts';

/** The cookie of a console's session, which counts beside that of the user's session alone. */
export const consoleCookie = 'console';

const path = '/console/second-factor';

type Refused = Exclude<FactorProof, { readonly kind: 'proven' }>;

interface ProvingVisit {
  readonly visit: AnyVisit;
  readonly prover: Prover;
  readonly next: string;
}

/** The second step of a sign-in: a code; the first time the secret that makes the codes. */
export function secondFactorPages(requests: Requests<ConsoleSite>): void {
  requests.get(path, prove, async (own) => {
    if (own.visit.visitor?.operator?.until) return { kind: 'redirect', to: own.next };
    return factorView(own);
  });

  requests.post(path, { secrets: ['code'] }, prove, async (own, { fields }) => {
    const { site } = own.visit;
    const code = fields.get('code') ?? '';
    const result = await proveFactor(site.identity, own.prover, { code, hours: site.console.sessionHours });
    if (result.kind !== 'proven') return factorView(own, { result });
    return { kind: 'redirect', to: nextOf(own.visit, fields), cookies: [cookieFor(site, result.token)] };
  });

  requests.post(`${path}/new`, { secrets: ['code', 'sealed'], shownAt: path }, prove, async (own, sent) => {
    const { site } = own.visit;
    const [code = '', sealed = ''] = [
      sent.fields.get('code') ?? undefined,
      sent.fields.get('sealed') ?? undefined,
    ];
    const plain = code.replaceAll(/\s/g, '');
    const hours = site.console.sessionHours;
    const result = await addFirstFactor(site.identity, own.prover, { sealed, code: plain, hours });
    switch (result.kind) {
      case 'not_first':
        return { kind: 'redirect', to: pathWith(path, { next: own.next }) };
      case 'wrong':
      case 'limited':
        return factorView(own, { result, sealed });
      case 'proven':
        return codesView(result.recoveryCodes, nextOf(own.visit, sent.fields), cookieFor(site, result.token));
    }
  });
}

/** Who may prove a second factor: an operator with a session. */
function prove(visit: AnyVisit, again: string | undefined): Admission<ProvingVisit> {
  const { visitor } = visit;
  const next = nextOf(visit, visit.query);
  if (!visitor) {
    const to = pathWith('/console/sign-in', { next });
    const notice = again === undefined ? 'session_required' : 'session_over';
    return { kind: 'refused', answer: { kind: 'redirect', to, notice } };
  }
  if (!visitor.operator) return { kind: 'refused', answer: notOperator() };
  const { userId, sessionId, operator } = visitor;
  return {
    kind: 'admitted',
    visit: { visit, next, prover: { userId, sessionId, name: operator.name } },
  };
}

function cookieFor({ publicUrl }: ConsoleSite, token: string): string {
  return ownCookie(publicUrl(), consoleCookie, token);
}

async function factorView(
  { visit, prover, next }: ProvingVisit,
  { result, sealed }: { readonly result?: Refused; readonly sealed?: string } = {},
): Promise<View> {
  const { site } = visit;
  const isFirst = (await listFactors(site.ledger.pool, prover.userId)).length === 0;
  const given = visit.query.get('next') === null ? next : nextOf(visit, visit.query);
  const fields = html`<input type="hidden" name="next" value="${given}" />
    ${field({ label: 'Code', name: 'code', autocomplete: 'one-time-code', hasFocus: true, maxLength: 32, ...(!isFirst && { hint: 'Six digits of your app. A recovery code does as well.' }) })}
    <button class="wide">Continue</button>`;
  const body = html`<div class="sheet">
    <h1>${isFirst ? 'Set up a second factor' : 'Second factor'}</h1>
    ${result && noticeOf({ tone: 'bad', text: textOf(result) })}
    ${isFirst ? offer(visit, prover, sealed, fields) : form(visit, path, fields)}
  </div>`;
  const status = result?.kind === 'limited' ? 429 : result ? 403 : 200;
  return {
    kind: 'view',
    title: 'Second factor',
    isNarrow: true,
    status,
    body,
    ...(result?.kind === 'limited' && { retryAfterSecs: result.waitSecs }),
  };
}

function textOf(result: Refused): string {
  if (result.kind === 'limited') return `Too many attempts. Try again in ${result.waitSecs} seconds.`;
  return 'This code is not right, or it was used before. Wait for the next one and try again.';
}

function offer(visit: AnyVisit, prover: Prover, sealed: string | undefined, fields: Html): Html {
  const { site } = visit;
  const secret = offerSecret(site.identity, prover, `${site.settings.name} console`, sealed);
  const groups = secret.text.replaceAll(/(.{4})(?=.)/g, '$1 ');
  return html`<p>
      The console opens with a code that an authenticator app makes. Add this account to yours, then type the
      code that it shows.
    </p>
    <p><a class="button plain" href="${secret.uri}">Open the authenticator app</a></p>
    <p class="secret"><code>${groups}</code>${copyButton(secret.text, 'the secret')}</p>
    ${form(visit, `${path}/new`, html`<input type="hidden" name="sealed" value="${secret.sealed}" />${fields}`)}`;
}

function codesView(codes: readonly string[], next: string, cookie: string): View {
  return {
    kind: 'view',
    title: 'Recovery codes',
    isNarrow: true,
    cookies: [cookie],
    body: html`<div class="sheet">
      <h1>Recovery codes</h1>
      <p>
        Each opens the console once, in place of a code of your app. They are shown only now: print them, or
        keep them in a safe place.
      </p>
      <pre class="code">${codes.join('\n')}</pre>
      <p class="actions">
        <a class="button" href="${next}">I have kept them</a
        >${copyButton(codes.join('\n'), 'the recovery codes')}
      </p>
    </div>`,
  };
}
