import { execFile } from 'node:child_process';
import { globSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { parse, stringify, type TomlTable } from 'smol-toml';
import { describe, expect, test } from 'vitest';
import { parseConfig } from '../../src/base/config/load.ts';
import { pages, root } from '../support/pages.ts';
import { temporaryFolder } from '../support/program.ts';

const snippets = (language: string) =>
  pages.flatMap(({ file, blocks }) =>
    blocks
      .filter((block) => block.language === language)
      .map(({ text, line }) => ({ text, name: `${file}:${line}` })),
  );

/** 64 hexadecimal digits: a seed, and longer than any secret must be. With 0x they are a private key. */
const secret = '1f'.repeat(32);

/** A value that a secret of this key may have. */
function secretOf(key: string, at: number): string {
  // of two that one key names, each is another
  if (at > 0) return '2e'.repeat(32);
  if (key === 'operator_key') return `0x${secret}`;
  if (key === 'headers') return `x-key=${secret}`;
  if (key === 'smtp_url') return `smtps://user:${secret}@mail.example:465`;
  return key.endsWith('_url') ? `https://hooks.example/${secret}` : secret;
}

/** Tables are merged; everything else of a snippet replaces what the example has. Mails go to a server or into a folder; there is one facilitator or a list. */
function merge(example: TomlTable, snippet: TomlTable): TomlTable {
  const merged = { ...example };
  if ('smtp_url' in snippet) delete merged['mail_dir'];
  if ('facilitators' in snippet)
    for (const key of ['facilitator_url', 'facilitator_token']) delete merged[key];
  for (const [key, value] of Object.entries(snippet)) {
    const present = merged[key];
    merged[key] = isTable(value) && isTable(present) ? merge(present, value) : value;
  }
  return merged;
}

function isTable(value: unknown): value is TomlTable {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date);
}

describe('configuration on the pages', () => {
  const example = parse(readFileSync(path.join(root, 'test/docs/base.toml'), 'utf8'));

  test.each(snippets('toml'))('$name loads, over a gateway with every feature', async ({ text }) => {
    const whole = stringify(merge(example, parse(text)));
    const variables = [...whole.matchAll(/^(\w+) = (.*"env:.*)$/gm)].flatMap(([, key = '', value = '']) =>
      [...value.matchAll(/"env:(\w+)"/g)].map(([, name = ''], at) => [name, secretOf(key, at)] as const),
    );
    const source = { file: 'gateway.toml', env: Object.fromEntries(variables), readFile: async () => '{}' };
    const { warnings } = await parseConfig(whole, source);
    expect(warnings).toEqual([]);
  });
});

test('the programs on the pages pass the type checker', async () => {
  const folder = temporaryFolder();
  symlinkSync(path.join(root, 'node_modules'), path.join(folder, 'node_modules'));
  mkdirSync(path.join(folder, 'pages'));
  const programs = snippets('js');
  for (const { name, text } of programs)
    writeFileSync(path.join(folder, 'pages', `${name.replaceAll(/\W/g, '-')}.mjs`), text);
  // the pages say which variables must be set
  const variables = [
    'DATABASE_URL',
    'FACILITATOR_KEY',
    'GATEWAY_URL',
    'KEY',
    'NATS_URL',
    'PORT',
    'RUNNER_TOKEN',
  ];
  const declared = variables.map((name) => `${name}: string;`).join(' ');
  writeFileSync(
    path.join(folder, 'pages/environment.d.ts'),
    `declare namespace NodeJS { interface ProcessEnv { ${declared} } }`,
  );
  const options = {
    extends: path.join(root, 'tsconfig.json'),
    compilerOptions: {
      allowJs: true,
      checkJs: true,
      // a program on a page states no types, and need not use all that it is given
      noImplicitAny: false,
      noUnusedLocals: false,
      noUnusedParameters: false,
      noPropertyAccessFromIndexSignature: false,
      typeRoots: [path.join(root, 'node_modules/@types')],
      paths: {
        tollbook: [path.join(root, 'src/main.ts')],
        'tollbook/pricing': [path.join(root, 'src/app/pricing/index.ts')],
        '@tollbook/runner': [path.join(root, 'src/runner/index.ts')],
      },
    },
    include: ['pages'],
  };
  writeFileSync(path.join(folder, 'tsconfig.json'), JSON.stringify(options));
  const compiler = path.join(root, 'node_modules/.bin/tsc');
  const { stdout } = await promisify(execFile)(compiler, ['-p', folder]).catch(
    (error: { stdout: string }) => error,
  );
  expect(stdout).toBe('');
  expect(globSync('*.mjs', { cwd: path.join(folder, 'pages') })).toHaveLength(programs.length);
});
