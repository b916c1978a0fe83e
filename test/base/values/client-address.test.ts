import { expect, test } from 'vitest';
import { clientOf } from '../../../src/base/values/client-address.ts';

test.each([
  ['203.0.113.7', 'ip:203.0.113.7'],
  ['203.0.113.7:4711', 'ip:203.0.113.7'],
  ['::ffff:203.0.113.7', 'ip:203.0.113.7'],
  ['[::ffff:203.0.113.7]:4711', 'ip:203.0.113.7'],
  ['2001:db8:1:2:3:4:5:6', 'ip:2001:db8:1:2:0:0:0:0/64'],
  ['2001:DB8:1:2::9', 'ip:2001:db8:1:2:0:0:0:0/64'],
  ['[2001:db8:1:2::9]:80', 'ip:2001:db8:1:2:0:0:0:0/64'],
  ['fe80::1%eth0', 'ip:fe80:0:0:0:0:0:0:0/64'],
])('the client with the address %s is counted as %s', (address, client) => {
  expect(clientOf(address, 64)).toBe(client);
});

test('every text other than an address counts as one client, however it is spelt', () => {
  for (const text of [
    '',
    'unknown',
    'x:y',
    '999.1.1.1',
    '1.2.3',
    '127.1',
    '0x7f.0.0.1',
    '010.0.0.1',
    '[',
    '[::1',
    '::1]',
    ':::',
    '1:2:3:4:5:6:7:8:9',
    '2001:db8::/32',
    '::1#',
    '1.2.3.4:port',
    '203.0.113.7, 203.0.113.8',
    'a'.repeat(60_000),
  ])
    expect([text, clientOf(text, 64)]).toEqual([text, 'ip:malformed']);
});
