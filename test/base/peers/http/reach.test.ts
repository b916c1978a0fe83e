import net from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { reach } from '../../../../src/base/peers/http/reach.ts';
import { boundPort, freePort } from '../../../../src/devnet/ports.ts';
import { isInstalled, notChecked } from '../../../support/installed.ts';
import { startSignedServer, trustHere } from '../../../support/signed-server.ts';
import { eventually } from '../../../support/wait.ts';

const hasOpenssl = isInstalled('openssl', 'version');
const noOpenssl = notChecked('TLS', hasOpenssl ? [] : ['openssl']);
const longMs = 10_000;

async function portOf(server: net.Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await eventually(() => expect(server.listening).toBe(true));
  onTestFinished(() => void server.close());
  return boundPort(server);
}

test('a host that accepts connections is reached without a byte sent to it, another one is not', async () => {
  const received: Buffer[] = [];
  const port = await portOf(net.createServer((socket) => socket.on('data', (data) => received.push(data))));
  expect(await reach(`http://127.0.0.1:${port}/path`, longMs)).toEqual({
    kind: 'reached',
    certificateEnds: undefined,
  });
  expect(received).toEqual([]);
  expect(await reach(`http://127.0.0.1:${await freePort()}`, longMs)).toEqual({
    kind: 'unreachable',
    code: 'ECONNREFUSED',
  });
});

test('what speaks no TLS is not reached over https, and silence ends with the time limit', async () => {
  const plain = await portOf(net.createServer((socket) => socket.on('error', () => {}).end('hello\r\n')));
  expect(await reach(`https://127.0.0.1:${plain}`, longMs)).toMatchObject({ kind: 'insecure' });
  const silent = await portOf(net.createServer((socket) => socket.on('error', () => {})));
  expect(await reach(`https://127.0.0.1:${silent}`, 50)).toEqual({ kind: 'unreachable', code: 'timeout' });
});

describe.skipIf(noOpenssl)(`with certificates${noOpenssl}`, () => {
  test('a certificate of an unknown authority is not accepted, and one of a known authority only for its own host', async () => {
    const { certificate, port } = await startSignedServer(5);
    expect(await reach(`https://localhost:${port}`, longMs)).toEqual({
      kind: 'insecure',
      code: 'DEPTH_ZERO_SELF_SIGNED_CERT',
    });
    trustHere(certificate);
    const reached = await reach(`https://localhost:${port}`, longMs);
    const ends = reached.kind === 'reached' ? (reached.certificateEnds?.getTime() ?? 0) : 0;
    expect(Math.round((ends - Date.now()) / 86_400_000)).toBe(5);
    expect(await reach(`https://127.0.0.1:${port}`, longMs)).toEqual({
      kind: 'insecure',
      code: 'ERR_TLS_CERT_ALTNAME_INVALID',
    });
  });
});
