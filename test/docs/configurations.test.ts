import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { pages, root } from '../support/pages.ts';

/** The languages of blocks that configure programs of others, each with its number on its page. */
const languages: ReadonlySet<string> = new Set(['conf', 'yaml', 'yml', 'nginx', 'ini', 'cfg', 'json', 'xml']);

/** Which test gives the configuration to its own program. */
const checkedBy: Readonly<Record<string, string>> = {
  'docs/operations/high-availability.md conf 1': 'test/ha/page-files.ts',
  'docs/operations/high-availability.md conf 2': 'test/ha/page-files.ts',
  'docs/operations/high-availability.md yaml 1': 'test/ha/page-files.ts',
  'docs/operations/tls.md conf 1': 'test/operations/tls.test.ts',
  'docs/operations/tls.md nginx 1': 'test/operations/tls.test.ts',
  'docs/operations/tls.md yaml 1': 'test/operations/tls.test.ts',
  'docs/operations/haproxy.cfg': 'test/operations/tls.test.ts',
  'docs/operations/prometheus-rules.yml': 'test/operations/prometheus-rules.test.ts',
  'docs/operations/grafana-dashboard.json': 'test/operations/grafana-dashboard.test.ts',
};

const blocks = pages.flatMap(({ file, blocks: all }) =>
  [...languages].flatMap((language) =>
    all.filter((block) => block.language === language).map((_, at) => `${file} ${language} ${at + 1}`),
  ),
);
const files = globSync('docs/**/*.{cfg,conf,yml,yaml,json,ini}', { cwd: root });

test('every configuration of another program on a page is given to that program by a test', () => {
  expect([...blocks, ...files].toSorted()).toEqual(Object.keys(checkedBy).toSorted());
});

test.each(Object.entries(checkedBy))('the test of %s, %s, reads it from the page', (configuration, file) => {
  const [page = ''] = configuration.split(' ');
  expect(readFileSync(path.join(root, file), 'utf8')).toContain(path.basename(page));
});
