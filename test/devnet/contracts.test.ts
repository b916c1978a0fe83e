import { expect, test } from 'vitest';
import { compileContracts, storedArtifacts } from '../../scripts/compile-contracts.ts';

test('the committed artifacts are the compiled contracts', () => {
  expect(JSON.parse(compileContracts())).toEqual(JSON.parse(storedArtifacts()));
});
