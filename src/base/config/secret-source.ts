import { z } from 'zod';
import { Wrong } from './values.ts';

/** Where one secret is: an environment variable, or a file. */
export interface SecretSource {
  readonly from: 'env' | 'file';
  /** The variable's name, or the file's path as the configuration has it. */
  readonly name: string;
}

/** The value of a key that says where a secret is. The frozen configuration has the secret, never this. */
export class SecretSources {
  /** The one in use, and a second one while it is replaced. */
  readonly list: readonly SecretSource[];

  constructor(list: readonly SecretSource[]) {
    this.list = list;
  }
}

/** Repeats nothing of the value, because a secret pasted here by accident would otherwise be in the message. */
const expected = 'must be "env:NAME" or "file:/path", which say where the secret is, never the secret itself';

const source = z.string(expected).transform((raw, context): SecretSource => {
  const read = readSource(raw);
  if (!(read instanceof Wrong)) return read;
  context.addIssue(read.message);
  return z.NEVER;
});

/** A key that says where a secret is: `"env:NAME"` (or the file that the variable `NAME_FILE` names) or `"file:/path"`. */
export const secret = source
  .transform((one) => new SecretSources([one]))
  .optional()
  .meta({ type: 'secret' });

const expectedList =
  'must be "env:NAME" or "file:/path", which say where the secret is, or a list of the one in use and a second one, never the secret itself';

/** The key of a secret that can be replaced: also a list of the one in use and a second one, which is accepted as well. */
export const rotatingSecret = z
  .union(
    [source.transform((one) => [one]), z.array(source).min(1, expectedList).max(2, expectedList)],
    expectedList,
  )
  .transform((list) => new SecretSources(list))
  .optional()
  // a reload reads the secret again
  .meta({ type: 'secret, or two', reloadable: true });

function readSource(raw: string): SecretSource | Wrong {
  const [, from, name = ''] = /^(env|file):(.+)$/s.exec(raw) ?? [];
  if (from === 'env' && /^[A-Za-z_][A-Za-z0-9_]{0,127}$/.test(name)) return { from, name };
  if (from === 'file' && !name.includes('\0')) return { from, name };
  return new Wrong(expected);
}
