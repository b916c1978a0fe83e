import type { FastifyInstance } from 'fastify';
import { includesRole, type OperatorRole } from '../../base/values/operator-role.ts';
import { refusals } from '../../base/errors/refusal.ts';
import { operatorTextPattern } from '../../base/values/operator-words.ts';
import { noteFacts } from '../../base/http/request-log.ts';
import { issuerOrigins } from '../../accounts/use-cases/auth-providers.ts';
import { readLastConsoleTime, recordAction } from '../../accounts/use-cases/operators.ts';
import { operatorTokenHash } from '../../accounts/use-cases/second-factor.ts';
import { cookieOf } from '../../accounts/use-cases/sessions.ts';
import { html, type Html } from '../../base/values/html.ts';
import type { LedgerReader } from '../../ledger/store/ledger.ts';
import type { AsOf } from '../../ledger/use-cases/replicas.ts';
import { count, time } from '../pages/elements.ts';
import { ownCookieName } from '../pages/cookies.ts';
import { isCursor, readable, unreadableView } from '../pages/filters.ts';
import { pathWith } from '../pages/own-path.ts';
import {
  type Admission,
  createRequests,
  type Frame,
  type Handle,
  type Requests,
  acceptForms,
} from '../pages/requests.ts';
import { visitorOf } from '../pages/serve.ts';
import type { Answer, Visitor, VisitOf } from '../pages/visit.ts';
import { findOperatorOf } from '../../accounts/store/operators.ts';
import { renderConsole } from './layout.ts';
import { needsRole, notOperator } from './refused-views.ts';
import { consoleCookie } from './sign-in/second-factor.ts';
import type { Console, ConsoleSite, OperatorVisit } from './visit.ts';
import type { RequestBodies } from '../../base/http/request-bodies.ts';
import { signInPages } from './sign-in/sign-in.ts';
import { pipeline, type Readable, Transform, type TransformCallback } from 'node:stream';

/** The pages and forms of the console; those of signing in, which need no role, by `requests`. */
function createConsole(
  site: ConsoleSite,
  app: FastifyInstance,
): { readonly console: Console; readonly requests: Requests<ConsoleSite> } {
  const requests = createRequests(frameOf(site), app);
  return {
    requests,
    console: {
      show(path, handle, role = 'viewer', filters = {}) {
        const show = readable({ after: isCursor, before: isCursor, ...filters }, handle);
        requests.get(path, admit(role), (visit) => showOlder(visit, show));
      },
      showPresent(path, handle, role = 'viewer', filters = {}) {
        const show = readable({ after: isCursor, before: isCursor, ...filters }, handle);
        requests.get(path, admit(role), async (visit) => whileAdmitted(visit, role, await show(visit)));
      },
      act(path, { role, action, filters = {}, subject, ...options }, take) {
        requests.post(path, options, admit(role), async (visit, sent) => {
          const unreadable = unreadableView(sent.fields, filters);
          if (unreadable) return unreadable;
          const about = subject?.(visit, sent.fields);
          const isPlain = about !== undefined && operatorTextPattern.test(about);
          await recordAction(site.ledger, visit.operator, action, isPlain ? about : undefined);
          return take(visit, sent);
        });
      },
    },
  };
}

function frameOf(site: ConsoleSite): Frame<ConsoleSite> {
  return {
    site,
    render: renderConsole,
    visitorOf: operatingVisitorOf,
    formTargets: (path) =>
      /^\/console\/(?:sign-in|invitation)/.test(path) ? issuerOrigins(site.identity.settings.providers) : [],
  };
}

/** The signed-in user and their operator, read for each request: a session that another process ended is over. */
async function operatingVisitorOf(
  site: ConsoleSite,
  cookies: string | undefined,
): Promise<Visitor | undefined> {
  const visitor = await visitorOf(site, cookies);
  if (!visitor) return undefined;
  const token = cookieOf(cookies, ownCookieName(site.publicUrl(), consoleCookie));
  const operator = await findOperatorOf(
    site.ledger.pool,
    visitor,
    token === undefined ? undefined : operatorTokenHash(token),
  );
  return { ...visitor, operator };
}

/**
 * The one check of roles, for pages, data and actions: a session, a role, a second factor that was proven in this session, and enough
 * of a role, in this order.
 */
function admit(needed: OperatorRole) {
  return (visit: VisitOf<ConsoleSite>, again: string | undefined): Admission<OperatorVisit> => {
    const { visitor } = visit;
    const next = again ?? visit.request.url;
    if (!visitor) {
      const notice = again === undefined ? 'session_required' : 'session_over';
      return refused(visit, 401, { kind: 'redirect', to: pathWith('/console/sign-in', { next }), notice });
    }
    const { operator } = visitor;
    if (!operator) return refused(visit, 403, notOperator());
    if (!operator.until) {
      const to = pathWith('/console/second-factor', { next });
      return refused(visit, 401, { kind: 'redirect', to });
    }
    if (!includesRole(operator.role, needed)) return refused(visit, 403, needsRole(needed));
    const { name, role } = operator;
    const own: OperatorVisit = {
      ...visit,
      visitor,
      operator: { name, role, userId: visitor.userId },
      get token() {
        return visit.token;
      },
    };
    return { kind: 'admitted', visit: own };
  };
}

/** A stream lasts: the right to it is read again while it does. */
function whileAdmitted(visit: OperatorVisit, needed: OperatorRole, answer: Answer): Answer {
  if (answer.kind !== 'events' && answer.kind !== 'file') return answer;
  const isAdmitted = async (): Promise<boolean> => {
    const visitor = await operatingVisitorOf(visit.site, visit.request.headers.cookie);
    return admit(needed)({ ...visit, visitor }, undefined).kind === 'admitted';
  };
  return answer.kind === 'events'
    ? { ...answer, body: admittedStream(answer.body, isAdmitted) }
    : { ...answer, bytes: admittedStream(answer.bytes, isAdmitted) };
}

/** For a script that asks for data, a status says more than a page. */
function refused(visit: VisitOf<ConsoleSite>, status: 401 | 403, answer: Answer): Admission<OperatorVisit> {
  const code = status === 401 ? 'session_required' : 'forbidden';
  noteFacts(visit.request, { code });
  const isAsked = /\b(?:application\/json|text\/event-stream)\b/.test(visit.request.headers.accept ?? '');
  if (!isAsked) return { kind: 'refused', answer };
  const json = { error: code, message: refusals[code].sentence };
  return { kind: 'refused', answer: { kind: 'data', status, json } };
}

/** What is recorded when an action begins has its effects on record after this time. */
const actionMs = 30_000;

/** Shows what a replica has, once it has what was done at the console: an operator sees what they did. */
async function showOlder(visit: OperatorVisit, show: Handle<OperatorVisit>): Promise<Answer> {
  const { ledger, reads } = visit.site;
  const { value, asOf } = await reads.older(
    ledger,
    async (from) => {
      if (from.pool === ledger.pool) return show(visit);
      const answer = await show(visitOn(visit, from));
      // the primary may have it
      return answer.kind === 'view' && answer.status === 404 ? undefined : answer;
    },
    async () => {
      const last = await readLastConsoleTime(ledger);
      return last && new Date(last.getTime() + actionMs);
    },
  );
  if (!value) throw new Error('the primary shows no page');
  if (!asOf?.isBehind || value.kind !== 'view') return { ...value, asOf };
  return { ...value, asOf, body: html`${asOfLine(asOf)}${value.body}` };
}

/** The same visit, with everything that its page shows from another place. */
function visitOn(visit: OperatorVisit, { pool, db }: LedgerReader): OperatorVisit {
  const { site } = visit;
  const { jobs, chat, ledger, logOn } = site;
  const on: ConsoleSite = {
    ...site,
    ledger: { ...ledger, pool, db },
    log: logOn(pool),
    jobs: jobs && (() => ({ ...jobs(), pool, db })),
    chat: chat && (() => ({ ...chat(), pool, db })),
  };
  return {
    ...visit,
    site: on,
    get token() {
      return visit.token;
    },
  };
}

function asOfLine({ seq, at }: AsOf): Html {
  return html`<p class="notice">
    This page shows the ledger up to event ${count(seq)}, as it was at ${time(at)}: a replica that is behind
    has answered. Load it again for newer events.
  </p>`;
}

/** The operators' console, everything below `/console`. */
export function consoleRoutes(site: ConsoleSite, bodies: RequestBodies) {
  return async (app: FastifyInstance): Promise<void> => {
    acceptForms(app, site, bodies);
    if (site.addition && !site.hasCustomerPages) await app.register(site.addition.routes(site.publicUrl));
    const { console, requests } = createConsole(site, app);
    signInPages(requests);
    for (const section of site.sections) section.register(console, site);
  };
}

/** A right that was read within this time is not read again. */
const knownMs = 1_000;

/**
 * A stream for somebody who may lose the right to it while it lasts: the right is read again before bytes are sent. Without it the
 * stream breaks, so that no client takes what it has for the whole.
 */
function admittedStream(body: Readable, isAdmitted: () => Promise<boolean>): Readable {
  let readAtMs = performance.now();
  const isStillAdmitted = async (): Promise<boolean> => {
    if (performance.now() - readAtMs < knownMs) return true;
    readAtMs = performance.now();
    return isAdmitted();
  };
  const pass = async (chunk: Buffer, done: TransformCallback): Promise<void> => {
    try {
      if (await isStillAdmitted()) done(null, chunk);
      else sent.destroy();
    } catch (error) {
      sent.destroy(error instanceof Error ? error : undefined);
    }
  };
  const sent = new Transform({
    highWaterMark: 1,
    transform: (chunk: Buffer, _encoding, done) => void pass(chunk, done),
  });
  // if one of them ends, the other one does
  pipeline(body, sent, () => undefined);
  return sent;
}
