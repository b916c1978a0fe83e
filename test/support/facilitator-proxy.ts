import { once } from 'node:events';
import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { whenOver } from './shared.ts';

type Operation = 'verify' | 'settle' | 'supported';

/** What the proxy does with one operation instead of forwarding it. */
export type Fault =
  | 'pass'
  | 'html'
  | 'server_error'
  | 'hang'
  | 'cut_before'
  | 'cut_after'
  | { readonly answer: object | Promise<object> }
  /** Answers 500 to such payments and forwards the others. */
  | { readonly failIf: (request: FacilitatorBody) => boolean }
  /** Forwards it and changes the answer. */
  | { readonly change: (answer: Record<string, unknown>) => object | Promise<object> };

/** As much of a request as tests decide by. */
export interface FacilitatorBody {
  readonly paymentPayload: { readonly payload: { readonly authorization: { readonly from: string } } };
}

/** A settle request is refused before anything is broadcast. */
export const failsBeforeBroadcast = {
  answer: {
    success: false,
    errorReason: 'invalid_exact_evm_insufficient_balance',
    transaction: '',
    network: 'eip155:84532',
  },
} as const;

/** A proxy between a gateway and a real facilitator that injects faults on command, until the test is over. */
export interface FacilitatorProxy {
  readonly url: string;
  readonly faults: Partial<Record<Operation, Fault>>;
  readonly seen: Operation[];
  /** The accepted bearer token; other requests get 401. */
  admits: (request: IncomingMessage) => boolean;
  close(): Promise<void>;
}

export async function startFacilitatorProxy(target: string): Promise<FacilitatorProxy> {
  const faults: FacilitatorProxy['faults'] = {};
  const seen: Operation[] = [];
  const server = http.createServer((request, response) => {
    const operation = (request.url ?? '').slice(1) as Operation;
    seen.push(operation);
    if (proxy.admits(request)) void misbehave(faults[operation] ?? 'pass', target, request, response);
    else response.writeHead(401).end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const proxy: FacilitatorProxy = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    faults,
    seen,
    admits: () => true,
    async close() {
      if (!server.listening) return;
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
  whenOver(() => proxy.close());
  return proxy;
}

async function misbehave(fault: Fault, target: string, request: IncomingMessage, response: ServerResponse) {
  const send = (status: number, type: string, body: string) => {
    response.writeHead(status, { 'content-type': type });
    response.end(body);
  };
  const body = await readAll(request);
  if (fault === 'hang') return;
  if (fault === 'html') return send(200, 'text/html', '<html>It works!</html>');
  if (fault === 'server_error') return send(502, 'text/html', 'Bad Gateway');
  if (fault === 'cut_before') return void request.socket.destroy();
  if (typeof fault === 'object' && 'answer' in fault)
    return send(200, 'application/json', JSON.stringify(await fault.answer));
  if (typeof fault === 'object' && 'failIf' in fault && fault.failIf(JSON.parse(body) as FacilitatorBody))
    return send(500, 'application/json', '{"error":"malformed"}');
  const method = request.method ?? 'GET';
  const passed = await fetch(target + (request.url ?? ''), method === 'GET' ? {} : { method, body });
  const text = await passed.text();
  if (fault === 'cut_after') return void request.socket.destroy();
  if (typeof fault !== 'object' || 'failIf' in fault) return send(passed.status, 'application/json', text);
  return send(
    200,
    'application/json',
    JSON.stringify(await fault.change(JSON.parse(text) as Record<string, unknown>)),
  );
}

async function readAll(request: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of request) text += String(chunk);
  return text;
}
