import { once } from 'node:events';
import http, { type ServerResponse } from 'node:http';
import net, { type AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { boundReader } from '../../../src/http/server/bound-reader.ts';

/** Whether a client had its whole answer when its connection ended: one that never reads, or reads all. */
async function endsWhole(write: (response: ServerResponse) => void, isReading: boolean): Promise<boolean> {
  const server = http.createServer((_, response) => write(response));
  onTestFinished(() => void server.close());
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = net.connect((server.address() as AddressInfo).port, '127.0.0.1');
  client.on('error', () => {});
  await once(client, 'connect');
  if (isReading) client.resume();
  client.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
  const [, response] = (await once(server, 'request')) as [unknown, ServerResponse];
  if (!response.destroyed) await once(response, 'close');
  client.destroy();
  return response.writableFinished;
}

test('a client that takes nothing of its answer is cut off', async () => {
  const isWhole = await endsWhole((response) => {
    boundReader(response, { stalledMs: 200, longestMs: 600_000 });
    response.write(Buffer.alloc(50_000_000));
  }, false);
  expect(isWhole).toBe(false);
});

test('a client that takes its answer too slowly is cut off, however often it reads', async () => {
  const isWhole = await endsWhole((response) => {
    boundReader(response, { stalledMs: 600_000, longestMs: 400 });
    const drip = setInterval(() => response.write('x'), 20);
    response.once('close', () => clearInterval(drip));
  }, true);
  expect(isWhole).toBe(false);
});
