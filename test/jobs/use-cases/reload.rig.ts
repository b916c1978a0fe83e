import { expect, test } from 'vitest';
import { useChain } from '../../support/devnet.ts';
import { reloadUnderLoad } from './reload-support.ts';

const chain = useChain();

test('a thousand reloads under load: no request sees a mixed configuration', async () => {
  expect(await reloadUnderLoad(chain, 1_000, 8)).toBeGreaterThanOrEqual(1_000);
});
