import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createConnectRouter, createContextValues } from '@connectrpc/connect';
import type { OperatorLog } from '../../base/values/operator-log.ts';
import { clientOf } from '../../base/values/client-address.ts';
import { late, within } from '../../base/runtime/within.ts';
import { type ConnectionLimits, serveBothProtocols } from './both-protocols.ts';
import { createFairQueue } from './fair-queue.ts';
import { clientAddress, type ProxyList, proxyList } from './proxies.ts';
import {
  answerText,
  cut,
  exchange,
  isAnswered,
  type NodeRequest,
  type NodeResponse,
} from './node-exchange.ts';
import type { PricingEngine } from './pricing-engine.ts';
import { askingClient, priceFacts, type PriceFacts, pricingRoutes } from './pricing-routes.ts';

export interface PricingServerLimits extends ConnectionLimits {
  /** A larger message is refused, before it is read where its length is known. */
  readonly maxMessageBytes: number;
  /** Requests that wait for the signer or the ledger simultaneously; further ones get their turn client by client. */
  readonly maxWaiting: number;
  /** Requests of one client that wait for their turn; further ones are refused. */
  readonly maxWaitingOfClient: number;
  /** How long a request may wait while the gateway issues no more quotes. */
  readonly patienceMs: number;
}

/** What bounds the memory: connections × streams × message. */
export const defaultPricingLimits: PricingServerLimits = {
  maxConnections: 512,
  maxConnectionsPerAddress: 64,
  maxStreams: 32,
  requestTimeoutMs: 10_000,
  idleTimeoutMs: 60_000,
  maxMessageBytes: 16_384,
  maxWaiting: 64,
  maxWaitingOfClient: 32,
  patienceMs: 5_000,
};

export interface PricingServerOptions {
  readonly engine: PricingEngine;
  /** Port 0 lets the system choose. */
  readonly bind: { readonly host: string; readonly port: number };
  readonly log?: OperatorLog | undefined;
  readonly limits?: Partial<PricingServerLimits>;
  /** Addresses and CIDR ranges of proxies, whose `X-Forwarded-For` names the client. */
  readonly trustProxy?: readonly string[];
}

export interface PricingServer {
  /** The address that it listens on. */
  readonly url: string;
  /** Takes no further requests, answers the accepted ones for at most `graceMs` and closes every connection. Returns how many were cut. */
  stop(graceMs?: number): Promise<{ readonly requestsCut: number }>;
}

/** Serves an engine by gRPC, gRPC-Web and Connect on one port. Rejects if the address cannot be used. */
export async function servePricing(options: PricingServerOptions): Promise<PricingServer> {
  const { engine, bind, log } = options;
  const limits = { ...defaultPricingLimits, ...options.limits };
  const open = new Set<string>();
  const proxies = proxyList(options.trustProxy ?? []);
  const handle = createHandler({ engine, log, limits, open, proxies });
  const both = serveBothProtocols(handle, limits, proxies);
  both.server.listen(bind.port, bind.host);
  await once(both.server, 'listening');
  const { address, port, family } = both.server.address() as AddressInfo;
  return {
    url: `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`,
    async stop(graceMs = 10_000) {
      const isLate = (await within(graceMs, both.close())) === late;
      const requestsCut = isLate ? open.size : 0;
      both.destroy();
      return { requestsCut };
    },
  };
}

interface HandlerParts extends Pick<PricingServerOptions, 'engine' | 'log'> {
  readonly limits: PricingServerLimits;
  /** The ids of requests without an answer. */
  readonly open: Set<string>;
  readonly proxies: ProxyList;
}

/** Logs a line a request. */
function createHandler({ engine, log, limits, open, proxies }: HandlerParts) {
  const turns = createFairQueue({
    atOnce: limits.maxWaiting,
    waitingOfClient: limits.maxWaitingOfClient,
    patienceMs: limits.patienceMs,
  });
  const router = createConnectRouter({
    // messages are small: a compressed one could only be meant to grow
    acceptCompression: [],
    readMaxBytes: limits.maxMessageBytes,
    // a misspelt requester must not lead to a quote for any; protobuf has numbers, and ignores those of later versions
    jsonOptions: { ignoreUnknownFields: false },
  });
  pricingRoutes(engine, turns)(router);
  const paths = new Map(router.handlers.map((handler) => [handler.requestPath, handler]));

  return (request: NodeRequest, response: NodeResponse): void => {
    const id = randomUUID();
    const facts: PriceFacts = {};
    const startedMs = performance.now();
    const { url: path = '' } = request;
    const client = clientAddress(request, proxies);
    open.add(id);
    let isCut = false;
    const timer = setTimeout(() => {
      isCut = true;
      cut(request);
    }, limits.requestTimeoutMs);
    response.once('close', () => {
      clearTimeout(timer);
      open.delete(id);
      const ms = Math.round((performance.now() - startedMs) * 10) / 10;
      const answered = isAnswered(response) ? { status: response.statusCode } : { client_left: true };
      const ended = isCut ? { cut: true } : answered;
      log?.info({ request_id: id, path: path.slice(0, 200), ...ended, ms, client, ...facts }, 'request');
    });
    response.setHeader('x-request-id', id);
    const handler = paths.get(path.split('?', 1)[0] ?? '');
    if (!handler)
      return answerText(request, response, 404, `There is only POST ${[...paths.keys()].join(', ')}`);
    const values = createContextValues().set(priceFacts, facts).set(askingClient, clientOf(client));
    exchange(handler, { request, response }, values).catch((err: unknown) => {
      log?.error({ err, request_id: id }, 'a request for a price failed');
      cut(request);
    });
  };
}
