import { expect, test } from 'vitest';
import { compileContracts, storedArtifacts } from '../../scripts/compile-contracts.ts';

test('the artifacts are what the contracts compile to', () => {
  expect(JSON.parse(compileContracts())).toEqual(JSON.parse(storedArtifacts()));
});
