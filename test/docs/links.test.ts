import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { wings } from '../../oxlint.config.ts';
import { type Command, commands } from '../../src/app/cli/commands.ts';
import { type Page, pages, proseOf, readPage, root } from '../support/pages.ts';

/** As GitHub makes them. */
function anchorsOf({ text }: Page): string[] {
  return [...text.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );
}

function brokenLinks(page: Page): string[] {
  const targets = [...proseOf(page).matchAll(/\]\((?!https?:)([^)]+)\)/g)].map(([, target = '']) => target);
  return targets.filter((target) => {
    const [file = '', anchor] = target.split('#');
    const place = file === '' ? page.file : path.join(path.dirname(page.file), file);
    if (!existsSync(path.join(root, place))) return true;
    return anchor !== undefined && !anchorsOf(readPage(place)).includes(anchor);
  });
}

const familiar = ['src', 'test', 'docs', 'config', 'migrations', 'examples', 'bench', 'scripts', 'deploy'];

/** Paths of this repository as a page names them: whole, below src/, or beside the page. */
function missingPaths(page: Page): string[] {
  const text = page.text.replaceAll(/\]\([^)]*\)/g, '');
  const whole = new RegExp(String.raw`(?<![\w./-])(?:${familiar.join('|')})/[\w./-]*\w`, 'g');
  const files = /(?<![\w./:-])[a-z][\w-]*(?:\/[\w-]+)+\.(?:ts|sql|toml|json|md|py)\b/g;
  const named = [...text.matchAll(whole), ...text.matchAll(files)].map(([name]) => name);
  const places = (name: string) => [name, `src/${name}`, path.join(path.dirname(page.file), name)];
  return named.filter((name) => !places(name).some((place) => existsSync(path.join(root, place))));
}

/** What a page calls: `tollbook NAME …`, in prose and in commands, with its options. */
function calls({ text }: Page): { readonly call: string; readonly options: readonly string[] }[] {
  const called =
    /(?<=^|[`$(|;& ])(?:npm run (?:-s )?tollbook --|tollbook) +([a-z][^`|;&>)\n]*(?:\\\n[^`|;&>)\n]*)*)/gm;
  return [...text.matchAll(called)].map(([, call = '']) => ({
    call,
    options: [...call.matchAll(/(?<= )--[a-z][a-z-]*/g)].map(([option]) => option),
  }));
}

const commandOf = (call: string) => {
  const [first = '', second = ''] = call.trim().split(/\s+/);
  return commands[`${first} ${second}`] ?? commands[first];
};

const takes = ({ options = {} }: Command, option: string) =>
  option === '--help' || Object.hasOwn(options, option.slice(2));

describe.each(pages)('$file', (page) => {
  test('links lead to pages and headings that exist', () => expect(brokenLinks(page)).toEqual([]));

  test('paths that it names exist', () => expect(missingPaths(page)).toEqual([]));

  test('every fenced block is of a language that a test runs, loads or checks, or is an output', () => {
    const languages = new Set(page.blocks.map(({ language }) => language));
    // test/ha starts its servers with the yaml and conf files of their page, test/operations those of TLS, test/docs/routes.test.ts runs Python and Go
    const known = ['sh', 'text', 'toml', 'js', 'python', 'go', 'sql', 'yaml', 'conf', 'nginx'];
    expect([...languages].filter((language) => !known.includes(language))).toEqual([]);
    const outputs = page.blocks.filter(({ language }) => language === 'text');
    const commandLines = /^(?:\$ |npm |npx |node |tollbook |curl |docker |kill |export )/m;
    expect(outputs.filter(({ text }) => commandLines.test(text))).toEqual([]);
  });
});

/** Prose that begins with the product's name is not a command: only backticks and shell blocks call one. */
test('commands and options on the pages exist', () => {
  const unknown = pages.flatMap((page) => {
    const code = page.blocks.filter(({ language }) => language === 'sh').map(({ text }) => text);
    const inline = [...proseOf(page).matchAll(/`([^`]+)`/g)].map(([, text = '']) => text);
    return calls({ ...page, text: [...code, ...inline].join('\n') })
      .filter(({ call, options }) => {
        const command = commandOf(call);
        return !command || options.some((option) => !takes(command, option));
      })
      .map(({ call }) => `${page.file}: tollbook ${call}`);
  });
  expect(unknown).toEqual([]);
});

test('npm scripts on the pages exist', () => {
  const { scripts } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')) as {
    scripts: object;
  };
  const unknown = pages.flatMap(({ file, text }) =>
    [...text.matchAll(/npm run (?:-s )?([a-z-]+)/g)].flatMap(([call, name = '']) =>
      Object.hasOwn(scripts, name) ? [] : [`${file}: ${call}`],
    ),
  );
  expect(unknown).toEqual([]);
});

test('docs/README.md leads to every page of docs/', () => {
  const { text } = readPage('docs/README.md');
  const names = readdirSync(path.join(root, 'docs')).filter((name) => name !== 'README.md');
  expect(names.filter((name) => !text.includes(`](${name}`) && !text.includes(`](${name}/)`))).toEqual([]);
});

test('ARCHITECTURE.md draws every directory of src/, each wing below those that it imports from', () => {
  const [, tree = ''] = /^```text\nsrc\/\n([^]*?)^```/m.exec(readPage('ARCHITECTURE.md').text) ?? [];
  const drawn = [...tree.matchAll(/^ {2}([a-z-]+)\//gm)].map(([, name = '']) => name);
  const directories = readdirSync(path.join(root, 'src')).filter((name) => !name.endsWith('.ts'));
  expect(drawn.toSorted()).toEqual(directories.toSorted());
  expect(drawn.filter((name) => name !== 'runner')).toEqual(wings);
});

test('README.md has at most 200 lines', () => {
  expect(readPage('README.md').text.split('\n').length).toBeLessThanOrEqual(200);
});
