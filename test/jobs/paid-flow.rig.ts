import { test } from 'vitest';
import { useChain } from '../support/devnet.ts';
import { manyPaymentsAtOnce } from './paid-flow-support.ts';

const chain = useChain();

test('two hundred different payments at once are two hundred transfers and calls in a sound ledger', () =>
  manyPaymentsAtOnce(chain, 200));
