import { randomBytes } from 'node:crypto';
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { defaultRetryAfterSecs, refusals } from '../domain/errors/refusal.ts';
import { isOfOwnPages } from '../http/identity/own-origin.ts';
import { boundReader } from '../http/server/bound-reader.ts';
import { refusalOf } from '../http/server/errors.ts';
import { noteFacts } from '../http/server/request-log.ts';
import { issuerOrigins } from '../identity/auth-providers.ts';
import { cookieOf, resolveSession } from '../identity/sessions.ts';
import { findUser } from '../store/identity.ts';
import { ownCookie, ownCookieName } from './cookies.ts';
import { type FormToken, makeFormToken, readFormToken } from './form-token.ts';
import { renderDocument } from './layout.ts';
import { isNotice, type NoticeCode, notices } from './notices.ts';
import { ownPath, pathWith } from './own-path.ts';
import { pageHeaders } from './policy.ts';
import { problemView } from './problem.ts';
import type { Answer, Sent, SignedInVisit, Site, View, Visit, Visitor } from './site.ts';

type Handle<V extends Visit> = (visit: V) => Answer | Promise<Answer>;
type Take<V extends Visit> = (visit: V, sent: Sent) => Answer | Promise<Answer>;

interface FormOptions {
  /** Fields that are never repeated: passwords. */
  readonly secrets?: readonly string[];
  /** The page that has the form, where it is not the form's own path. */
  readonly shownAt?: string;
  /** Above this a form is refused. */
  readonly maxBytes?: number;
  /** Shows a form that is too old with what was typed, where an address could not keep that much. */
  readonly showAgain?: (visit: Visit, fields: URLSearchParams) => View | Promise<View>;
  /** It changes nothing, so that it needs no token: whatever its age, nothing that was typed is lost. */
  readonly isLookUp?: boolean;
}

/** Adds pages and forms to the site. Those `forUsers` need a session. */
export interface Pages {
  show(path: string, handle: Handle<Visit>): void;
  showForUsers(path: string, handle: Handle<SignedInVisit>): void;
  take(path: string, options: FormOptions, handle: Take<Visit>): void;
  takeForUsers(path: string, options: FormOptions, handle: Take<SignedInVisit>): void;
}

const lookUpForm: FormToken = { id: '', madeAtMs: 0 };

/** What a redirect's query may hold, so that no proxy refuses the header. */
const maxKeptChars = 4_000;
const maxFormBytes = 32_768;

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
    { secrets = [], shownAt, maxBytes = maxFormBytes, showAgain, isLookUp = false }: FormOptions,
    narrow: (visit: Visit) => V | undefined,
    handle: Take<V>,
  ) => {
    app.post(path, { bodyLimit: maxBytes }, async (request, reply) => {
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
      const form = isLookUp
        ? lookUpForm
        : readFormToken(
            site.identity.settings.secrets,
            ownerOf(site, visit),
            fields.get('form') ?? '',
            Date.now(),
          );
      const own = narrow(visit);
      const again = withKept(shownAt ?? visit.path, fields, secrets);
      if (!own) return send(site, visit, reply, signInFor(again, 'session_over'));
      if (!form && showAgain) return send(site, visit, reply, await showAgain(own, fields), 'form_too_old');
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
    onClose: (listener) => void reply.raw.once('close', listener),
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

/** Visitors whose cookie is set with this very answer. */
const named = new WeakMap<FastifyRequest, string>();

function visitorCookie(site: Site, request: FastifyRequest): string | undefined {
  const value =
    named.get(request) ?? cookieOf(request.headers.cookie, ownCookieName(site.publicUrl(), 'visitor'));
  return value !== undefined && /^[\w-]{22}$/.test(value) ? value : undefined;
}

function nameVisitor(site: Site, request: FastifyRequest, reply: FastifyReply): void {
  const value = randomBytes(16).toString('base64url');
  named.set(request, value);
  reply.header('set-cookie', ownCookie(site.publicUrl(), 'visitor', value));
}

function send(
  site: Site,
  visit: Visit,
  reply: FastifyReply,
  answer: Answer,
  said?: NoticeCode,
): FastifyReply {
  reply.headers(pageHeaders(formTargets(site, visit)));
  const cookies = 'cookies' in answer ? (answer.cookies ?? []) : [];
  if (cookies.length > 0) reply.header('set-cookie', [...cookies]);
  switch (answer.kind) {
    case 'redirect': {
      const { to, notice } = answer;
      const where = to.startsWith('/') ? pathWith(ownPath(to, site.publicUrl()), { notice }) : to;
      return reply.header('location', where).code(303).send();
    }
    case 'data':
      return reply.code(answer.status).send(answer.json);
    case 'file':
      boundReader(reply.raw);
      return reply
        .header('content-disposition', `attachment; filename="${answer.name}"`)
        .header('content-length', String(answer.length))
        .type('application/octet-stream')
        .send(answer.bytes);
    case 'view': {
      const code = said ?? visit.query.get('notice') ?? '';
      const notice = isNotice(code) ? notices[code] : undefined;
      // what a user typed must not be there for who comes after the sign-out
      if (answer.isKept === true && !visit.visitor) reply.header('cache-control', 'private, no-cache');
      if (answer.retryAfterSecs !== undefined) reply.header('retry-after', String(answer.retryAfterSecs));
      if (answer.leadsTo !== undefined) reply.header('refresh', `0; url=${answer.leadsTo}`);
      return reply
        .code(answer.status ?? 200)
        .type('text/html; charset=utf-8')
        .send(renderDocument(visit, answer, notice));
    }
  }
}

/** Sends a view that belongs to no route of the pages. */
export async function sendView(
  site: Site,
  request: FastifyRequest,
  reply: FastifyReply,
  viewFor: (visitor: Visitor | undefined) => View,
): Promise<FastifyReply> {
  const visit = await openVisit(site, request, reply);
  return send(site, visit, reply, viewFor(visit.visitor));
}

/** Providers whose buttons a page has: its forms lead to them. */
function formTargets({ identity }: Site, { path }: Visit): readonly string[] {
  return /^\/(?:sign-in|sign-up|account)/.test(path) ? issuerOrigins(identity.settings.providers) : [];
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
    onClose: (listener: () => void) => void reply.raw.once('close', listener),
  };
  const text = `${sentence.replace(/[^.]$/, '$&.')} Request ${request.id}.`;
  const mayHelp = request.method === 'GET' && status >= 500;
  const retryAfterSecs = defaultRetryAfterSecs(code);
  if (retryAfterSecs !== undefined) reply.header('retry-after', String(retryAfterSecs));
  return reply
    .headers(pageHeaders([]))
    .code(status)
    .type('text/html; charset=utf-8')
    .send(renderDocument(visit, problemView(status, text, mayHelp ? { again: request.url } : {}), undefined));
}
