import { createServer } from 'node:http';
import { once } from 'node:events';
import { sha256 } from '../../src/base/values/sha256.ts';
import { boundPort } from '../../src/devnet/ports.ts';
import { type Exchange, type HttpProxy, startHttpProxy } from '../support/http-proxy.ts';
import { inPieces } from './chat-peers.ts';
import { applyFault } from './http-faults.ts';
import type { PeerParts } from './peers.ts';
import type { Records, RouteCall } from './records.ts';
import { priceHeader, routePriceWei } from './route-config.ts';
import type { Scope } from './rig.ts';

/** What the answers of a metered route may say that they cost: the nth answer. The last five are no usable price. */
export const saidPrices = {
  all: () => [String(routePriceWei)],
  // another price at each attempt, and mostly no whole number of atoms
  some: (nth: number) => [String((routePriceWei * BigInt((nth % 89) + 1)) / 97n)],
  least: () => ['1'],
  nothing: () => ['0'],
  none: () => [],
  two: () => ['1', '2'],
  malformed: () => ['NaN'],
  dollars: () => ['0.1 USD'],
  above: () => [String(routePriceWei + 1n)],
} as const satisfies Readonly<Record<string, (nth: number) => string[]>>;
export type SaidPrice = keyof typeof saidPrices;

/**
 * The API that the routes sell. No two of its answers are the same; the end of a path says how many bytes it has, or that there is none, and of a metered route before
 * that what it costs, and whether its head or its end says so.
 */
export async function startRouteUpstream(scope: Scope): Promise<string> {
  let answers = 0;
  const server = createServer((request, response) => {
    request.resume().on('end', () => {
      const [price = '', place, size = ''] = (request.url ?? '').split('-').slice(-3);
      const line = `answer ${++answers} to ${String(request.headers['x-net-idempotency-key'])}\n`;
      const prices = price in saidPrices ? saidPrices[price as SaidPrice](answers) : [];
      response.setHeader('content-type', 'text/plain');
      if (place === 'end') response.setHeader('trailer', priceHeader);
      else if (prices.length > 0) response.setHeader(priceHeader, prices);
      response.writeHead(size === 'absent' ? 404 : 200).flushHeaders();
      if (place === 'end') response.addTrailers(prices.map((one): [string, string] => [priceHeader, one]));
      response.end(line.padEnd(Number(size) || 0, '.'));
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  scope.defer(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${boundPort(server)}`;
}

/** The proxy in front of it: faults, the steps around an answer, and a record of each request and its answer. */
export function startRouteUpstreamProxy(
  target: string,
  { faults, strike }: PeerParts,
  { routeCalls }: Pick<Records, 'routeCalls'>,
): Promise<HttpProxy> {
  return startHttpProxy(
    () => target,
    async (exchange, forward) => {
      const call = readCall(exchange);
      routeCalls.push(call);
      void exchange.over.then(() => (call.endedAt = Date.now()));
      if (await strike('before_route_upstream')) return 'cut';
      const fault = faults.draw('route_upstream');
      if (fault.kind !== 'none') faults.count(`route_upstream: ${fault.kind}`, call.stream.slice(0, 10));
      const reply = await applyFault(fault, forward, faults);
      if (await strike('after_route_upstream')) return 'cut';
      if (reply === 'cut') return reply;
      const { status, body, headers, trailers = {} } = reply;
      const isPricedLast = headers.trailer === priceHeader;
      const prices = [(isPricedLast ? trailers : headers)[priceHeader] ?? []].flat();
      if (!fault.kind.endsWith('_midway'))
        call.answer = { status, sha256: sha256(body), prices, isPricedLast };
      const sent = inPieces(reply, fault, { faults, strike }, 'during_route_stream');
      return sent.pieces ? { ...sent, pieces: { ...sent.pieces, isSized: body.length % 2 === 0 } } : sent;
    },
  );
}

function readCall({ method, path, headers, body }: Exchange): RouteCall {
  const of = (name: string) => String(headers[name] ?? '');
  return {
    method,
    path,
    bodySha256: sha256(body),
    stream: of('x-x402-quote-digest'),
    callId: Number(of('x-net-call-id')),
    attempt: Number(of('x-net-attempt')),
    idempotencyKey: of('x-net-idempotency-key'),
    askedAt: Date.now(),
    endedAt: undefined,
    answer: undefined,
  };
}
