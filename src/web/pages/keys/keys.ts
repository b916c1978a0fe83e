import { html, type Html } from '../../../base/values/html.ts';
import { idOf } from '../../../base/http/request-values.ts';
import {
  createUserApiKeyOnce,
  listUserApiKeys,
  revokeUserApiKey,
  takeKeyTurn,
} from '../../../accounts/use-cases/user-api-keys.ts';
import { type ApiKey, findApiKeyById } from '../../../accounts/store/api-keys.ts';
import {
  amount,
  badge,
  type Column,
  copyButton,
  empty,
  factList,
  form,
  personName,
  table,
  time,
} from '../elements.ts';
import { noticeOf, sheetView } from '../document.ts';
import { notFound } from '../problem.ts';
import type { Pages } from '../serve.ts';
import type { Answer, ChatVisit, SignedInChatVisit, View } from '../visit.ts';
import { keyForm, readKeyForm } from './key-form.ts';
import { snippetsFor } from './snippets.ts';

/** A user's API keys: list, a new one shown once, revocation with a confirmation. */
export function keyPages(pages: Pages<ChatVisit>): void {
  pages.showForUsers('/keys', async (visit) =>
    listView(visit, await listUserApiKeys(visit.site.chat(), visit.visitor)),
  );

  pages.showForUsers('/keys/new', (visit) => newView(visit, visit.query));

  pages.takeForUsers('/keys/new', {}, async (visit, { fields, form: { id } }) => {
    const context = visit.site.chat();
    const { visitor } = visit;
    const nowMs = Date.now() + context.lane.state.clockOffsetMs;
    const read = readKeyForm(fields, context.models, nowMs);
    if (read.kind === 'wrong')
      return newView(visit, fields, {
        status: 422,
        text: 'No key was made: change what is marked below.',
        mistakes: read.mistakes,
      });
    const waitSecs = await takeKeyTurn(visit.site.identity, visitor, visit.request.ip);
    if (waitSecs > 0) {
      const text = `You make keys too fast. No key was made: try again in ${waitSecs} seconds.`;
      return { ...newView(visit, fields, { status: 429, text }), retryAfterSecs: waitSecs };
    }
    const [secret] = visit.site.identity.settings.secrets;
    const made = await createUserApiKeyOnce(context, visitor, read.request, { id, secret });
    switch (made.kind) {
      case 'too_many':
        return newView(visit, fields, {
          status: 409,
          text: 'You have 100 keys already. Revoke one that you do not need.',
        });
      case 'created':
        return madeView(visit, made.key, read.request.models?.[0]);
      case 'repeated':
        return made.key === undefined ? shownBefore() : madeView(visit, made.key, read.request.models?.[0]);
    }
  });

  pages.showForUsers('/keys/:key_id/revoke', async (visit) => {
    const key = await keyOf(visit);
    return key && !key.revokedAt ? revokeView(visit, key) : notFound('key', ['/keys', 'Your keys']);
  });

  pages.takeForUsers('/keys/:key_id/revoke', {}, async (visit) => {
    const isDone = await revokeUserApiKey(visit.site.chat(), visit.visitor, idOf(visit.params['key_id']));
    return isDone
      ? { kind: 'redirect', to: '/keys', notice: 'key_revoked' }
      : notFound('key', ['/keys', 'Your keys']);
  });
}

/** A key of another account looks like one that does not exist. */
async function keyOf({ site, visitor, params }: SignedInChatVisit): Promise<ApiKey | undefined> {
  const key = await findApiKeyById(site.chat().db, idOf(params['key_id']));
  return key?.accountId === visitor.accountId ? key : undefined;
}

function listView(visit: SignedInChatVisit, keys: readonly ApiKey[]): View {
  const { settings, lane } = visit.site.chat();
  const { currency } = settings;
  const nowMs = Date.now() + lane.state.clockOffsetMs;
  const valid = keys.filter((key) => !key.revokedAt);
  const revoked = keys.filter((key) => key.revokedAt);
  const nameColumn: Column<ApiKey> = {
    label: 'Name',
    cell: (key) =>
      html`${personName(key.name)}
        <span class="hint">key ${key.keyId}</span> ${!key.isOfUser && badge('made by the operator')}`,
  };
  const use: Column<ApiKey>[] = [
    { label: 'Last used', cell: ({ lastUsedAt }) => (lastUsedAt ? time(lastUsedAt) : 'never') },
    { label: 'Spent', isNumber: true, cell: (key) => spentOf(key, currency) },
  ];
  const validUntil: Column<ApiKey> = { label: 'Valid until', cell: (key) => endOf(key, nowMs) };
  const revokedOn: Column<ApiKey> = {
    label: 'Revoked',
    cell: ({ revokedAt }) => revokedAt && time(revokedAt),
  };
  const revoke: Column<ApiKey> = {
    label: 'Action',
    isAction: true,
    cell: ({ keyId, name }) =>
      html`<a class="button danger small" href="/keys/${keyId}/revoke" aria-label="Revoke ${name}"
        >Revoke</a
      >`,
  };
  const body = html`<div class="head">
      <h1>Keys</h1>
      ${valid.length > 0 && html`<a class="button" href="/keys/new">New key</a>`}
    </div>
    ${
      valid.length === 0
        ? empty(
            'No keys yet',
            'A key lets a program use the models with your credit. You can limit what it may spend, and revoke it at any time.',
            html`<a class="button" href="/keys/new">Make a key</a>`,
          )
        : html`<section class="sheet">
            ${table('Your keys', [nameColumn, validUntil, ...use, revoke], valid)}
          </section>`
    }
    ${revoked.length > 0 && html`<section class="sheet">${table('Revoked keys', [nameColumn, revokedOn, ...use], revoked)}</section>`}`;
  return { kind: 'view', title: 'Keys', section: 'keys', body };
}

function endOf({ expiresAt }: ApiKey, nowMs: number): Html | string {
  if (!expiresAt) return 'you revoke it';
  return expiresAt.getTime() <= nowMs
    ? html`${badge('expired', 'warn')} ${time(expiresAt)}`
    : time(expiresAt);
}

function spentOf({ spentMicros, capMicros, budget }: ApiKey, currency: string): Html {
  return html`${amount(BigInt(spentMicros), currency)}${
    capMicros !== undefined &&
    html`<br /><span class="hint">of at most ${amount(BigInt(capMicros), currency)}</span>`
  }${
    budget &&
    html`<br /><span class="hint"
        >this ${budget.period} ${amount(BigInt(budget.spentMicros), currency)} of at most
        ${amount(BigInt(budget.micros), currency)}</span
      >`
  }`;
}

function newView(
  visit: SignedInChatVisit,
  values: URLSearchParams,
  refused?: {
    readonly status: number;
    readonly text?: string;
    readonly mistakes?: Parameters<typeof keyForm>[2];
  },
): View {
  const problem = refused?.text !== undefined && noticeOf({ tone: 'bad', text: refused.text });
  return sheetView('New key', [problem, keyForm(visit, values, refused?.mistakes ?? {})], {
    section: 'keys',
    status: refused?.status ?? 200,
  });
}

function madeView(visit: SignedInChatVisit, key: string, model: string | undefined): View {
  const { models } = visit.site.chat();
  const [first = ''] = models.keys();
  const body = html`<div class="sheet">
      <h1>Your new key</h1>
      <p>Copy it now: it is shown only once.</p>
      <p class="secret"><code>${key}</code>${copyButton(key, 'the key')}</p>
      <p>
        Give it to your programs in the environment variable <code>TOLLBOOK_KEY</code>, and never publish it.
      </p>
      <p><a class="button" href="/keys">I have copied it</a></p>
    </div>
    <section class="sheet">
      <h2>Use it</h2>
      ${snippetsFor(visit.site.publicUrl(), model ?? first)}
    </section>`;
  return { kind: 'view', title: 'Your new key', section: 'keys', body, status: 201 };
}

function shownBefore(): Answer {
  const content = html`<p>
      This form was sent already, and its key was made then. A key is shown once: if you have not copied it,
      revoke it and make another one.
    </p>
    <p><a class="button" href="/keys">To your keys</a></p>`;
  return sheetView('This key was shown before', content, { section: 'keys', status: 409 });
}

function revokeView(visit: SignedInChatVisit, { keyId, name, lastUsedAt }: ApiKey): View {
  const content = html`${factList([
      ['Name', html`${personName(name)} <span class="hint">key ${keyId}</span>`],
      ['Last used', lastUsedAt ? time(lastUsedAt) : 'never'],
    ])}
    <p>Programs that use this key are refused from then on. This cannot be undone.</p>
    ${form(visit, `/keys/${keyId}/revoke`, html`<p class="actions"><button class="danger">Revoke the key</button><a href="/keys">Keep it</a></p>`)}`;
  return sheetView('Revoke a key', content, { heading: 'Revoke this key?', section: 'keys' });
}
