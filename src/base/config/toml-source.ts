import { parse, TomlError } from 'smol-toml';
import { ConfigError } from './mistakes.ts';
import type { Lines } from './report.ts';
import { findLines } from './toml-lines.ts';

/** A parsed TOML file with its lines. Integers are bigints, so that floats and integers differ. */
export interface TomlSource extends Lines {
  readonly root: unknown;
}

/** Parses TOML. Throws a ConfigError with the line where the syntax breaks: nothing after it can be judged. */
export function readToml(text: string, file: string): TomlSource {
  try {
    return { file, root: parse(text, { integersAsBigInt: true }), lineOf: findLines(text) };
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    // only the first line: the rest quotes the source, which may contain a secret
    const reason = error.message.split('\n', 1)[0]?.replace('Invalid TOML document: ', '') ?? '';
    throw new ConfigError([{ path: '', line: error.line, file, message: `is not TOML: ${reason}` }]);
  }
}
