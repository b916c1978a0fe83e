import { test } from 'vitest';
import { useChain } from '../support/devnet.ts';
import { reloadUnderLoad } from './reload-support.ts';

const chain = useChain();

test('a thousand reloads under load: no request sees a mixed configuration', () =>
  reloadUnderLoad(chain, 1_000, 8));
