import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { readPage, root } from '../support/pages.ts';

test('docs/operations/rotate-secrets.md has every secret that the configuration can name, and says which of them a reload replaces', () => {
  const declared = globSync('src/base/config/*.ts', { cwd: root }).flatMap((file) => {
    const source = readFileSync(path.join(root, file), 'utf8');
    return [...source.matchAll(/^ {2}(\w+): (secret|rotatingSecret)\b/gm)].map(
      ([, name = '', form = '']) => ({
        form,
        name,
        file: path.basename(file),
      }),
    );
  });
  expect(declared.length).toBeGreaterThan(12);
  const { text } = readPage('docs/operations/rotate-secrets.md');
  const [rotating = '', others = ''] = text.split('\n## Secrets without a second one\n');
  const part = (form: string): string => (form === 'rotatingSecret' ? rotating : others);
  const missing = declared.filter(({ form, name }) => !part(form).includes(`${name}\``));
  expect(missing).toEqual([]);
});
