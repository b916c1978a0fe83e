import type { IncomingMessage } from 'node:http';
import { PassThrough } from 'node:stream';
import { once } from 'node:events';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { RouteConfig } from '../../base/config/config.ts';
import { leftSignal } from '../../base/http/left-signal.ts';
import type { RequestBodies } from '../../base/http/request-bodies.ts';
import { noteFacts } from '../../base/http/request-log.ts';
import { addressOf, declaredBytesOf } from '../../base/http/request-values.ts';
import { isPlainTarget, patternShape } from '../../base/values/route-pattern.ts';
import { sendRefusal } from '../../ledger/http/errors.ts';
import type { Upstreams } from '../peers/upstream.ts';
import { answerHeaders, privateCacheControl, upstreamHeaders } from '../rules/route-headers.ts';
import { paymentRequiredText } from './payment-required.ts';
import { setHead } from './route-answer.ts';
import type { JobsContext } from '../use-cases/context.ts';
import { type JobHead, openRequest } from '../use-cases/job-request.ts';
import { payForJob } from '../use-cases/pay-job.ts';
import type { AnswerClient, AnswerHead } from '../use-cases/routes/answer-client.ts';
import type { RouteRefusal } from '../use-cases/routes/route-request.ts';
import { giveBack } from '../use-cases/routes/first-lease.ts';
import { serveRoute } from '../use-cases/routes/serve-route.ts';
import {
  type AcceptedAnswer,
  bodyOf,
  callerHeadersOf,
  type Opened,
  openPaidFlow,
  type PaidPath,
  type Passing,
  paymentOf,
  paymentResponse,
  receiptUrl,
  takeBytes,
} from './paid-flow.ts';

/** Bytes of an answer that wait for a client; the upstream is read no faster. */
const waitingBytes = 262_144;

interface RouteParts {
  readonly current: () => JobsContext;
  readonly bodies: RequestBodies;
}

function pathOf(route: RouteConfig): PaidPath<FastifyRequest> {
  return {
    headOf: (request) => routeHead(request, route),
    refuse: ({ context }, request, reply) => refuseUnsellable(request, reply, route, context.upstreams),
    accept: (opened, request, reply, answer) =>
      opened.context.flows.add(serve(opened, request, reply, answer)),
    passOn: ({ context }, request, reply) => passing(context, request, reply),
    abandon: async ({ context }, { lease }) => lease && context.flows.add(giveBack(context, lease)),
  };
}

/** A route on a path that has other handlers as well: it takes the requests that carry a payment of x402. */
export function paidBesides({ current, bodies }: RouteParts, route: RouteConfig) {
  return async (app: FastifyInstance): Promise<void> => {
    app.addConstraintStrategy(isPaid);
    const flow = openPaidFlow(app, current, bodies);
    app.route({
      method: [...route.methods],
      url: route.path,
      exposeHeadRoute: false,
      constraints: { [isPaid.name]: 'yes' },
      ...flow.handlers(pathOf(route)),
    });
  };
}

type Strategy = Parameters<FastifyInstance['addConstraintStrategy']>[0];
type Stored = Parameters<ReturnType<Strategy['storage']>['set']>[1];

const isPaid: Strategy = {
  name: 'is_paid',
  storage: () => {
    const handlers = new Map<unknown, Stored>();
    return {
      get: (key) => handlers.get(key) ?? null,
      set: (key, handler) => void handlers.set(key, handler),
    };
  },
  deriveConstraint: ({ headers }: IncomingMessage) =>
    headers['payment-signature'] === undefined ? undefined : 'yes',
};

/** `PAYMENT-REQUIRED` for a request without a payment; undefined if nothing is offered for it. */
export async function offerOf(
  context: JobsContext,
  route: RouteConfig,
  request: FastifyRequest,
  body: Buffer,
): Promise<string | undefined> {
  const head = { ...routeHead(request, route), payment: undefined };
  const answer = await payForJob(context, openRequest(context, head), body);
  if (answer.kind !== 'payment_required') return undefined;
  const url = `${context.settings.routes?.publicUrl}${route.path}`;
  const quote = { ...answer.quote, url, isAnsweredFirst: true };
  return Buffer.from(paymentRequiredText(context, { ...answer, quote }).header, 'utf8').toString('base64');
}

/** The paid routes of an app of their own: a client pays, and gets the answer of the upstream as it is. */
export function paidRoutes({ current, bodies }: RouteParts) {
  return async (app: FastifyInstance): Promise<void> => {
    const flow = openPaidFlow(app, current, bodies);
    const routes = [...(current().settings.routes?.all.values() ?? [])];
    for (const route of routes) {
      const handlers = flow.handlers(pathOf(route));
      app.route({ method: [...route.methods], url: route.path, exposeHeadRoute: false, ...handlers });
      // a crawler gets the offer, whatever the route's method is: of the first route of a path
      const ofPath = routes.filter(({ path }) => patternShape(path) === patternShape(route.path));
      if (ofPath[0] === route && !ofPath.some(({ methods }) => methods.includes('HEAD')))
        app.route({
          method: 'HEAD',
          url: route.path,
          ...flow.handlers({
            headOf: (request) => ({ ...routeHead(request, route), payment: undefined }),
            accept: () => Promise.reject(new Error('a request without a payment was accepted')),
          }),
        });
    }
  };
}

function clientAddressOf(request: FastifyRequest) {
  const { protocol, host } = request;
  return { address: addressOf(request), protocol, host };
}

function routeHead(request: FastifyRequest, route: RouteConfig): JobHead {
  const { headers } = request;
  // read now: once a client has left its address is unknown
  const client = clientAddressOf(request);
  return {
    requestId: request.id,
    job: { serviceId: route.serviceId, jobIndex: route.jobIndex },
    route: { config: route, headers: () => upstreamHeaders(headers, client) },
    method: request.method,
    path: request.url,
    contentType: headers['content-type'],
    declaredBytes: declaredBytesOf(headers),
    payment: paymentOf(headers),
    callerHeaders: callerHeadersOf(headers),
    headers,
    redeliverySignature: headers['x-net-redelivery-sig']?.toString(),
    clientAddress: client.address,
  };
}

/** What no payment can buy: before anything is charged. */
function refuseUnsellable(
  request: FastifyRequest,
  reply: FastifyReply,
  { upstream }: RouteConfig,
  upstreams: Upstreams,
): FastifyReply | undefined {
  const refused = refuseUnforwardable(request, reply);
  if (refused) return refused;
  // a payment that is known is answered all the same: its answer may be stored
  return paymentOf(request.headers) === undefined && upstreams.of(upstream).isOpen()
    ? sendRefusal(request, reply, 'upstream_unavailable')
    : undefined;
}

/** What is passed on to no upstream, paid or free. */
function refuseUnforwardable(request: FastifyRequest, reply: FastifyReply): FastifyReply | undefined {
  if (request.headers.upgrade !== undefined) return sendRefusal(request, reply, 'upgrade_refused');
  return isPlainTarget(request.url)
    ? undefined
    : sendRefusal(request, reply, 'invalid_request', { context: { details: [ambiguousTarget] } });
}

const ambiguousTarget =
  'the path has an empty or dot segment, an encoded slash, backslash, dot or percent sign, or characters that must be encoded';

async function serve(
  { context, request: { route } }: Opened,
  request: FastifyRequest,
  reply: FastifyReply,
  answer: AcceptedAnswer,
): Promise<FastifyReply> {
  const { digest, callId } = answer;
  noteFacts(request, { quote_digest: digest, call_id: callId });
  reply
    .header(...paymentResponse(answer))
    .header('link', `<${receiptUrl(context, digest)}>; rel="payment-receipt"`);
  const { client, sent } = clientOf(request, reply);
  if (answer.answer) {
    client.whole(answer.answer, answer.answer.body);
    return reply;
  }
  if (!route) throw new Error('a request without a route was accepted on the path of one');
  const outcome = await serveRoute(
    context,
    {
      route,
      digest,
      callId,
      method: request.method,
      target: request.url,
      body: bodyOf(request),
      isReplayed: answer.replayed,
    },
    client,
    answer.lease,
  );
  return outcome.kind === 'refused' && !sent()
    ? sendRouteRefusal(context, request, reply, answer, outcome)
    : reply;
}

/** An answer that is passed on while it comes says where its receipt will be: how much it costs is not known yet. */
function passing(context: JobsContext, request: FastifyRequest, reply: FastifyReply): Passing {
  const { client, sent } = clientOf(request, reply);
  return {
    hasBegun: sent,
    begin(digest, head) {
      noteFacts(request, { quote_digest: digest });
      reply.header('link', `<${receiptUrl(context, digest)}>; rel="payment-receipt"`);
      client.begin(head);
      return client;
    },
  };
}

function sendRouteRefusal(
  context: JobsContext,
  request: FastifyRequest,
  reply: FastifyReply,
  { digest, receiptToken }: AcceptedAnswer,
  { code, reason, sha256 }: RouteRefusal,
): FastifyReply {
  return sendRefusal(request, reply.header('cache-control', 'no-store'), code, {
    ...(reason === undefined ? {} : { reason }),
    context: {
      quote_digest: digest,
      receipt_url: receiptUrl(context, digest),
      receipt_token: receiptToken,
      ...(reason === undefined ? {} : { reason }),
      ...(sha256 === undefined ? {} : { result_sha256: sha256 }),
    },
  });
}

/** The client of a request; `sent`: its answer has begun, so that nothing else can be answered. */
function clientOf(
  request: FastifyRequest,
  reply: FastifyReply,
): { readonly client: AnswerClient; readonly sent: () => boolean } {
  const left = leftSignal(reply);
  let stream: PassThrough | undefined;
  let hasBegun = false;
  const start = ({ status, headers, isReplayed = false }: AnswerHead): void => {
    hasBegun = true;
    setHead(reply, { status, headers });
    reply.header('cache-control', privateCacheControl(headers));
    if (isReplayed) reply.header('idempotent-replayed', 'true');
  };
  const client: AnswerClient = {
    left,
    begin(head) {
      if (hasBegun) return;
      start(head);
      // a stream whose client has left fails before its head is sent, which Fastify takes for a fault of the gateway
      if (left.aborted || isBare(request, head)) return void reply.send();
      stream = new PassThrough({ highWaterMark: waitingBytes });
      // Fastify destroys it where the client leaves
      stream.on('error', () => {});
      void reply.send(stream);
    },
    whole(head, body) {
      start(head);
      // as one body it counts among the answers that clients have not read
      void reply.send(isBare(request, head) ? undefined : body);
    },
    async write(piece) {
      if (left.aborted || !stream || stream.destroyed || stream.write(piece)) return;
      const over = new AbortController();
      const signal = AbortSignal.any([left, over.signal]);
      await Promise.race([once(stream, 'drain', { signal }), once(stream, 'close', { signal })]).catch(
        () => {},
      );
      over.abort();
    },
    end(trailers) {
      // Node sends them where the answer has no length
      reply.raw.addTrailers(trailers.map(([name, value]): [string, string] => [name, value]));
      stream?.end();
    },
    cut: () => void stream?.destroy(new Error('the upstream gave no complete answer')),
  };
  return { client, sent: () => hasBegun };
}

/** An answer to HEAD, and one of these statuses, has no body. */
function isBare({ method }: FastifyRequest, { status }: AnswerHead): boolean {
  return method === 'HEAD' || status === 204 || status === 304;
}

/** Paths that are passed on unpaid. */
export function freeRoutes({ current, bodies }: RouteParts) {
  return async (app: FastifyInstance): Promise<void> => {
    const { free } = current().settings.routes ?? {};
    if (!free || free.size === 0) return;
    takeBytes(app, current().config.limits, bodies, 1);
    for (const [path, upstream] of free)
      app.route({
        method: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'],
        url: path,
        exposeHeadRoute: false,
        handler: (request, reply) => passOn(current().upstreams, upstream, request, reply),
      });
  };
}

const freeTimeoutMs = 30_000;

async function passOn(
  upstreams: Upstreams,
  upstream: string,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const refused = refuseUnforwardable(request, reply);
  if (refused) return refused;
  const { headers, method, url: target } = request;
  const answer = await upstreams.ofFree(upstream).request({
    method,
    target,
    headers: upstreamHeaders(headers, clientAddressOf(request)),
    body: bodyOf(request),
    timeoutMs: freeTimeoutMs,
    signal: leftSignal(reply),
  });
  if (answer.kind === 'failed')
    return sendRefusal(request, reply, 'upstream_unavailable', { reason: answer.reason });
  setHead(reply, { status: answer.status, headers: answerHeaders(answer.headers) });
  return reply.send(answer.body);
}
