import { randomBytes } from 'node:crypto';
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { refusals } from '../domain/errors/refusal.ts';
import { isOfOwnPages } from '../http/identity/own-origin.ts';
import { refusalOf } from '../http/server/errors.ts';
import { noteFacts } from '../http/server/request-log.ts';
import { cookieOf, cookiePrefix, isHttps, resolveSession } from '../identity/sessions.ts';
import { findUser } from '../store/identity.ts';
import { makeFormToken, readFormToken } from './form-token.ts';
import { renderDocument } from './layout.ts';
import { isNotice, type NoticeCode, notices } from './notices.ts';
import { ownPath, pathWith } from './own-path.ts';
import { pageHeaders } from './policy.ts';
import { problemView } from './problem.ts';
import type { Answer, Sent, SignedInVisit, Site, Visit, Visitor } from './site.ts';

type Handle<V extends Visit> = (visit: V) => Answer | Promise<Answer>;
type Take<V extends Visit> = (visit: V, sent: Sent) => Answer | Promise<Answer>;

interface FormOptions {
  /** Fields that are never repeated: passwords. */
  readonly secrets?: readonly string[];
  /** The page that has the form, where it is not the form's own path. */
  readonly shownAt?: string;
}

/** Adds pages and forms to the site. Those `forUsers` need a session. */
export interface Pages {
  show(path: string, handle: Handle<Visit>): void;
  showForUsers(path: string, handle: Handle<SignedInVisit>): void;
  take(path: string, options: FormOptions, handle: Take<Visit>): void;
  takeForUsers(path: string, options: FormOptions, handle: Take<SignedInVisit>): void;
}

/** What a redirect's query may hold, so that no proxy refuses the header. */
const maxKeptChars = 4_000;

export function createPages(site: Site, app: FastifyInstance): Pages {
  app.setErrorHandler((error: FastifyError, request, reply) => sendFault(site, error, request, reply));
  const get = <V extends Visit>(path: string, narrow: (visit: Visit) => V | undefined, handle: Handle<V>) => {
    app.get(path, async (request, reply) => {
      const visit = await openVisit(site, request, reply);
      const own = narrow(visit);
      if (!own) return send(site, visit, reply, signInFor(visit.request.url, 'session_required'));
      return send(site, visit, reply, await handle(own));
    });
  };
  const post = <V extends Visit>(
    path: string,
    { secrets = [], shownAt }: FormOptions,
    narrow: (visit: Visit) => V | undefined,
    handle: Take<V>,
  ) => {
    app.post(path, async (request, reply) => {
      const visit = await openVisit(site, request, reply);
      if (!isOfOwnPages(request, site.publicUrl())) {
        noteFacts(request, { code: 'wrong_origin' });
        return send(
          site,
          visit,
          reply,
          problemView(refusals.wrong_origin.status, refusals.wrong_origin.sentence),
        );
      }
      const fields = request.body instanceof URLSearchParams ? request.body : new URLSearchParams();
      const form = readFormToken(
        site.identity.settings.secrets,
        ownerOf(site, visit),
        fields.get('form') ?? '',
        Date.now(),
      );
      const own = narrow(visit);
      const again = withKept(shownAt ?? visit.path, fields, secrets);
      if (!own) return send(site, visit, reply, signInFor(again, 'session_over'));
      if (!form) return send(site, visit, reply, { kind: 'redirect', to: again, notice: 'form_too_old' });
      return send(site, visit, reply, await handle(own, { fields, form }));
    });
  };
  return {
    show: (path, handle) => get(path, (visit) => visit, handle),
    showForUsers: (path, handle) => get(path, signedIn, handle),
    take: (path, options, handle) => post(path, options, (visit) => visit, handle),
    takeForUsers: (path, options, handle) => post(path, options, signedIn, handle),
  };
}

function signedIn(visit: Visit): SignedInVisit | undefined {
  const { visitor } = visit;
  return (
    visitor && {
      ...visit,
      visitor,
      get token() {
        return visit.token;
      },
    }
  );
}

/** The form's own page with what was typed in its query: the form shows it again. */
function withKept(path: string, fields: URLSearchParams, secrets: readonly string[]): string {
  const kept = new URLSearchParams(
    [...fields].filter(([name]) => name !== 'form' && !secrets.includes(name)),
  );
  const query = kept.toString();
  return query === '' || query.length > maxKeptChars ? path : `${path}?${query}`;
}

function signInFor(next: string, notice: NoticeCode): Answer {
  return { kind: 'redirect', to: pathWith('/sign-in', { next: next === '/' ? '' : next }), notice };
}

async function openVisit(site: Site, request: FastifyRequest, reply: FastifyReply): Promise<Visit> {
  const [path = '/', query = ''] = request.url.split('?', 2);
  const visitor = await visitorOf(site, request.headers.cookie);
  let token: string | undefined;
  const visit: Visit = {
    site,
    request,
    path,
    params: { ...(request.params as Record<string, string>) },
    query: new URLSearchParams(query),
    visitor,
    get token() {
      if (token !== undefined) return token;
      if (!visitor && visitorCookie(site, request) === undefined) nameVisitor(site, request, reply);
      return (token = makeFormToken(site.identity.settings.secrets, ownerOf(site, visit), Date.now()));
    },
  };
  return visit;
}

async function visitorOf({ identity }: Site, cookies: string | undefined): Promise<Visitor | undefined> {
  const session = await resolveSession(identity, cookies);
  if (session.kind !== 'session') return undefined;
  const user = await findUser(identity.pool, session.user.userId);
  return user && { ...session.user, user };
}

/** Whom a form belongs to: the session, or the browser of a visitor who has none. */
function ownerOf(site: Site, { request, visitor }: Pick<Visit, 'request' | 'visitor'>): string {
  return visitor ? `session:${visitor.sessionId}` : `visitor:${visitorCookie(site, request) ?? ''}`;
}

function cookieName({ publicUrl }: Site): string {
  return `${cookiePrefix(publicUrl())}.visitor`;
}

/** Visitors whose cookie is set with this very answer. */
const named = new WeakMap<FastifyRequest, string>();

function visitorCookie(site: Site, request: FastifyRequest): string | undefined {
  const value = named.get(request) ?? cookieOf(request.headers.cookie, cookieName(site));
  return value !== undefined && /^[\w-]{22}$/.test(value) ? value : undefined;
}

function nameVisitor(site: Site, request: FastifyRequest, reply: FastifyReply): void {
  const value = randomBytes(16).toString('base64url');
  named.set(request, value);
  const secure = isHttps(site.publicUrl()) ? '; Secure' : '';
  reply.header('set-cookie', `${cookieName(site)}=${value}; Path=/; HttpOnly; SameSite=Lax${secure}`);
}

async function send(site: Site, visit: Visit, reply: FastifyReply, answer: Answer): Promise<FastifyReply> {
  const targets = await formTargets(site, visit);
  reply.headers(pageHeaders(targets));
  switch (answer.kind) {
    case 'redirect': {
      const { to, notice, cookies = [] } = answer;
      if (cookies.length > 0) reply.header('set-cookie', [...cookies]);
      const where = to.startsWith('/') ? pathWith(ownPath(to, site.publicUrl()), { notice }) : to;
      return reply.header('location', where).code(303).send();
    }
    case 'data':
      return reply.code(answer.status).send(answer.json);
    case 'view': {
      const code = visit.query.get('notice') ?? '';
      const notice = isNotice(code) ? notices[code] : undefined;
      if (answer.retryAfterSecs !== undefined) reply.header('retry-after', String(answer.retryAfterSecs));
      return reply
        .code(answer.status ?? 200)
        .type('text/html; charset=utf-8')
        .send(renderDocument(visit, answer, notice));
    }
  }
}

/** Providers whose buttons a page has: its forms lead to them. */
async function formTargets({ auth, identity }: Site, { path }: Visit): Promise<readonly string[]> {
  if (identity.settings.providers.length === 0 || !/^\/(?:sign-in|sign-up|account)/.test(path)) return [];
  return (await auth.load(false)).providerOrigins;
}

/** A fault, or a body that was not taken. Nothing that may come from elsewhere is on the page. */
function sendFault(
  site: Site,
  error: FastifyError,
  request: FastifyRequest,
  reply: FastifyReply,
): FastifyReply {
  const code = refusalOf(error);
  const { status, sentence } = refusals[code];
  if (status === 503) noteFacts(request, { reason: error.message.slice(0, 300) });
  else if (status >= 500) request.log.error({ request_id: request.id, err: error }, 'request failed');
  noteFacts(request, { code });
  const [path = '/', query = ''] = request.url.split('?', 2);
  const visit = {
    site,
    request,
    path,
    params: {},
    query: new URLSearchParams(query),
    visitor: undefined,
    token: '',
  };
  const text = `${sentence.replace(/[^.]$/, '$&.')} Request ${request.id}.`;
  return reply
    .headers(pageHeaders([]))
    .code(status)
    .type('text/html; charset=utf-8')
    .send(renderDocument(visit, problemView(status, text), undefined));
}
