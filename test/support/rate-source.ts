import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

/** An HTTP endpoint with a rate, as a market's: a test sets what it answers. */
export interface TestRateSource {
  readonly url: string;
  /** The body of the next answers. */
  body: string;
  status: number;
  /** Undefined: answers at once; else the answer waits this long. */
  delayMs: number;
  asked: number;
}

export async function startRateSource(body: string): Promise<TestRateSource> {
  const source = { url: '', body, status: 200, delayMs: 0, asked: 0 };
  const server = createServer((_, response) => {
    source.asked += 1;
    const timer = setTimeout(() => {
      response.writeHead(source.status, { 'content-type': 'application/json' }).end(source.body);
    }, source.delayMs);
    response.once('close', () => clearTimeout(timer));
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  source.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/rate`;
  return source;
}
