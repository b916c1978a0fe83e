import { html, type Html } from '../../../base/values/html.ts';
import { endUserSessions } from '../../../accounts/use-cases/sessions.ts';
import { listOpenSessions, type OpenSession } from '../../../accounts/store/sign-in-ways.ts';
import { readStream } from '../../../ledger/store/streams.ts';
import { endedCookie } from '../cookies.ts';
import { receiptsCookie } from '../jobs/opened-receipts.ts';
import { badge, buttonForm, type Column, table, time } from '../elements.ts';
import { problemView } from '../problem.ts';
import type { Pages } from '../serve.ts';
import { refusedView } from '../document.ts';
import { askAuth } from '../sign-in/call.ts';
import { providerLabel } from '../sign-in/ways.ts';
import type { SignedInVisit } from '../visit.ts';

const listed = 50;

/** Ending one session, or all of them. */
export function sessionPages(pages: Pages): void {
  pages.takeForUsers('/account/sessions/end', { shownAt: '/account' }, async (visit, { fields }) => {
    const { identity } = visit.site;
    const own = await listOpenSessions(identity.pool, visit.visitor.userId, listed);
    const ended = own.filter(({ sessionId }) => sessionId === fields.get('session'));
    await endUserSessions(
      identity,
      ended.map(({ sessionId }) => sessionId),
    );
    return { kind: 'redirect', to: '/account', notice: 'session_ended_elsewhere' };
  });

  pages.takeForUsers('/account/sessions/end-all', { shownAt: '/account' }, async (visit) => {
    const result = await askAuth(visit, '/revoke-sessions', {});
    if (result.kind === 'refused')
      return refusedView(problemView(result.status, `${result.text} No session was ended.`), result);
    const cookies = [endedCookie(visit.site.publicUrl(), receiptsCookie)];
    return { kind: 'redirect', to: '/sign-in', notice: 'signed_out_everywhere', cookies };
  });
}

interface ListedSession extends OpenSession {
  readonly way: string;
}

export async function sessionsSection(visit: SignedInVisit): Promise<Html> {
  const { pool } = visit.site.identity;
  const { userId, sessionId } = visit.visitor;
  const open = await listOpenSessions(pool, userId, listed);
  const sessions = await Promise.all(
    open.map(async (session) => ({ ...session, way: await wayOf(pool, session.sessionId) })),
  );
  const columns: Column<ListedSession>[] = [
    { label: 'Signed in', cell: ({ startedAt }) => time(startedAt) },
    { label: 'With', cell: ({ way }) => way },
    { label: 'Valid until', cell: ({ expiresAt }) => time(expiresAt) },
    {
      label: 'Action',
      isAction: true,
      cell: ({ sessionId: session }) =>
        session === sessionId
          ? badge('this browser', 'good')
          : buttonForm(visit, '/account/sessions/end', 'End it', {
              look: 'quiet small',
              values: { session },
            }),
    },
  ];
  return html`<section class="sheet">
    ${table('Sessions', columns, sessions)}
    ${buttonForm(visit, '/account/sessions/end-all', 'Sign out everywhere', { look: 'danger' })}
  </section>`;
}

/** How a session was signed in to, as the ledger says: neither address nor browser is kept of anyone. */
async function wayOf(pool: Parameters<typeof readStream>[0], sessionId: string): Promise<string> {
  const [first] = (await readStream(pool, `session:${sessionId}`)).events;
  if (first?.type !== 'session_started') return '';
  const { method, provider } = first.data;
  if (method === 'provider') return provider === undefined ? 'a provider' : providerLabel(provider);
  return method === 'wallet' ? 'a wallet' : 'a password';
}
