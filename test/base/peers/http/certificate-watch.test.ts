import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { watchCertificates } from '../../../../src/base/peers/http/certificate-watch.ts';
import { createHttpPool } from '../../../../src/base/peers/http/http.ts';

test('a peer whose TLS fails is reported by its host for 15 minutes; an unreachable one is not', async () => {
  // answers a TLS greeting with something else
  const server = createServer((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  let nowMs = 0;
  const watch = watchCertificates(() => nowMs);
  onTestFinished(() => watch.close());
  const ask = async (): Promise<void> => {
    const pool = createHttpPool(`https://127.0.0.1:${port}`);
    const answer = await pool.request({ method: 'GET', path: '/', timeoutMs: 20_000, maxResponseBytes: 10 });
    expect(answer).toMatchObject({ kind: 'failed', sent: false });
    await pool.close();
  };
  await ask();
  expect(watch.conditions()).toMatchObject([
    {
      kind: 'certificate_trouble',
      subject: `127.0.0.1:${port}`,
      details: { code: expect.stringMatching(/SSL/) },
    },
  ]);
  nowMs = 900_001;
  expect(watch.conditions()).toEqual([]);
  server.close();
  await ask();
  expect(watch.conditions()).toEqual([]);
});
