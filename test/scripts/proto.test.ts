import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { generate, generatedFile } from '../../scripts/proto.ts';

test('the generated code of the pricing service is what proto/ describes', () => {
  expect(generate(), 'run `npm run proto`').toBe(readFileSync(generatedFile, 'utf8'));
});
