import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { type Page, readPage, root } from '../support/pages.ts';

const checklists = readPage('docs/security-checklists.md');
const threats = readPage('docs/threat-model.md');

/** The first arguments of a file's calls of `test`, `it` and `describe`, with `.each` too, in their order; skipped ones are none. */
function titlesIn(source: string): string[] {
  const calls =
    /(?<=\b(?:test|it|describe)(?:\.(?!skip|todo)\w+)*|\))\(\s*(?<quote>['"`])(?<title>(?:\\.|(?!\k<quote>)[^\\])*)\k<quote>\s*,/g;
  return [...source.matchAll(calls)].map(({ groups }) => groups?.['title']?.replaceAll(/\\(.)/g, '$1') ?? '');
}

/** Whether a title is the one that a page names: the whole title, or its beginning followed by `…`. */
function isNamed(title: string, name: string): boolean {
  return name.endsWith('…') ? title.startsWith(name.slice(0, -1)) : title === name;
}

/** The tests that a page names, written `["title"](file)` or `["describe › title"](file)`, and that do not exist. A beginning that several titles have names none. */
function missingTests({ file, text }: Pick<Page, 'file' | 'text'>): string[] {
  return [...text.matchAll(/\["([^\]]+)"\]\(([^)]+)\)/g)].flatMap(([, name = '', target = '']) => {
    const titles = titlesIn(readFileSync(path.join(root, path.dirname(file), target), 'utf8'));
    let from = 0;
    const isMissing = name.split(' › ').some((part) => {
      const at = titles.findIndex((title, index) => index >= from && isNamed(title, part));
      from = at + 1;
      return at < 0 || (part.endsWith('…') && titles.filter((title) => isNamed(title, part)).length > 1);
    });
    return isMissing ? [`${target}: ${name}`] : [];
  });
}

test.each([readPage('README.md'), threats, checklists, readPage('docs/specification.md')])(
  'every test that $file names exists',
  (page) => {
    expect(missingTests(page)).toEqual([]);
    // a link to a test file has a title, so that the test can be looked for
    expect(page.text.match(/\[[^"\]][^\]]*\]\([^)]*\.(?:test|rig)\.ts\)/g)).toBeNull();
  },
);

const isFound = (title: string) =>
  missingTests({
    file: 'docs/threat-model.md',
    text: `["${title}"](../test/base/values/client-address.test.ts)`,
  }).length === 0;

test('a test is missing when its title changed, when it is skipped, or when its describe block has another title', () => {
  const source = `describe('one', () => { test("it's one", f); test.each([1])('each', f); test.skip('not run', f); });
    describe('two', () => { test('second', f); });`;
  expect(titlesIn(source)).toEqual(['one', "it's one", 'each', 'two', 'second']);
  const title = 'every text other than an address counts as one client, however it is spelt';
  expect([title, title.slice(1), `elsewhere › ${title}`].map(isFound)).toEqual([true, false, false]);
});

test('the beginning of a title names its test if only one test of the file begins so', () => {
  expect(['every text other than an address…', 'very text…', 'every text'].map(isFound)).toEqual([
    true,
    false,
    false,
  ]);
  expect(isFound('…')).toBe(false);
});

test('every party of the threat model has its worst, what bounds it, and at least one test', () => {
  const [, boundaries = ''] = /^## Trust boundaries$([^]*?)^## /m.exec(threats.text) ?? [];
  const parties = boundaries.split(/^### /m).slice(1);
  expect(parties).toHaveLength(15);
  for (const party of parties) expect(party).toMatch(/^\|.*\.(?:test|rig)\.ts\)/m);
});

/** The sections of each chapter of ASVS 5.0.0, from V1 on. */
const sectionsOf = [5, 4, 7, 4, 4, 8, 6, 4, 2, 7, 7, 3, 4, 3, 4, 5, 3];
const sections = sectionsOf.flatMap((count, chapter) =>
  Array.from({ length: count }, (_, section) => `V${chapter + 1}.${section + 1}`),
);
const risks = Array.from({ length: 10 }, (_, index) => `API${index + 1}`);

const rows = [...checklists.text.matchAll(/^\| (V\d+\.\d+|API\d+) .*\|$/gm)].map(([line, id = '']) => {
  const [, , state = '', where = '', tests = ''] = line.split(' | ').join('|').split('|');
  const [, status = '', gaps = ''] = /^(partly|not met)\. (.+)$/.exec(state.trim()) ?? ['', state.trim()];
  return { id, status, where: where.trim(), tests: tests.trim(), gaps };
});
const [, listed = ''] = /^Do not apply: ([^]+?)\n\n/m.exec(checklists.text) ?? [];
const doNotApply: readonly string[] = listed.match(/V\d+\.\d+/g) ?? [];

test('every section of ASVS has exactly one row, or is listed as one that does not apply; every entry of the API Top 10 has one row', () => {
  const applying = sections.filter((id) => !doNotApply.includes(id));
  expect(rows.map(({ id }) => id)).toEqual([...applying, ...risks]);
  expect(doNotApply).toEqual(sections.filter((id) => doNotApply.includes(id)));
});

test('a row says where the code is, and names what is not met exactly where its status says so', () => {
  const faults = rows.filter(({ id, status, where, gaps }) => {
    const requirement = id.startsWith('V') ? new RegExp(String.raw`(?<![\d.])${id.slice(1)}\.\d+`) : /\w/;
    if (where === '' || !['met', 'partly', 'not met'].includes(status)) return true;
    return status !== 'met' && !requirement.test(gaps);
  });
  expect(faults).toEqual([]);
  expect(rows.filter(({ status, tests }) => status === 'met' && tests === '')).toEqual([]);
});

/** How many sections of ASVS have this status. */
const sectionsThatAre = (status: string) =>
  rows.filter((row) => row.id.startsWith('V') && row.status === status).length;

test('the sum of the checklist is that of its sections', () => {
  const [sum] = /of \d+ sections [^.]+/.exec(checklists.text.replaceAll('\n', ' ')) ?? [];
  expect(sum).toBe(
    `of ${sections.length} sections ${sectionsThatAre('met')} are met, ${sectionsThatAre('partly')} partly, ${sectionsThatAre('not met')} not met, and ${doNotApply.length} do not apply`,
  );
});
