import { formatMistake, formatPath, type Mistake, type Path } from './mistakes.ts';

/** What reading found wrong or doubtful, in all files together. */
export interface Findings {
  readonly mistakes: Mistake[];
  readonly warnings: string[];
}

/** Tells what is wrong at a path of one file. Reading goes on, so that all mistakes are told at once. */
export interface Report {
  readonly mistake: (path: Path, message: string) => void;
  readonly warning: (path: Path, message: string) => void;
}

/** Where a report's paths lie. */
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
