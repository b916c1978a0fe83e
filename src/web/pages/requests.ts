import { randomBytes } from 'node:crypto';
import type { Readable } from 'node:stream';
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { defaultRetryAfterSecs, refusals } from '../../base/errors/refusal.ts';
import { chargeVisits } from '../../accounts/http/charge-visits.ts';
import { isOfOwnPages } from '../../accounts/http/own-origin.ts';
import { setAsOf } from '../../ledger/http/as-of.ts';
import { refusalOf, retryAfterOf } from '../../ledger/http/errors.ts';
import { formFields, type RequestBodies } from '../../base/http/request-bodies.ts';
import { noteFacts } from '../../base/http/request-log.ts';
import { endInTime } from '../../base/http/slow-readers.ts';
import { cookieOf } from '../../accounts/use-cases/sessions.ts';
import { ownCookie, ownCookieName } from './cookies.ts';
import { type FormToken, makeFormToken, readFormToken } from './form-token.ts';
import { isNotice, type NoticeCode, notices, type Tone } from './notices.ts';
import { ownPath, pathWith } from './own-path.ts';
import { problemView } from './problem.ts';
import type { Answer, PageHost, Sent, View, Visitor, VisitOf } from './visit.ts';

export type Handle<V> = (visit: V) => Answer | Promise<Answer>;
export type Take<V> = (visit: V, sent: Sent) => Answer | Promise<Answer>;

/** Whether a visit may continue; if not, its answer. */
export type Admission<V> =
  | { readonly kind: 'admitted'; readonly visit: V }
  | { readonly kind: 'refused'; readonly answer: Answer };

/** @param again the page with the typed values of its form; undefined if no form was sent */
type Admit<Any, V> = (visit: Any, again: string | undefined) => Admission<V> | Promise<Admission<V>>;

export interface FormOptions<Any> {
  /** Fields that are never repeated: passwords. */
  readonly secrets?: readonly string[];
  /** The page that has the form, if it is not the form's own path; of the path's parameters, if it has some. */
  readonly shownAt?: string | ((params: Readonly<Record<string, string>>) => string);
  /** Above this a form is refused. */
  readonly maxBytes?: number;
  /** Shows a form that is too old again with its typed values, which are too long for an address. */
  readonly showAgain?: (visit: Any, fields: URLSearchParams) => View | Promise<View>;
  /** It changes nothing, so that it needs no token: whatever its age, nothing that was typed is lost. */
  readonly isLookUp?: boolean;
}

/** What the pages of one host have in common. */
export interface Frame<Host extends PageHost> {
  readonly site: Host;
  /** The whole document. */
  render(
    visit: VisitOf<Host>,
    view: View,
    notice: { readonly tone: Tone; readonly text: string } | undefined,
  ): string;
  visitorOf(site: Host, cookies: string | undefined): Promise<Visitor | undefined>;
  /** Origins to which the forms of a page may lead. */
  formTargets(path: string): readonly string[];
}

/** Serves pages and forms of one host. Every page has its policy here, every form its checks. */
export interface Requests<Host extends PageHost> {
  get<V>(path: string, admit: Admit<VisitOf<Host>, V>, handle: Handle<V>): void;
  post<V>(path: string, options: FormOptions<V>, admit: Admit<VisitOf<Host>, V>, handle: Take<V>): void;
  /** Answers a request that belongs to no route. */
  answer(request: FastifyRequest, reply: FastifyReply, handle: Handle<VisitOf<Host>>): Promise<FastifyReply>;
}

const lookUpForm: FormToken = { id: '', madeAtMs: 0 };

/** What a redirect's query may hold, so that no proxy refuses the header. */
const maxKeptChars = 4_000;
const maxFormBytes = 32_768;

/** @param app undefined if no route is added */
export function createRequests<Host extends PageHost>(
  frame: Frame<Host>,
  app: FastifyInstance | undefined,
): Requests<Host> {
  const { site } = frame;
  app?.setErrorHandler((error: FastifyError, request, reply) => sendFault(frame, error, request, reply));
  return {
    get(path, admit, handle) {
      app?.get(path, async (request, reply) => {
        const visit = await openVisit(frame, request, reply);
        const admission = await admit(visit, undefined);
        if (admission.kind === 'refused') return send(frame, visit, reply, admission.answer);
        return send(frame, visit, reply, await handle(admission.visit));
      });
    },
    post(path, options, admit, handle) {
      const { secrets = [], shownAt, maxBytes = maxFormBytes, showAgain, isLookUp = false } = options;
      app?.post(path, { bodyLimit: maxBytes }, async (request, reply) => {
        const visit = await openVisit(frame, request, reply);
        if (!isOfOwnPages(request, site.publicUrl())) {
          noteFacts(request, { code: 'wrong_origin' });
          const { status, sentence } = refusals.wrong_origin;
          return send(frame, visit, reply, problemView(status, sentence));
        }
        const fields = request.body instanceof URLSearchParams ? request.body : new URLSearchParams();
        const form = isLookUp ? lookUpForm : formOf(site, visit, fields);
        const page = typeof shownAt === 'function' ? shownAt(visit.params) : (shownAt ?? visit.path);
        const again = withKept(page, fields, secrets);
        const admission = await admit(visit, again);
        if (admission.kind === 'refused') return send(frame, visit, reply, admission.answer);
        const { visit: own } = admission;
        if (!form && showAgain)
          return send(frame, visit, reply, await showAgain(own, fields), 'form_too_old');
        if (!form) return send(frame, visit, reply, { kind: 'redirect', to: again, notice: 'form_too_old' });
        return send(frame, visit, reply, await handle(own, { fields, form }));
      });
    },
    async answer(request, reply, handle) {
      const visit = await openVisit(frame, request, reply);
      return send(frame, visit, reply, await handle(visit));
    },
  };
}

/** Lets the routes of this part read forms: those of the API refuse them. Each is charged before it is read. */
export function acceptForms(app: FastifyInstance, { identity }: PageHost, bodies: RequestBodies): void {
  chargeVisits(app, identity);
  app.addContentTypeParser(
    'application/x-www-form-urlencoded',
    async (request: FastifyRequest, payload: Readable) => {
      const limits = { maxBytes: request.routeOptions.bodyLimit, workFactor: 4 };
      const bytes = await bodies.read(request, payload, limits);
      return formFields(bytes.toString('utf8'));
    },
  );
  app.addHook('onSend', (request, _reply, _payload, done) => {
    bodies.release(request);
    done();
  });
}

function formOf<Host extends PageHost>(
  site: Host,
  visit: VisitOf<Host>,
  fields: URLSearchParams,
): FormToken | undefined {
  const { secrets } = site.identity.settings;
  return readFormToken(secrets, ownerOf(site, visit), fields.get('form') ?? '', Date.now());
}

/** The form's own page, with the typed values in its query: the form shows them again. */
function withKept(path: string, fields: URLSearchParams, secrets: readonly string[]): string {
  const kept = new URLSearchParams(
    [...fields].filter(([name]) => name !== 'form' && !secrets.includes(name)),
  );
  const query = kept.toString();
  return query === '' || query.length > maxKeptChars ? path : `${path}?${query}`;
}

async function openVisit<Host extends PageHost>(
  { site, visitorOf }: Frame<Host>,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<VisitOf<Host>> {
  const [path = '/', query = ''] = request.url.split('?', 2);
  const visitor = await visitorOf(site, request.headers.cookie);
  let token: string | undefined;
  const visit: VisitOf<Host> = {
    site,
    request,
    path,
    params: { ...(request.params as Record<string, string>) },
    query: formFields(query),
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

/** The owner of a form: the session, or the browser of a visitor without one. */
function ownerOf<Host extends PageHost>(
  site: Host,
  { request, visitor }: Pick<VisitOf<Host>, 'request' | 'visitor'>,
): string {
  return visitor ? `session:${visitor.sessionId}` : `visitor:${visitorCookie(site, request) ?? ''}`;
}

/** Visitors whose cookie is set with this very answer. */
const named = new WeakMap<FastifyRequest, string>();

function visitorCookie({ publicUrl }: PageHost, request: FastifyRequest): string | undefined {
  const value = named.get(request) ?? cookieOf(request.headers.cookie, ownCookieName(publicUrl(), 'visitor'));
  return value !== undefined && /^[\w-]{22}$/.test(value) ? value : undefined;
}

function nameVisitor({ publicUrl }: PageHost, request: FastifyRequest, reply: FastifyReply): void {
  const value = randomBytes(16).toString('base64url');
  named.set(request, value);
  reply.header('set-cookie', ownCookie(publicUrl(), 'visitor', value));
}

function send<Host extends PageHost>(
  { site, render, formTargets }: Frame<Host>,
  visit: VisitOf<Host>,
  reply: FastifyReply,
  answer: Answer,
  said?: NoticeCode,
): FastifyReply {
  reply.headers(pageHeaders(formTargets(visit.path)));
  setAsOf(reply, answer.asOf);
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
      endInTime(reply.raw);
      if (answer.length !== undefined) reply.header('content-length', String(answer.length));
      return reply
        .header('content-disposition', `attachment; filename="${answer.name}"`)
        .type('application/octet-stream')
        .send(answer.bytes);
    case 'events':
      endInTime(reply.raw);
      // asks proxies not to buffer the stream
      return reply
        .headers({ 'content-type': 'text/event-stream', 'x-accel-buffering': 'no' })
        .send(answer.body);
    case 'view': {
      const code = said ?? visit.query.get('notice') ?? '';
      const notice = isNotice(code) ? notices[code] : undefined;
      // the next person at this browser must not see what the signed-out user typed
      if (answer.isKept === true && !visit.visitor) reply.header('cache-control', 'private, no-cache');
      if (answer.retryAfterSecs !== undefined) reply.header('retry-after', String(answer.retryAfterSecs));
      if (answer.leadsTo !== undefined) reply.header('refresh', `0; url=${answer.leadsTo}`);
      return reply
        .code(answer.status ?? 200)
        .type('text/html; charset=utf-8')
        .send(render(visit, answer, notice));
    }
  }
}

/** What was typed is not read: the browser has it. */
function tooMany(waitSecs: number): string {
  return `Too many forms were sent from here. This one was not read. Wait ${waitSecs} seconds, then go back and send it again.`;
}

/** A fault, or a body that was not taken. Nothing that may come from elsewhere is on the page. */
function sendFault<Host extends PageHost>(
  { site, render }: Frame<Host>,
  error: FastifyError,
  request: FastifyRequest,
  reply: FastifyReply,
): FastifyReply {
  const code = refusalOf(error);
  const { status, sentence } = refusals[code];
  if (status === 503) noteFacts(request, { reason: error.message.slice(0, 300) });
  else if (status >= 500) request.log.error({ request_id: request.id, err: error }, 'request failed');
  noteFacts(request, { code });
  const [path = '/'] = request.url.split('?', 1);
  const visit: VisitOf<Host> = {
    site,
    request,
    path,
    params: {},
    query: new URLSearchParams(),
    visitor: undefined,
    token: '',
    onClose: (listener: () => void) => void reply.raw.once('close', listener),
  };
  const toldSecs = retryAfterOf(error);
  const retryAfterSecs = toldSecs ?? defaultRetryAfterSecs(code);
  const told = toldSecs === undefined ? sentence : tooMany(toldSecs);
  const text = `${told.replace(/[^.]$/, '$&.')} Request ${request.id}.`;
  const mayHelp = request.method === 'GET' && status >= 500;
  if (retryAfterSecs !== undefined) reply.header('retry-after', String(retryAfterSecs));
  return reply
    .headers(pageHeaders([]))
    .code(status)
    .type('text/html; charset=utf-8')
    .send(render(visit, problemView(status, text, mayHelp ? { again: request.url } : {}), undefined));
}

/**
 * The headers of every page. Nothing comes from another origin, nothing runs inline, and scripts cannot turn text into markup. A
 * referrer is needed within the origin: without it browsers send no origin with a form.
 * @param formTargets the origins of identity providers, to which a form's answer redirects
 */
function pageHeaders(formTargets: readonly string[]): Readonly<Record<string, string>> {
  const policy = [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "connect-src 'self'",
    `form-action ${["'self'", ...formTargets].join(' ')}`,
    "frame-ancestors 'none'",
    "base-uri 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ];
  return {
    'content-security-policy': policy.join('; '),
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-resource-policy': 'same-origin',
    'permissions-policy': 'camera=(), geolocation=(), microphone=(), payment=()',
    'referrer-policy': 'same-origin',
    'x-frame-options': 'DENY',
    'cache-control': 'no-store',
  };
}
