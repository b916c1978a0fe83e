import { expect, test } from 'vitest';
import { useChain } from '../../support/devnet.ts';
import { payAtOnce } from './paid-flow-support.ts';

const chain = useChain();

test('two hundred simultaneous different payments are two hundred transfers and calls in a sound ledger', async () => {
  expect(await payAtOnce(chain, 200)).toBe(200);
});
