import * as fc from 'fast-check';
import { parse, stringify } from 'smol-toml';
import { describe, expect, it } from 'vitest';
import type { Path } from '../../../src/base/config/mistakes.ts';
import { readToml } from '../../../src/base/config/toml-source.ts';
import { propertyRuns } from '../../support/property-runs.ts';

const document = `# a comment with [brackets] and = signs
title = "x" # [not.a.table]
'quoted key'.sub."dotted.\\u0041" = 1

[server]
text = """
[fake]
fake = "1" \\""" # still text
"""
raw = '''
[[fake]]
it''s'''
ports = [
  1, # one ]
  # nothing
  [ 2,
    3 ],
  { name = "}", deep = { a = [
    4 ] } },
]
when = 1979-05-27 07:32:00

[[jobs]]
id = 1
[jobs.policy]
mode = "a"
[[jobs.callers]]
name = "x"
[[jobs.callers]]
name = "y"
[[jobs]]
id = 2
policy . mode = "b"
[[ jobs . callers ]]
name = "z"`;

describe('the lines of a TOML document', () => {
  const { root, lineOf } = readToml(document, 'a.toml');

  it.each<[Path, number]>([
    [['title'], 2],
    [['quoted key'], 3],
    [['quoted key', 'sub', 'dotted.A'], 3],
    [['server'], 5],
    [['server', 'text'], 6],
    [['server', 'raw'], 10],
    [['server', 'ports'], 13],
    [['server', 'ports', 0], 14],
    [['server', 'ports', 1], 16],
    [['server', 'ports', 1, 0], 16],
    [['server', 'ports', 1, 1], 17],
    [['server', 'ports', 2, 'name'], 18],
    [['server', 'ports', 2, 'deep', 'a', 0], 19],
    [['server', 'when'], 21],
    [['jobs', 0], 23],
    [['jobs', 0, 'policy', 'mode'], 26],
    [['jobs', 0, 'callers', 0, 'name'], 28],
    [['jobs', 0, 'callers', 1, 'name'], 30],
    [['jobs', 1, 'id'], 32],
    [['jobs', 1, 'policy', 'mode'], 33],
    [['jobs', 1, 'callers', 0], 34],
    [['jobs', 1, 'callers', 0, 'name'], 35],
  ])('finds %j on line %i', (path, line) => {
    expect(lineOf(path)).toBe(line);
  });

  it('falls back to the nearest ancestor that has a line', () => {
    expect(lineOf(['jobs', 1, 'missing', 'deeper'])).toBe(31);
    expect(lineOf(['server', 'ports', 7])).toBe(13);
  });

  it('has no line for what the document does not name at all', () => {
    expect(lineOf(['missing'])).toBeUndefined();
    expect(lineOf([])).toBeUndefined();
  });

  it('counts lines that end in CR LF, and passes a byte order mark', () => {
    expect(readToml('\uFEFFa = 1\r\n\r\nb = 2\r\n', 'a.toml').lineOf(['b'])).toBe(3);
  });

  it('belong to the values that another parser reads of it', () => {
    expect(root).toEqual(parse(document, { integersAsBigInt: true }));
  });

  it('finds every leaf of any document, with the value that another parser reads', () => {
    fc.assert(
      fc.property(documents, (tree) => {
        let last = 1_000_000;
        const numbered = number(tree, () => (last += 1));
        const text = `# header\n${stringify(numbered)}`;
        const rows = text.split('\n');
        const { root: values, lineOf: find } = readToml(text, 'a.toml');
        expect(values).toEqual(parse(text, { integersAsBigInt: true }));
        for (const [path, value] of leavesOf(parse(text), [])) {
          expect(rows[(find(path) ?? 0) - 1]).toContain(String(value));
        }
      }),
      propertyRuns(100),
    );
  });
});

type Tree = null | Tree[] | { [key: string]: Tree };

const keys = fc.oneof(
  fc.stringMatching(/^[a-z_-]{1,4}$/),
  fc.string({ minLength: 1, maxLength: 4, unit: 'binary' }),
);
const { table: documents } = fc.letrec<{ tree: Tree; table: Tree }>((tie) => ({
  tree: fc.oneof({ maxDepth: 4 }, fc.constant(null), fc.array(tie('tree'), { maxLength: 3 }), tie('table')),
  table: fc.dictionary(keys, tie('tree'), { maxKeys: 4 }),
}));

/** Gives every leaf its own number, so that its line shows it. */
function number(tree: Tree, next: () => number): unknown {
  if (tree === null) return next();
  if (Array.isArray(tree)) return tree.map((inner) => number(inner, next));
  return Object.fromEntries(Object.entries(tree).map(([key, inner]) => [key, number(inner, next)]));
}

function leavesOf(value: unknown, path: Path): [Path, unknown][] {
  if (Array.isArray(value)) return value.flatMap((inner, index) => leavesOf(inner, [...path, index]));
  if (typeof value !== 'object' || value === null) return [[path, value]];
  return Object.entries(value).flatMap(([key, inner]) => leavesOf(inner, [...path, key]));
}
