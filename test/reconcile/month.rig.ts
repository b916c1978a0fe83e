import { test } from 'vitest';
import { useChain } from '../support/devnet.ts';
import { expectPlantedFound } from './month.ts';

const chain = useChain();

test('of a month of 500 payments over two tokens exactly what was planted is found, each in its class', async () => {
  await expectPlantedFound(chain, 500);
});
