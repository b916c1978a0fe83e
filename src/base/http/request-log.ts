import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { parseTraceparent } from '../values/traceparent.ts';
import { createRequestField } from './request-field.ts';
import { addressOf } from './request-values.ts';

/** Fields of a request's log line besides method, path and status: ids only. */
export interface RequestFacts {
  quote_digest?: string;
  call_id?: number;
  chat_id?: string;
  /** Where requests are traced. */
  trace_id?: string;
  span_id?: string;
  code?: string;
  /** Why the answer is 503, if the code does not say it. */
  reason?: string;
  /** Replaces the request's path, if that holds a secret. */
  path?: string;
}

const factsField = createRequestField<RequestFacts>('logFacts');
const loggedField = createRequestField<true>('isLogged');

export function factsOf(request: FastifyRequest): Readonly<RequestFacts> | undefined {
  return factsField.of(request);
}

/** Adds fields to the log line of this request. */
export function noteFacts(request: FastifyRequest, more: Readonly<RequestFacts>): void {
  const facts = factsField.of(request);
  if (facts) Object.assign(facts, more);
  else factsField.set(request, { ...more });
}

/**
 * Logs one line per request. Headers and bodies are never logged: they hold signatures and tokens. A client that left before it
 * had its answer is not an error; such a line has no status.
 */
export function logRequests(app: FastifyInstance, requests: { open: number }): void {
  factsField.addTo(app);
  loggedField.addTo(app);
  app.addHook('onRequest', (request, reply, done) => {
    requests.open++;
    reply.raw.once('close', () => {
      requests.open--;
      logOnce(request, reply);
    });
    done();
  });
  // also for a request that is refused before its hooks
  app.addHook('onResponse', (request, reply, done) => {
    logOnce(request, reply);
    done();
  });
}

function logOnce(request: FastifyRequest, reply: FastifyReply): void {
  if (loggedField.of(request)) return;
  loggedField.set(request, true);
  const path = pathOf(request.url);
  // load balancers ask several times a second
  const level = probes.has(path) ? 'debug' : 'info';
  request.log[level](
    {
      request_id: request.id,
      ...callerIds(request.headers),
      method: request.method,
      path,
      ...(reply.raw.writableFinished ? { status: reply.statusCode } : { client_left: true }),
      ms: Math.round(reply.elapsedTime * 10) / 10,
      client: addressOf(request).slice(0, 64),
      ...factsField.of(request),
    },
    'request',
  );
}

const probes: ReadonlySet<string> = new Set(['/x402/health', '/x402/ready', '/v1/ready']);

/**
 * What the caller, or a proxy before the gateway, calls this request. Anybody can send it, so it is only logged: streams and
 * answers have the gateway's own id.
 */
function callerIds(headers: FastifyRequest['headers']): object | undefined {
  const { 'x-request-id': id, traceparent } = headers;
  if (id === undefined && traceparent === undefined) return undefined;
  const parent = parseTraceparent(traceparent);
  return {
    ...(typeof id === 'string' && /^[\w.:=+/@-]{1,128}$/.test(id) ? { client_request_id: id } : {}),
    ...(parent && { trace_id: parent.traceId, parent_id: parent.spanId }),
  };
}

function pathOf(url: string): string {
  const end = url.indexOf('?');
  return url.slice(0, Math.min(200, end < 0 ? url.length : end));
}
