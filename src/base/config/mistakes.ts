/** Keys and array indexes from the top of a TOML file down to a value. */
export type Path = readonly (string | number)[];

/** One thing wrong with the configuration, and where. */
export interface Mistake {
  /** As text: `job_policies[1].net_contract`; empty for the file as a whole. */
  readonly path: string;
  /** Counted from 1. Absent if the source has none: a missing top-level key, an environment variable. */
  readonly line?: number;
  readonly file: string;
  readonly message: string;
}

/** The configuration cannot be used. Has every mistake, in the order of the file. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly mistakes: readonly Mistake[];

  constructor(mistakes: readonly Mistake[]) {
    const sorted = inSourceOrder(mistakes);
    const count = sorted.length === 1 ? 'one mistake' : `${sorted.length} mistakes`;
    super([`The configuration has ${count}:`, ...sorted.map(formatMistake)].join('\n  '));
    this.mistakes = sorted;
  }
}

/** One line for a person: `gateway.toml:14  job_policies[1].net_contract: is not an address`. */
export function formatMistake(mistake: Mistake): string {
  const where = mistake.line === undefined ? mistake.file : `${mistake.file}:${mistake.line}`;
  return `${where}  ${mistake.path === '' ? '' : `${mistake.path}: `}${mistake.message}`;
}

/** Formats a path like TOML: `accepted_tokens[0].pay_to`, keys quoted where TOML requires it. */
export function formatPath(path: Path): string {
  let text = '';
  for (const part of path) {
    if (typeof part === 'number') text += `[${part}]`;
    else text += (text === '' ? '' : '.') + (/^[\w-]+$/.test(part) ? part : JSON.stringify(part));
  }
  return text;
}

function inSourceOrder(mistakes: readonly Mistake[]): Mistake[] {
  const files = [...new Set(mistakes.map((mistake) => mistake.file))];
  return files.flatMap((file) =>
    mistakes.filter((mistake) => mistake.file === file).toSorted((a, b) => (a.line ?? 0) - (b.line ?? 0)),
  );
}

/** Mistakes and warnings of all files together. */
export interface Findings {
  readonly mistakes: Mistake[];
  readonly warnings: string[];
}

/** Reports a mistake or a warning at a path of one file. Reading continues, so that all mistakes are reported together. */
export interface Report {
  readonly mistake: (path: Path, message: string) => void;
  readonly warning: (path: Path, message: string) => void;
}

/** The lines of a file by path. */
export interface Lines {
  readonly file: string;
  /** The line of a path, or of its nearest ancestor that has one. */
  readonly lineOf: (path: Path) => number | undefined;
}

/** A report for one file, writing into findings shared by all. */
export function createReport(lines: Lines, findings: Findings): Report {
  const locate = (path: Path, message: string): Mistake => {
    const line = lines.lineOf(path);
    const found = { path: formatPath(path), file: lines.file, message };
    return line === undefined ? found : { ...found, line };
  };
  return {
    mistake: (path, message) => findings.mistakes.push(locate(path, message)),
    warning: (path, message) => findings.warnings.push(formatMistake(locate(path, message))),
  };
}
