import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Span, Tracing } from '../values/tracing.ts';
import { parseTraceparent } from '../values/traceparent.ts';
import { factsOf, noteFacts } from './request-log.ts';

/** Asked again and again, also while nothing happens. */
const untraced: ReadonlySet<string> = new Set([
  '/x402/health',
  '/x402/ready',
  '/v1/ready',
  '/status',
  '/metrics',
]);

/**
 * Records each request to this app as a span, below the one that its `traceparent` names. It has the route's pattern, never the path,
 * which may hold a digest or a token.
 */
export function traceRequests(app: FastifyInstance, tracing: Tracing): void {
  app.addHook('onRequest', (request, reply, done) => {
    const route = request.routeOptions.url;
    if (route !== undefined && untraced.has(route)) return done();
    const span = tracing.beginFrom(
      {
        name: route === undefined ? request.method : `${request.method} ${route}`,
        kind: 'server',
        attributes: { 'http.request.method': request.method, 'http.route': route },
      },
      { parent: request.headers['traceparent'] },
    );
    const own = parseTraceparent(span.traceparent);
    if (own) noteFacts(request, { trace_id: own.traceId, span_id: own.spanId });
    reply.raw.once('close', () => end(span, request, reply));
    span.run(done);
  });
}

function end(span: Span, request: FastifyRequest, reply: FastifyReply): void {
  span.note({ 'tollbook.code': factsOf(request)?.code });
  if (!reply.raw.writableFinished) return span.end('client_left');
  const { statusCode } = reply;
  span.note({ 'http.response.status_code': statusCode });
  span.end(statusCode >= 500 ? String(statusCode) : undefined);
}
