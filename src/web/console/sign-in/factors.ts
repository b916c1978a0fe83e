import { tableSheet } from '../tables.ts';
import { html, type Html } from '../../../base/values/html.ts';
import { addFactorBeside, type NewFactor } from '../../../accounts/use-cases/second-factor.ts';
import { noticeOf, type Refusal, refusedView } from '../../pages/document.ts';
import { type Column, field, time } from '../../pages/elements.ts';
import { pathWith } from '../../pages/own-path.ts';
import type { Admission, Requests } from '../../pages/requests.ts';
import type { Answer, View } from '../../pages/visit.ts';
import { type Factor, listFactors } from '../../../accounts/store/operators.ts';
import type { ConsoleSite } from '../visit.ts';
import type { AnyVisit } from './next.ts';
import { passkeyAnswerOf, passkeyFields, passkeyScript } from './passkey.ts';
import { appOffer, codeOf, passkeyOffer, prove, type ProvingVisit, refusalOf } from './second-factor.ts';

const path = '/console/factors';

/** The second factors of who is signed in: an operator adds others to the one that the console was opened with. */
export function factorPages(requests: Requests<ConsoleSite>): void {
  requests.get(path, proven, (own) => factorsView(own));

  const appOptions = { secrets: ['code', 'sealed'], shownAt: path };
  requests.post(`${path}/app`, appOptions, proven, (own, { fields }) => added(own, codeOf(fields)));

  const passkeyOptions = { secrets: passkeyFields, shownAt: path };
  requests.post(`${path}/passkey`, passkeyOptions, proven, (own, { fields }) =>
    added(own, { kind: 'passkey', ...passkeyAnswerOf(fields) }),
  );
}

/** An operator who has proven a second factor in this session. */
function proven(visit: AnyVisit, again: string | undefined): Admission<ProvingVisit> {
  if (!visit.visitor?.operator || visit.visitor.operator.until) return prove(visit, again);
  const to = pathWith('/console/second-factor', { next: path });
  return { kind: 'refused', answer: { kind: 'redirect', to } };
}

async function added(own: ProvingVisit, factor: NewFactor): Promise<Answer> {
  const result = await addFactorBeside(own.visit.site.identity, own.prover, factor);
  if (result.kind === 'added') return { kind: 'redirect', to: path, notice: 'factor_added' };
  const refusal = refusalOf(result, factor.kind === 'passkey');
  return factorsView(own, { refusal, ...(factor.kind === 'totp' && { sealed: factor.sealed }) });
}

const columns: readonly Column<Factor>[] = [
  { label: 'Kind', cell: ({ kind }) => (kind === 'totp' ? 'authenticator app' : 'passkey') },
  { label: 'Added', cell: ({ createdAt }) => time(createdAt) },
];

async function factorsView(
  { visit, prover }: ProvingVisit,
  { refusal, sealed }: { readonly refusal?: Refusal; readonly sealed?: string } = {},
): Promise<View> {
  const factors = await listFactors(visit.site.ledger.pool, prover.userId);
  const hasApp = factors.some(({ kind }) => kind === 'totp');
  const body = html`<div class="head"><h1>Your second factors</h1></div>
    ${refusal && noticeOf({ tone: 'bad', text: refusal.text })}
    ${factors.length > 0 && tableSheet('Each of them opens the console', columns, factors)}
    <section class="sheet">
      <h2>${factors.length === 0 ? 'You have none yet: add one' : 'Add another one'}</h2>
      <p class="hint">If you lose one, an admin resets all of them.</p>
      ${await passkeyOffer(visit, prover, `${path}/passkey`, path)}
      ${!hasApp && appOffer(visit, prover, `${path}/app`, { sealed, fields: codeFields })}
    </section>`;
  const view = { kind: 'view', title: 'Your second factors', section: path, body } as const;
  return refusedView({ ...view, scripts: [passkeyScript] }, refusal);
}

const codeFields: Html = html`${field({ label: 'Code', name: 'code', autocomplete: 'one-time-code', maxLength: 32 })}
  <button class="wide">Add the app</button>`;
