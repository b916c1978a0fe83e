import { clientOf } from '../../../base/values/client-address.ts';
import { html, type Html } from '../../../base/values/html.ts';
import {
  addFirstFactor,
  type FactorProof,
  type NewFactor,
  offerSecret,
  proveFactor,
  type Prover,
} from '../../../accounts/use-cases/second-factor.ts';
import { askPasskey, offerPasskey, takesPasskeys } from '../../../accounts/use-cases/passkeys.ts';
import { addressOf } from '../../../base/http/request-values.ts';
import { cookieOf } from '../../../accounts/use-cases/sessions.ts';
import { deviceMark, knownDevice } from '../../../accounts/use-cases/sign-in-limits.ts';
import { listFactors } from '../../../accounts/store/operators.ts';
import { ownCookie, ownCookieName } from '../../pages/cookies.ts';
import { type Refusal, sheetView } from '../../pages/document.ts';
import { pathWith } from '../../pages/own-path.ts';
import { copyButton, field, form } from '../../pages/elements.ts';
import type { Admission, Requests } from '../../pages/requests.ts';
import type { Answer, View } from '../../pages/visit.ts';
import { notOperator } from '../refused-views.ts';
import type { ConsoleSite } from '../visit.ts';
import { type AnyVisit, nextOf } from './next.ts';
import { qrCode } from './qr-code.ts';
import { passkeyAnswerOf, passkeyFields, passkeyForm, passkeyScript } from './passkey.ts';

/** The cookie of a console's session, which counts only together with that of the user's session. */
export const consoleCookie = 'console';

const path = '/console/second-factor';
/** The cookie of a device on which a second factor was proven: guesses from elsewhere do not make it wait. */
const deviceCookie = 'console-device';
const deviceSecs = 34_560_000;

type Refused = Exclude<FactorProof, { readonly kind: 'proven' }>;

export interface ProvingVisit {
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

  requests.post(path, { secrets: ['code'] }, prove, (own, { fields }) =>
    proven(own, fields, { code: fields.get('code') ?? '' }),
  );

  const passkeyOptions = { secrets: passkeyFields, shownAt: path };
  requests.post(`${path}/passkey`, passkeyOptions, prove, (own, { fields }) =>
    proven(own, fields, passkeyAnswerOf(fields)),
  );

  requests.post(`${path}/new`, { secrets: ['code', 'sealed'], shownAt: path }, prove, (own, { fields }) =>
    added(own, fields, codeOf(fields)),
  );

  requests.post(`${path}/new-passkey`, passkeyOptions, prove, (own, { fields }) =>
    added(own, fields, { kind: 'passkey', ...passkeyAnswerOf(fields) }),
  );
}

/** The first code of an authenticator app, with the secret that its form carries. */
export function codeOf(fields: URLSearchParams): Extract<NewFactor, { kind: 'totp' }> {
  const code = (fields.get('code') ?? '').replaceAll(/\s/g, '');
  return { kind: 'totp', sealed: fields.get('sealed') ?? '', code };
}

async function proven(
  own: ProvingVisit,
  fields: URLSearchParams,
  proof: Parameters<typeof proveFactor>[2],
): Promise<Answer> {
  const { site } = own.visit;
  const result = await proveFactor(site.identity, own.prover, proof, site.console.sessionHours);
  const next = nextOf(own.visit, fields);
  if (result.kind !== 'proven')
    return factorView({ ...own, next }, { refusal: refusalOf(result, !('code' in proof)) });
  return { kind: 'redirect', to: next, cookies: cookiesFor(site, own.prover, result.token) };
}

async function added(own: ProvingVisit, fields: URLSearchParams, factor: NewFactor): Promise<Answer> {
  const { site } = own.visit;
  const result = await addFirstFactor(site.identity, own.prover, factor, site.console.sessionHours);
  const next = nextOf(own.visit, fields);
  switch (result.kind) {
    case 'not_first':
      return { kind: 'redirect', to: pathWith(path, { next }) };
    case 'wrong':
    case 'limited': {
      const refusal = refusalOf(result, factor.kind === 'passkey');
      return factorView({ ...own, next }, { refusal, ...(factor.kind === 'totp' && factor) });
    }
    case 'proven':
      return codesView(result.recoveryCodes, next, cookiesFor(site, own.prover, result.token));
  }
}

/** Who may prove a second factor: an operator with a session. */
export function prove(visit: AnyVisit, again: string | undefined): Admission<ProvingVisit> {
  const { visitor } = visit;
  const next = nextOf(visit, visit.query);
  if (!visitor) {
    const to = pathWith('/console/sign-in', { next });
    const notice = again === undefined ? 'session_required' : 'session_over';
    return { kind: 'refused', answer: { kind: 'redirect', to, notice } };
  }
  if (!visitor.operator) return { kind: 'refused', answer: notOperator() };
  const { userId, sessionId, operator } = visitor;
  const { identity, publicUrl } = visit.site;
  const mark = cookieOf(visit.request.headers.cookie, ownCookieName(publicUrl(), deviceCookie));
  const prover: Prover = {
    userId,
    sessionId,
    name: operator.name,
    client: clientOf(addressOf(visit.request), identity.ipv6Prefix),
    device: knownDevice(identity.settings.secrets, provedBy(userId), mark),
  };
  return { kind: 'admitted', visit: { visit, next, prover } };
}

/** Of the session, and of the device. */
function cookiesFor(
  { identity, publicUrl }: ConsoleSite,
  { userId, device }: Prover,
  token: string,
): readonly string[] {
  const mark = deviceMark(identity.settings.secrets[0], provedBy(userId), device);
  return [
    ownCookie(publicUrl(), consoleCookie, token),
    `${ownCookie(publicUrl(), deviceCookie, mark)}; Max-Age=${deviceSecs}`,
  ];
}

function provedBy(userId: string): string {
  return `second-factor:${userId}`;
}

async function factorView(
  { visit, prover, next }: ProvingVisit,
  { refusal, sealed }: { readonly refusal?: Refusal; readonly sealed?: string } = {},
): Promise<View> {
  const { site } = visit;
  const factors = await listFactors(site.ledger.pool, prover.userId);
  const isFirst = factors.length === 0;
  const hasCodes = factors.some(({ kind }) => kind === 'totp');
  const fields = html`<input type="hidden" name="next" value="${next}" />
    ${field({ label: hasCodes || isFirst ? 'Code' : 'Recovery code', name: 'code', autocomplete: 'one-time-code', hasFocus: hasCodes || isFirst, maxLength: 32, ...(hasCodes && { hint: 'Six digits of your app. A recovery code does as well.' }) })}
    <button class="wide">Continue</button>`;
  const ways = isFirst
    ? [
        appOffer(visit, prover, `${path}/new`, { sealed, fields }),
        await passkeyOffer(visit, prover, `${path}/new-passkey`, next),
      ]
    : [await passkeyQuestion(visit, prover, next), form(visit, path, fields)];
  const heading = isFirst ? 'Set up a second factor' : 'Second factor';
  return sheetView('Second factor', ways, { heading, refusal, scripts: [passkeyScript] });
}

/** What a page says of a factor that was not accepted. */
export function refusalOf(result: Refused, isPasskey: boolean): Refusal {
  if (result.kind === 'limited') {
    const { waitSecs } = result;
    const text = `Too many wrong codes. Wait ${waitSecs} seconds, or use a passkey or a recovery code.`;
    return { status: 429, text, retryAfterSecs: waitSecs };
  }
  const text = isPasskey
    ? 'This passkey was not accepted: it is not one of yours, or your browser took too long. Try again.'
    : 'This code is not right, or it was used before. Wait for the next one and try again.';
  return { status: 403, text };
}

/** A form for a new passkey, where browsers make some for this address. */
export async function passkeyOffer(
  visit: AnyVisit,
  prover: Prover,
  action: string,
  next: string,
): Promise<Html | undefined> {
  const { site } = visit;
  if (!takesPasskeys(site.publicUrl())) return undefined;
  const question = await offerPasskey(site.identity, prover, issuerOf(site));
  return passkeyForm(visit, action, question, { does: 'create', label: 'Use a passkey', next });
}

async function passkeyQuestion(visit: AnyVisit, prover: Prover, next: string): Promise<Html | undefined> {
  const question = await askPasskey(visit.site.identity, prover);
  const how = { does: 'get', label: 'Use your passkey', next } as const;
  return question && passkeyForm(visit, `${path}/passkey`, question, how);
}

function issuerOf({ settings }: ConsoleSite): string {
  return `${settings.name} console`;
}

/** A form for the first code of an authenticator app, with the secret that makes its codes. */
export function appOffer(
  visit: AnyVisit,
  prover: Prover,
  action: string,
  { sealed, fields }: { readonly sealed: string | undefined; readonly fields: Html },
): Html {
  const { site } = visit;
  const secret = offerSecret(site.identity, prover, issuerOf(site), sealed);
  const groups = secret.text.replaceAll(/(.{4})(?=.)/g, '$1 ');
  return html`<p>
      An authenticator app makes codes that open the console. Scan this code with yours, then type what it
      shows.
    </p>
    <div class="factor">
      ${qrCode(secret.uri, 'The secret, for the camera of an authenticator app')}
      <div>
        <p>On this device: <a href="${secret.uri}">open the authenticator app</a>. Or type the secret:</p>
        <p class="secret"><code>${groups}</code>${copyButton(secret.text, 'the secret')}</p>
      </div>
    </div>
    ${form(visit, action, html`<input type="hidden" name="sealed" value="${secret.sealed}" />${fields}`)}`;
}

function codesView(codes: readonly string[], next: string, cookies: readonly string[]): View {
  const content = html`<p>
      Each opens the console once, in place of your second factor. They are shown only now: print them, or
      keep them in a safe place.
    </p>
    <pre class="code">${codes.join('\n')}</pre>
    <p class="actions">
      <a class="button" href="${next}">I have kept them</a
      >${copyButton(codes.join('\n'), 'the recovery codes')}
    </p>`;
  return sheetView('Recovery codes', content, { cookies });
}
