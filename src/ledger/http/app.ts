import { randomUUID } from 'node:crypto';
import fastify, { type FastifyInstance, LogController } from 'fastify';
import type { Logger } from 'pino';
import type { Config } from '../../base/config/config.ts';
import { openAiError } from '../../base/errors/openai-error.ts';
import { admitInTurn } from '../../base/http/admission.ts';
import { createCors } from '../../base/http/cors.ts';
import { handleErrors, sendRefusal, type SendProblemPage } from './errors.ts';
import { sendOpenAiError } from './openai-errors.ts';
import { createParserErrors } from '../../base/http/parser-errors.ts';
import { parseWithin, type RequestBodies } from '../../base/http/request-bodies.ts';
import { logRequests } from '../../base/http/request-log.ts';
import { boundReaders } from '../../base/http/slow-readers.ts';
import type { Socket } from 'node:net';
import { declaredBytesOf } from '../../base/http/request-values.ts';

/** Enough for a payment header of 16 KiB and the usual headers; beyond it the HTTP parser refuses the request. */
const maxHeaderBytes = 65_536;

export interface AppOptions {
  readonly config: Config;
  readonly logger: Logger;
  readonly bodies: RequestBodies;
  /** Counts the requests that have no answer yet. */
  readonly requests: { open: number };
  /** True once the process will stop: answers then close their connections, so that their clients go elsewhere. */
  readonly draining: () => boolean;
  /** True once the process takes no further connections. */
  readonly stopping: () => boolean;
  readonly problemPage?: SendProblemPage;
  /** All its paths are sold to pages of any origin, and none is one of the gateway's own. */
  readonly isPaidApi?: boolean;
}

/** The HTTP app without its routes: limits, log line, error table. */
export function createApp({
  config,
  logger,
  bodies,
  requests,
  draining,
  stopping,
  problemPage,
  isPaidApi = false,
}: AppOptions): FastifyInstance {
  const isChatPath = (url: string): boolean =>
    !isPaidApi && config.chat !== undefined && url.startsWith('/v1/');
  const parserErrors = createParserErrors(isChatPath, config.jobs === undefined);
  const cors = createCors(isChatPath, isPaidApi ? [] : (config.identity?.trustedOrigins ?? []), isPaidApi);
  const app = fastify({
    loggerInstance: logger,
    logController: new LogController({ disableRequestLogging: true }),
    genReqId: () => randomUUID(),
    requestIdHeader: false,
    // a child for each request would serialise its id twice: the few lines of a request name it themselves
    childLoggerFactory: (parent) => parent,
    rewriteUrl: ({ url = '' }) => pathOf(url),
    trustProxy: config.trustProxy.length > 0 ? [...config.trustProxy] : false,
    bodyLimit: config.limits.maxBodyBytes,
    requestTimeout: 30_000,
    keepAliveTimeout: 75_000,
    forceCloseConnections: 'idle',
    return503OnClosing: false,
    // no limit of the router's own: each route validates its parameters
    // upstreams may take paths for equal that differ in case or in a slash at the end: what is sold is sold in every spelling
    routerOptions: {
      maxParamLength: maxHeaderBytes,
      caseSensitive: !isPaidApi,
      ignoreTrailingSlash: isPaidApi,
    },
    http: { maxHeaderSize: maxHeaderBytes, connectionsCheckingInterval: 2_000 },
    frameworkErrors(_error, request, reply) {
      cors.allowOrigin(request, reply);
      // its hooks do not run
      reply.header('x-request-id', request.id);
      if (!isChatPath(request.url)) return void sendRefusal(request, reply, 'invalid_request');
      sendOpenAiError(request, reply, openAiError('invalid_request'));
    },
    clientErrorHandler: parserErrors.answer,
  }) as unknown as FastifyInstance;
  // Node reads the address of a socket at its first use, and cannot read it once the socket is closed
  app.server.on('connection', (socket) => void socket.remoteAddress);
  closeSilentConnections(app);
  boundReaders(app, { leastBytesPerSec: config.limits.leastReadBytesPerSec });
  closeRefusedConnections(app);
  logRequests(app, requests);
  // runners share addresses, and deliver what was paid
  admitInTurn(app, (url) => url.startsWith('/runner/'));
  parserErrors.watch(app);
  cors.watch(app);
  handleErrors(app, problemPage);
  parseWithin(app, bodies);
  // the hooks of every request call back: an async one would cost a promise each
  app.addHook('onSend', (request, reply, _payload, done) => {
    reply
      .header('x-content-type-options', 'nosniff')
      .header('x-request-id', reply.getHeader('x-request-id') ?? request.id);
    if (draining()) reply.header('connection', 'close');
    done();
  });
  app.addHook('onResponse', (_request, _reply, done) => {
    // an answer that began before the shutdown may have promised keep-alive
    if (stopping()) setImmediate(() => app.server.closeIdleConnections());
    done();
  });
  return app;
}

/** A request target may name an origin before its path. Routes, limits and logs all see the path alone. */
function pathOf(target: string): string {
  if (target.startsWith('/')) return target;
  return /^[a-z][a-z0-9+.-]*:\/\/[^/?#]*(\/.*)$/i.exec(target)?.[1] ?? target;
}

/** After so many refusals a connection is closed. */
const mostRefusals = 32;
/** To read the body of a refused request costs as much as one more refusal for each of so many bytes. */
const bytesOfOneRefusal = 65_536;

/**
 * Closes the connections of clients that go on after 429, with what they have not sent yet: what a proxy has for several clients is opened
 * again. The first 429 of a connection never closes it, whatever its body, so that an honest client reads its answer.
 */
function closeRefusedConnections(app: FastifyInstance): void {
  const refusals = new WeakMap<Socket, number>();
  app.addHook('onSend', (request, reply, _payload, done) => {
    if (reply.statusCode !== 429) return done();
    const { socket } = request.raw;
    const before = refusals.get(socket) ?? 0;
    const after = before + 1 + Math.floor(declaredBytesOf(request.headers) / bytesOfOneRefusal);
    refusals.set(socket, after);
    if (before > 0 && after > mostRefusals) reply.header('connection', 'close');
    done();
  });
}

/**
 * Closes the connections on which nothing has come when the app stops. Node closes those that are idle after a request, and would
 * wait for the others until the time of a request is over.
 */
function closeSilentConnections(app: FastifyInstance): void {
  const open = new Set<Socket>();
  app.server.on('connection', (socket: Socket) => {
    open.add(socket);
    socket.once('close', () => open.delete(socket));
  });
  app.addHook('preClose', (done) => {
    for (const socket of open) if (socket.bytesRead === 0) socket.destroy();
    done();
  });
}
