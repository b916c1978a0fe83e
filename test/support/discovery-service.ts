import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

interface Item {
  readonly resource: string;
  readonly payTo?: string;
}

/** A discovery service as facilitators have one: a test sets what it lists, and which faults it has. */
export interface TestDiscoveryService {
  readonly url: string;
  items: Item[];
  /** Whether it lists by payee: as CDP's facilitator (`merchant`), by the parameter of the list (`resources`), or not at all. */
  byPayee: 'merchant' | 'resources' | 'ignored';
  mostPerPage: number;
  /** What an offset behind the end gives. */
  behindEnd: 'empty' | 'last_page' | 'refused';
  pagination: boolean;
  /** Answers in place of the list. */
  fault: ((request: IncomingMessage, response: ServerResponse) => void) | undefined;
  /** Path and query of each request. */
  readonly asked: string[];
}

export const listedItem = ({ resource, payTo = '0x01' }: Item) => ({
  resource,
  type: 'http',
  x402Version: 2,
  accepts: [{ scheme: 'exact', network: 'eip155:84532', amount: '1', asset: '0x02', payTo }],
  lastUpdated: '2026-11-23T00:00:00Z',
});

export const otherItems = (count: number): Item[] =>
  Array.from({ length: count }, (_, index) => ({ resource: `https://other-${index}.example/api` }));

export async function startDiscoveryService(items: Item[] = []): Promise<TestDiscoveryService> {
  const service: TestDiscoveryService & { url: string } = {
    url: '',
    items,
    byPayee: 'merchant',
    mostPerPage: 100,
    behindEnd: 'empty',
    pagination: true,
    fault: undefined,
    asked: [],
  };
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://localhost');
    service.asked.push(request.url ?? '');
    if (service.fault) return service.fault(request, response);
    const list = pathname.replace('/base/discovery/', '');
    const isKnown = list === 'resources' || (list === 'merchant' && service.byPayee === 'merchant');
    if (!isKnown) return response.writeHead(404).end('{"error":"not found"}');
    const payTo = searchParams.get('payTo');
    const isFiltered = payTo !== null && service.byPayee === list;
    const all = isFiltered ? service.items.filter((item) => item.payTo === payTo) : service.items;
    const limit = Math.min(Number(searchParams.get('limit')), service.mostPerPage);
    const asked = Number(searchParams.get('offset'));
    const isBehind = asked > 0 && asked >= all.length;
    if (isBehind && service.behindEnd === 'refused') return response.writeHead(400).end('{"error":"offset"}');
    const lastPage = Math.max(0, Math.ceil(all.length / limit) - 1) * limit;
    const offset = isBehind && service.behindEnd === 'last_page' ? lastPage : asked;
    const page = all.slice(offset, offset + limit).map(listedItem);
    const body = {
      x402Version: 2,
      [list === 'merchant' ? 'resources' : 'items']: page,
      ...(service.pagination && { pagination: { limit, offset, total: all.length } }),
    };
    return response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  service.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/base`;
  return service;
}
