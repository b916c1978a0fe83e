import fc from 'fast-check';
import { hashMessage, toHex } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { createSiweMessage } from 'viem/siwe';
import { describe, expect, it, test } from 'vitest';
import type { Address } from '../../../src/base/values/primitives.ts';
import {
  parseSiweMessage,
  recoverSiweSigner,
  siweDigest,
  siweRefusal,
  type SiweExpectation,
  type SiweMessage,
  siweMessage,
} from '../../../src/accounts/rules/siwe.ts';
import { propertyRuns } from '../../support/property-runs.ts';

const account = privateKeyToAccount(`0x${'17'.repeat(32)}`);
const address = account.address.toLowerCase() as Address;
const plain: SiweMessage = {
  domain: 'gateway.example',
  address,
  uri: 'https://gateway.example/login',
  chainId: 8_453,
  nonce: 'aB3dE6gH9',
  issuedAt: '2026-11-20T09:00:00.000Z',
};
const full: SiweMessage = {
  ...plain,
  scheme: 'https',
  statement: 'Sign in to the gateway (it costs nothing).',
  expirationTime: '2026-11-20T10:00:00+01:00',
  notBefore: '2026-11-20T08:59:00Z',
  requestId: 'a%20b',
  resources: ['https://gateway.example/terms', 'ipfs://bafy/1'],
};

const letters = 'abcXYZ0189'.split('');
const textOf = (chars: string[], minLength: number, maxLength = 20) =>
  fc.array(fc.constantFrom(...chars), { minLength, maxLength }).map((list) => list.join(''));
const time = fc
  .date({ min: new Date(0), max: new Date('9999-12-31T00:00:00Z'), noInvalidDate: true })
  .map((date) => date.toISOString());
const anyUri = textOf([...letters, '/', '.', '-', '?', '=', '%20'], 1).map(
  (path) => `https://h.example/${path}`,
);
const anyMessage: fc.Arbitrary<SiweMessage> = fc.record(
  {
    scheme: fc.constantFrom('https', 'http', 'chrome-extension'),
    domain: fc.constantFrom('a.example', 'localhost:8402', '[::1]:80', 'A.Example:1'),
    address: fc.uint8Array({ minLength: 20, maxLength: 20 }).map((bytes): Address => toHex(bytes)),
    statement: textOf([...letters, ' ', '.', ':', '/', "'"], 1, 60),
    uri: anyUri,
    chainId: fc.integer({ min: 1 }),
    nonce: textOf(letters, 8, 40),
    issuedAt: time,
    expirationTime: time,
    notBefore: time,
    requestId: textOf([...letters, ':', '@', '%2F'], 0),
    resources: fc.array(anyUri, { maxLength: 4 }),
  },
  { requiredKeys: ['domain', 'address', 'uri', 'chainId', 'nonce', 'issuedAt'], noNullPrototype: true },
);

test('a sign-in message is parsed back to the fields it was built from', () => {
  fc.assert(
    fc.property(anyMessage, (message) => {
      expect(parseSiweMessage(siweMessage(message))).toEqual(message);
    }),
  );
});

test('every edit of a sign-in message is refused or changes a field', () => {
  const edit = fc.record({
    at: fc.nat(),
    by: fc.oneof(fc.string({ minLength: 1, maxLength: 1 }), fc.constantFrom('\n', ' ', '0', 'a', 'Z', '')),
    removes: fc.boolean(),
  });
  fc.assert(
    fc.property(anyMessage, edit, (message, { at: index, by, removes }) => {
      const text = siweMessage(message);
      const place = index % text.length;
      const edited = text.slice(0, place) + by + text.slice(place + (removes ? 1 : 0));
      fc.pre(edited !== text);
      expect(parseSiweMessage(edited)).not.toEqual(message);
    }),
    propertyRuns(1_000),
  );
});

test("a sign-in message is the same text as viem's", () => {
  const expirationTime = '2026-11-20T09:10:00.000Z';
  const { domain, uri, chainId, nonce, issuedAt } = plain;
  const text = createSiweMessage({
    domain,
    uri,
    chainId,
    nonce,
    address: account.address,
    version: '1',
    statement: 'Hello.',
    issuedAt: new Date(issuedAt),
    expirationTime: new Date(expirationTime),
  });
  expect(siweMessage({ ...plain, statement: 'Hello.', expirationTime })).toBe(text);
});

describe('a sign-in message is refused', () => {
  const text = siweMessage(full);
  const edits: Record<string, string> = {
    'in lower-case address': text.replace(account.address, address),
    'with one letter of the address in another case': text.replace(
      /(0x[^A-F]*)([A-F])/,
      (_, before: string, letter: string) => before + letter.toLowerCase(),
    ),
    'of version 2': text.replace('Version: 1', 'Version: 2'),
    'of version 10': text.replace('Version: 1', 'Version: 10'),
    'with a nonce of seven': text.replace(plain.nonce, 'aB3dE6g'),
    'with a nonce with a dash': text.replace(plain.nonce, 'aB3dE6gH-'),
    'without a nonce': text.replace(`\nNonce: ${plain.nonce}`, ''),
    'without a time of issue': text.replace(/\nIssued At: .*/, ''),
    'without a URI': text.replace(/\nURI: .*/, ''),
    'with a URI that is none': text.replace(plain.uri, 'gateway.example/login'),
    'with a URI with a blank': text.replace(plain.uri, 'https://gateway.example/a b'),
    'with a user before the domain': text.replace(
      'https://gateway.example wants',
      'https://a@gateway.example wants',
    ),
    'with chain id 0': text.replace('Chain ID: 8453', 'Chain ID: 0'),
    'with chain id 08453': text.replace('Chain ID: 8453', 'Chain ID: 08453'),
    'with a chain id beyond what counts': text.replace('Chain ID: 8453', 'Chain ID: 9999999999999999'),
    'issued on a 30th of February': text.replace('2026-11-20T09:00:00.000Z', '2026-02-30T09:00:00.000Z'),
    'issued in a 24th hour': text.replace('2026-11-20T09:00:00.000Z', '2026-11-20T24:00:00.000Z'),
    'issued in no time zone': text.replace('2026-11-20T09:00:00.000Z', '2026-11-20T09:00:00.000'),
    'issued only on a date': text.replace('2026-11-20T09:00:00.000Z', '2026-11-20'),
    'with a statement of two lines': text.replace('Sign in', 'Sign\nin'),
    'with an emoji in its statement': text.replace('Sign in', 'Sign 🙂'),
    'with its fields in another order': text.replace(/(\nNot Before: .*)(\nRequest ID: .*)/, '$2$1'),
    'with a field twice': text.replace(/(\nNonce: .*)/, '$1$1'),
    'with Windows line ends': text.replaceAll('\n', '\r\n'),
    'with a line more': `${text}\n`,
    'with a blank in front': ` ${text}`,
    'that is endless': text.replace('- ipfs', `- https://a.example/${'a'.repeat(10_000)}\n- ipfs`),
    'with endless resources': `${text}${'\n- a:b'.repeat(63)}`,
    'that is empty': '',
  };
  it.each(Object.entries(edits))('%s', (_, edited) => {
    expect(edited).not.toBe(text);
    expect(parseSiweMessage(edited)).toBeUndefined();
  });
});

test('a sign-in message with a line break in a field cannot be built', () => {
  const smuggled = 'Hello\n\nURI: https://evil.example';
  expect(() => siweMessage({ ...plain, statement: smuggled })).toThrow(RangeError);
  expect(() => siweMessage({ ...plain, statement: '' })).toThrow(RangeError);
  expect(() => siweMessage({ ...plain, nonce: 'aB3dE6gH9\nIssued At: 2020-01-01T00:00:00Z' })).toThrow(
    RangeError,
  );
  expect(() => siweMessage({ ...plain, requestId: 'a\nResources:' })).toThrow(RangeError);
});

const at = (ms: number) => new Date(ms).toISOString();

describe('a sign-in message for this gateway', () => {
  const nowMs = Date.parse('2026-11-20T09:00:30Z');
  const expected: SiweExpectation = {
    domain: 'gateway.example',
    origin: 'https://gateway.example',
    chainIds: [1, 8_453],
    nowMs,
    maxAgeMs: 300_000,
    maxSkewMs: 30_000,
  };

  it('is accepted with the expected fields', () => {
    expect(siweRefusal(plain, expected)).toBeUndefined();
    expect(siweRefusal({ ...full, expirationTime: at(nowMs + 1) }, expected)).toBeUndefined();
  });

  const faults: [string, Partial<SiweMessage>, ReturnType<typeof siweRefusal>][] = [
    ['it is of another domain', { domain: 'evil.example' }, 'wrong_domain'],
    ['it is of a domain that ends like ours', { domain: 'evilgateway.example' }, 'wrong_domain'],
    ['it is of another port', { domain: 'gateway.example:444' }, 'wrong_domain'],
    ['it is of another scheme', { scheme: 'http' }, 'wrong_domain'],
    ['it is of another URI', { uri: 'https://evil.example/' }, 'wrong_uri'],
    [
      'it is of a URI with our name as its user',
      { uri: 'https://gateway.example@evil.example/' },
      'wrong_uri',
    ],
    ['it is of a URI without encryption', { uri: 'http://gateway.example/' }, 'wrong_uri'],
    ['it is of a URI inside another', { uri: 'blob:https://gateway.example/a-page' }, 'wrong_uri'],
    ['it is of a URI without its slashes', { uri: 'https:gateway.example' }, 'wrong_uri'],
    ['it is of another chain', { chainId: 5 }, 'wrong_chain'],
    ['it was issued too long ago', { issuedAt: at(nowMs - 300_001) }, 'too_old'],
    ['it was issued in the future', { issuedAt: at(nowMs + 30_001) }, 'from_the_future'],
    ['it expires at this moment', { expirationTime: at(nowMs) }, 'expired'],
    ['it has expired in its time zone', { expirationTime: '2026-11-20T10:00:29+01:00' }, 'expired'],
    ['it becomes valid one millisecond later', { notBefore: at(nowMs + 1) }, 'not_yet_valid'],
  ];
  it.each(faults)('is refused if %s', (_, change, fault) => {
    expect(siweRefusal({ ...plain, ...change }, expected)).toBe(fault);
  });

  it('is as old as its time zone says', () => {
    const hourEast = { ...plain, issuedAt: '2026-11-20T10:00:00.5+01:00' };
    expect(
      siweRefusal(hourEast, { ...expected, nowMs: Date.parse('2026-11-20T09:05:00.5Z') }),
    ).toBeUndefined();
    expect(siweRefusal(hourEast, { ...expected, nowMs: Date.parse('2026-11-20T09:05:00.501Z') })).toBe(
      'too_old',
    );
  });
});

test('the signer of a sign-in message is recovered offline, and only for the exact text', async () => {
  const text = siweMessage(plain);
  expect(toHex(siweDigest(text))).toBe(hashMessage(text));
  const signature = await account.signMessage({ message: text });
  expect(recoverSiweSigner(text, signature)).toBe(address);
  expect(recoverSiweSigner(text.replace('8453', '8454'), signature)).not.toBe(address);
  expect(recoverSiweSigner(text, signature.slice(0, -2))).toBeUndefined();
  expect(recoverSiweSigner(text, '0x')).toBeUndefined();
});
