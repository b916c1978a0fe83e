import { expect, test } from 'vitest';
import { useChain } from '../../../support/devnet.ts';
import { reconcileMonth } from './month.ts';

const chain = useChain();

test('of a month of 60 payments over two tokens exactly what was planted is found, each in its class', async () => {
  const { planted, found } = await reconcileMonth(chain, 60);
  expect(found).toEqual(planted);
});
