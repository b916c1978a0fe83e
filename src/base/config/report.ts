import { formatMistake, formatPath, type Mistake, type Path } from './mistakes.ts';

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
