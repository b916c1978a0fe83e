import { expect, test } from 'vitest';
import { guardedLookup, isPublicAddress } from '../../../src/peers/http/public-address.ts';
import { sendCustomerWebhook } from '../../../src/peers/http/customer-webhook.ts';

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
    '64:ff9b::7f00:1',
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
