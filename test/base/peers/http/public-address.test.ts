import { createSocket } from 'node:dgram';
import { promises, type LookupAddress } from 'node:dns';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { guardedLookup, isPublicAddress } from '../../../../src/base/peers/http/public-address.ts';
import {
  customerAddresses,
  customerUrl,
  sendCustomerWebhook,
} from '../../../../src/base/peers/http/customer-webhook.ts';

const addresses: [string, boolean][] = [
  ['93.184.215.14', true],
  ['2606:2800:21f:cb07:6820:80da:af6b:8b2c', true],
  ...[
    '127.0.0.1',
    '10.1.2.3',
    '100.64.0.1',
    '169.254.169.254',
    '172.31.0.1',
    '192.168.1.1',
    '0.0.0.0',
    '224.0.0.1',
    '255.255.255.255',
    '::1',
    '::',
    'fe80::1',
    'fd00::1',
    '::ffff:127.0.0.1',
    '::127.0.0.1',
    '::ffff:0:127.0.0.1',
    '64:ff9b::7f00:1',
    '64:ff9b:1::7f00:1',
    'fd00:ec2::254',
    '100.100.100.200',
    '168.63.129.16',
    '192.0.0.192',
    'ff02::1',
    '2001:db8::1',
    '5f00::1',
    '2002:7f00:1::',
    '2001:0:7f00::1',
    'localhost',
    '',
  ].map((address): [string, boolean] => [address, false]),
];

test.each(addresses)('the address %s is of the public internet: %s', (address, isPublic) => {
  expect(isPublicAddress(address)).toBe(isPublic);
});

test('a webhook whose host resolves to this machine, or is an address of it, is not called', async () => {
  const message = { id: 'budget-1', timestampSecs: 1, body: '{}' };
  const send = (url: string) => sendCustomerWebhook({ url, secret: 'x' }, message, isPublicAddress);
  expect(await send('https://127.0.0.1:9/')).toEqual({ kind: 'failed', cause: 'address_not_public' });
  expect(await send('https://[::1]:9/')).toEqual({ kind: 'failed', cause: 'address_not_public' });
  expect(await send('https://localhost:9/')).toMatchObject({ kind: 'failed' });
  const error = await new Promise((resolve) => guardedLookup(isPublicAddress)('localhost', {}, resolve));
  expect(String(error)).toContain('may not be called');
});

const publicIpv4 = Buffer.from([93, 184, 215, 14]);
/** By name and type of the question: 1 for IPv4, 28 for IPv6. */
const zone: Readonly<Record<string, Buffer>> = {
  'public.example 1': publicIpv4,
  'inside.example 1': Buffer.from([10, 0, 0, 1]),
  'mixed.example 1': publicIpv4,
  'mixed.example 28': Buffer.from([...Array<number>(15).fill(0), 1]),
};

/** A name server of one test, which never answers questions about `silent.example`. */
async function nameServer(
  answers = (name: string, type: number) => zone[`${name} ${type}`],
): Promise<promises.Resolver> {
  const socket = createSocket('udp4');
  socket.on('message', (question, { port, address }) => {
    const end = question.indexOf(0, 12);
    const labels: string[] = [];
    for (let at = 12; at < end; at += (question[at] ?? 0) + 1)
      labels.push(question.toString('latin1', at + 1, at + 1 + (question[at] ?? 0)));
    const name = labels.join('.').toLowerCase();
    if (name === 'silent.example') return;
    const type = question.readUInt16BE(end + 1);
    const found = answers(name, type);
    const head = Buffer.from([0x81, 0x80, 0, 1, 0, found ? 1 : 0, 0, 0, 0, 0]);
    const record = found ? [Buffer.from([0xc0, 12, 0, type, 0, 1, 0, 0, 0, 0, 0, found.length]), found] : [];
    socket.send(
      Buffer.concat([question.subarray(0, 2), head, question.subarray(12, end + 5), ...record]),
      port,
      address,
    );
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  const names = new promises.Resolver({ timeout: 10_000, tries: 1 });
  names.setServers([`127.0.0.1:${socket.address().port}`]);
  onTestFinished(() => {
    names.cancel();
    socket.close();
  });
  return names;
}

test('a name is called only at its checked addresses, and one that any inner address has is not', async () => {
  const lookUp = guardedLookup(isPublicAddress, await nameServer());
  const answer = (name: string) =>
    new Promise<string | LookupAddress[]>((resolve) =>
      lookUp(name, { all: true }, (error, found) => resolve(error ? error.message : found)),
    );
  expect(await answer('public.example')).toEqual([{ address: '93.184.215.14', family: 4 }]);
  expect(await answer('inside.example')).toContain('may not be called');
  expect(await answer('mixed.example')).toContain('may not be called');
  expect(await answer('none.example')).toContain('no address');
});

test('name servers that never answer hold up no other look-up of this process', async () => {
  const lookUp = guardedLookup(isPublicAddress, await nameServer());
  let ended = 0;
  for (let n = 0; n < 16; n++) lookUp('silent.example', { all: true }, () => ended++);
  expect(await promises.lookup('localhost')).toMatchObject({ address: expect.any(String) });
  expect(ended).toBe(0);
});

test('a name that resolves to a private address after it was checked is not called there', async () => {
  const called: string[] = [];
  const listen = async (host: string, port = 0) => {
    const server = createServer((_, response) => {
      called.push(host);
      response.writeHead(204).end();
    }).listen(port, host);
    await once(server, 'listening');
    onTestFinished(() => void server.close());
    return (server.address() as AddressInfo).port;
  };
  const port = await listen('127.0.0.1');
  await listen('127.0.0.2', port);
  // the first address stands for a public one, the second for a private one
  let asked = 0;
  const names = await nameServer((_, type) => (type === 1 ? Buffer.from([127, 0, 0, ++asked]) : undefined));
  const send = () =>
    sendCustomerWebhook(
      { url: `http://rebinding.example:${port}/`, secret: 'x' },
      { id: 'callback-1', timestampSecs: 1, body: '{}' },
      (address) => address === '127.0.0.1',
      names,
    );
  expect(await send()).toEqual({ kind: 'delivered' });
  expect(await send()).toMatchObject({ kind: 'failed' });
  expect([asked, called]).toEqual([2, ['127.0.0.1']]);
});

test('no customer on the gateway’s own machine is called, unless the operator allows it, then also without https', () => {
  for (const url of ['http://127.0.0.1:80/', 'https://localhost/', 'https://[::1]/']) {
    expect(customerUrl(url, false)).toBeUndefined();
    expect(customerUrl(url, true)?.href).toBe(url.replace(':80', ''));
  }
  expect(customerAddresses(false)('127.0.0.1')).toBe(false);
  expect(customerAddresses(true)('127.0.0.1')).toBe(true);
  for (const withLoopback of [false, true]) {
    expect(customerUrl('http://hooks.example/', withLoopback)).toBeUndefined();
    expect(customerUrl('https://hooks.example', withLoopback)?.href).toBe('https://hooks.example/');
    expect(customerAddresses(withLoopback)('10.0.0.1')).toBe(false);
  }
});

test.each([
  'https://0.0.0.0/',
  'https://[::]/',
  'https://[::ffff:127.0.0.1]/',
  'https://[64:ff9b::10.0.0.1]/',
  'https://2130706433/',
  'https://0x7f000001/',
  'https://0x7f.1/',
  'https://0177.0.0.1/',
  'https://127.1/',
  'https://127.0.0.1./',
  'https://localhost./',
  'https://api.localhost/',
  'https://LOCALHOST/',
  'https://１２７.0.0.1/',
  'https://①27.0.0.1/',
  'https://169.254.169.254/latest/',
  'https://[fd00:ec2::254]/',
  'https://user@hooks.example/',
  'https://user:secret@hooks.example/',
  'https://hooks.example@127.0.0.1/',
  'http://93.184.215.14/',
  'ftp://hooks.example/',
  'https://',
  `https://hooks.example/${'x'.repeat(2_000)}`,
])('no customer can name %s', (url) => {
  expect(customerUrl(url, false)).toBeUndefined();
});

test('no redirect of a receiver is followed, and its message is not delivered', async () => {
  const called: string[] = [];
  const server = createServer((request, response) => {
    called.push(request.url ?? '');
    response.writeHead(307, { location: '/inside' }).end();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/outside`;
  const message = { id: 'callback-1', timestampSecs: 1, body: '{}' };
  expect(await sendCustomerWebhook({ url, secret: 'x' }, message, customerAddresses(true))).toEqual({
    kind: 'failed',
    cause: 'status_307',
  });
  expect(called).toEqual(['/outside']);
});
