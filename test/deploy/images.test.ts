import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { root } from '../support/pages.ts';

/** Built from this repository by its operator. */
const own = 'tollbook';

function readText(file: string): string {
  return readFileSync(path.join(root, file), 'utf8');
}

interface ImageUse {
  readonly file: string;
  readonly image: string;
}

/** Where a file of the repository names an image that a container engine pulls. */
function imagesIn(file: string): ImageUse[] {
  const text = readText(file);
  const isDockerfile = path.basename(file).startsWith('Dockerfile');
  const stages = [...text.matchAll(/^FROM \S+ AS (\S+)/gm)].map(([, name]) => name);
  const patterns = isDockerfile
    ? [/^FROM (\S+)/gm, /^COPY --from=(\S+)/gm]
    : [
        /^[\s-]*image:\s*['"]?([\w./:@${}-]+)/gm,
        /\bdocker (?:run|pull|create)\b(?: -\S+(?: \w+=\S+)?)* ([\w./-]+(?::\S+|@\S+))/g,
        /'([a-z][\w./-]*:\d[\w.-]*(?:@sha256:[0-9a-f]*)?)';\n\nasync function startContainer/g,
      ];
  return patterns.flatMap((pattern) =>
    [...text.matchAll(pattern)].flatMap(([, image = '']) =>
      image === own || stages.includes(image) ? [] : { file, image },
    ),
  );
}

const files = execFileSync('git', ['ls-files'], { cwd: root, encoding: 'utf8' })
  .split('\n')
  .filter(
    (file) =>
      /(?:^|\/)Dockerfile[^/]*$|\.(?:ya?ml|md|sh)$/.test(file) || file === 'test/support/postgres-server.ts',
  );
const used = files.flatMap(imagesIn);

test('every image of others is named by its exact version and the digest of its manifest list', () => {
  expect(used.map(({ file }) => file).toSorted()).toEqual([
    'Dockerfile',
    'docker-compose.yml',
    'test/support/postgres-server.ts',
  ]);
  const unpinned = used.filter(({ image }) => !/^[\w./-]+:\d+\.\d[\w.-]*@sha256:[0-9a-f]{64}$/.test(image));
  expect(unpinned).toEqual([]);
});

test('an image has the same version and digest everywhere, and the page says where its digest is from', () => {
  const images = [...new Set(used.map(({ image }) => image))].toSorted();
  expect(images.map((image) => image.split(':')[0])).toEqual(['node', 'postgres']);
  const table = [...readText('docs/supply-chain.md').matchAll(/^\| `([^`]+@sha256:[^`]+)` \| (.+) \|$/gm)];
  expect(table.map(([, image]) => image)).toEqual(images);
  for (const [, image = '', source = ''] of table) {
    const [name = '', version = ''] = image.split('@')[0]?.split(':') ?? [];
    expect(source).toContain(`repos/${name}/remote/${version}.md`);
    expect(source).toMatch(/read on \d+ \w+ \d{4}$/);
  }
});
