import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { issuerOrigins } from '../../accounts/use-cases/auth-providers.ts';
import { resolveSession } from '../../accounts/use-cases/sessions.ts';
import { findUser } from '../../accounts/store/identity.ts';
import { renderDocument } from './layout.ts';
import type { NoticeCode } from './notices.ts';
import { pathWith } from './own-path.ts';
import { createRequests, type FormOptions, type Frame, type Handle, type Take } from './requests.ts';
import type { Answer, PageHost, SignedInVisit, Site, View, Visit, Visitor } from './visit.ts';

/** Adds pages and forms to the site. Those `forUsers` need a session. */
export interface Pages {
  show(path: string, handle: Handle<Visit>): void;
  showForUsers(path: string, handle: Handle<SignedInVisit>): void;
  take(path: string, options: FormOptions<Visit>, handle: Take<Visit>): void;
  takeForUsers(path: string, options: FormOptions<Visit>, handle: Take<SignedInVisit>): void;
}

function anyone(visit: Visit) {
  return { kind: 'admitted', visit } as const;
}

export function createPages(site: Site, app: FastifyInstance): Pages {
  const { get, post } = createRequests(frameOf(site), app);
  return {
    show: (path, handle) => get(path, anyone, handle),
    showForUsers: (path, handle) => get(path, signedIn, handle),
    take: (path, options, handle) => post(path, options, anyone, handle),
    takeForUsers: (path, options, handle) => post(path, options, signedIn, handle),
  };
}

function frameOf(site: Site): Frame<Site> {
  return { site, render: renderDocument, visitorOf, formTargets: (path) => formTargets(site, path) };
}

function signedIn(visit: Visit, again: string | undefined) {
  const { visitor } = visit;
  if (!visitor)
    return {
      kind: 'refused',
      answer:
        again === undefined
          ? signInFor(visit.request.url, 'session_required')
          : signInFor(again, 'session_over'),
    } as const;
  return {
    kind: 'admitted',
    visit: {
      ...visit,
      visitor,
      get token() {
        return visit.token;
      },
    },
  } as const;
}

function signInFor(next: string, notice: NoticeCode): Answer {
  return { kind: 'redirect', to: pathWith('/sign-in', { next: next === '/' ? '' : next }), notice };
}

/** The user that the cookies of a request sign in. */
export async function visitorOf(
  { identity }: Pick<PageHost, 'identity'>,
  cookies: string | undefined,
): Promise<Visitor | undefined> {
  const session = await resolveSession(identity, cookies);
  if (session.kind !== 'session') return undefined;
  const user = await findUser(identity.pool, session.user.userId);
  return user && { ...session.user, user };
}

/** Sends a view that belongs to no route of the pages. */
export function sendView(
  site: Site,
  request: FastifyRequest,
  reply: FastifyReply,
  viewFor: (visitor: Visitor | undefined) => View,
): Promise<FastifyReply> {
  return createRequests(frameOf(site), undefined).answer(request, reply, ({ visitor }) => viewFor(visitor));
}

/** Providers whose buttons a page has: its forms lead to them. */
function formTargets({ identity }: Site, path: string): readonly string[] {
  return /^\/(?:sign-in|sign-up|account)/.test(path) ? issuerOrigins(identity.settings.providers) : [];
}
