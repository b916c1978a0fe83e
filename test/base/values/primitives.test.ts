import { getAddress } from 'viem';
import { describe, expect, test } from 'vitest';
import { chainIdOf, isHex32, parseAddress } from '../../../src/base/values/primitives.ts';
import { bytesOf } from '../../payments/rules/support.ts';

describe('an address', () => {
  const address = bytesOf('a1', 20);

  test.each([
    ['lower case', address],
    ['upper case', `0x${'A1'.repeat(20)}`],
    ['its checksum', getAddress(address)],
  ])('in %s is held in lower case', (_, text) => {
    expect(parseAddress(text)).toBe(address);
  });

  test.each([
    ['nothing', ''],
    ['only a prefix', '0x'],
    ['19 bytes', bytesOf('a1', 19)],
    ['21 bytes', bytesOf('a1', 21)],
    ['half a byte too few', address.slice(0, -1)],
    ['no prefix', address.slice(2)],
    ['letters that are no hex', bytesOf('g1', 20)],
    ['a space before', ` ${address}`],
    ['a line break after', `${address}\n`],
    ['a name', 'payee.eth'],
  ])('is not read from %s', (_, text) => {
    expect(parseAddress(text)).toBeUndefined();
  });
});

describe('a hash', () => {
  test.each([
    ['32 bytes in lower case', bytesOf('a1', 32), true],
    ['upper case', `0x${'A1'.repeat(32)}`, false],
    ['31 bytes', bytesOf('a1', 31), false],
    ['33 bytes', bytesOf('a1', 33), false],
    ['no prefix', 'a1'.repeat(32), false],
    ['a line break after', `${bytesOf('a1', 32)}\n`, false],
  ])('of %s: %s', (_, text, is) => {
    expect(isHex32(text)).toBe(is);
  });
});

describe('the chain id of a network', () => {
  test.each([
    ['eip155:1', 1],
    ['eip155:84532', 84_532],
    ['eip155:9007199254740991', Number.MAX_SAFE_INTEGER],
  ])('%s is %d', (network, chainId) => {
    expect(chainIdOf(network)).toBe(chainId);
  });

  test.each([
    'eip155:9007199254740992',
    'eip155:10000000000000000',
    'eip155:0',
    'eip155:01',
    'eip155:-1',
    'eip155:0x1',
    'eip155:1.0',
    'eip155: 1',
    'eip155:1\n',
    'eip155:١',
    'eip155:',
    'eip155',
    'EIP155:1',
    'xeip155:1',
    'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp',
    'base-sepolia',
    '',
  ])('is not read from %j', (network) => {
    expect(chainIdOf(network)).toBeUndefined();
  });
});
