import { EVM_NETWORK_CHAIN_ID_MAP } from '@x402/evm/v1';
import { expect, test } from 'vitest';
import { networkOfV1, v1NameOf } from '../../../src/payments/rules/x402-v1.ts';

test('every network that the official version 1 client names has this name here, both ways', () => {
  const official = Object.entries(EVM_NETWORK_CHAIN_ID_MAP);
  expect(official.length).toBeGreaterThan(20);
  expect(official.map(([name]) => networkOfV1(name))).toEqual(official.map(([, id]) => `eip155:${id}`));
  expect(official.map(([, id]) => v1NameOf(`eip155:${id}`))).toEqual(official.map(([name]) => name));
});

test('version 1 has no name for other networks', () => {
  expect(v1NameOf('eip155:31337')).toBeUndefined();
  expect(networkOfV1('toString')).toBeUndefined();
});
