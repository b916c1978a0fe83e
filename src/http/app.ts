import { randomUUID } from 'node:crypto';
import fastify, { type FastifyInstance, LogController } from 'fastify';
import type { Logger } from 'pino';
import type { Config } from '../config/config.ts';
import { type RefusalCode, refusals } from '../domain/refusal.ts';
import { allowOrigin, allowOrigins } from './cors.ts';
import { handleErrors, sendRefusal } from './errors.ts';
import { logRequests } from './request-log.ts';

/** Room for a payment header of 16 KiB with everything else a client sends; beyond it Node answers for us. */
const maxHeaderBytes = 65_536;

/** What Node's parser finds before there is a request. */
const parserRefusals: ReadonlyMap<string, RefusalCode> = new Map([
  ['HPE_HEADER_OVERFLOW', 'headers_too_large'],
  ['ERR_HTTP_REQUEST_TIMEOUT', 'request_timeout'],
]);

export interface AppOptions {
  readonly config: Config;
  readonly logger: Logger;
  /** True once the process is going down: answers then end their connections. */
  readonly stopping: () => boolean;
}

/** The HTTP app without its routes: limits, log line, error table. */
export function createApp({ config, logger, stopping }: AppOptions): FastifyInstance {
  const app = fastify({
    loggerInstance: logger,
    logController: new LogController({ disableRequestLogging: true }),
    genReqId: () => randomUUID(),
    requestIdHeader: false,
    trustProxy: config.trustProxy.length > 0 ? [...config.trustProxy] : false,
    bodyLimit: config.limits.maxBodyBytes,
    requestTimeout: 30_000,
    keepAliveTimeout: 75_000,
    forceCloseConnections: 'idle',
    return503OnClosing: false,
    // the longest that can arrive: what a name may be is for its route to say
    routerOptions: { maxParamLength: maxHeaderBytes },
    http: { maxHeaderSize: maxHeaderBytes },
    frameworkErrors(_error, request, reply) {
      allowOrigin(request, reply);
      sendRefusal(request, reply, 'invalid_request');
    },
    clientErrorHandler(error, socket) {
      if (error.code === 'ECONNRESET' || socket.destroyed) return;
      const code = parserRefusals.get(error.code) ?? 'invalid_request';
      const body = JSON.stringify({ error: refusals[code].sentence, code });
      socket.end(
        `HTTP/1.1 ${refusals[code].status} Error\r\nContent-Type: application/json; charset=utf-8\r\n` +
          `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
      );
    },
  }) as unknown as FastifyInstance;
  logRequests(app);
  allowOrigins(app);
  handleErrors(app);
  app.addHook('onSend', async (_request, reply) => {
    reply.header('x-content-type-options', 'nosniff');
    if (stopping()) reply.header('connection', 'close');
  });
  return app;
}
