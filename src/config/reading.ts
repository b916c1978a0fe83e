import type { Environment } from './environment.ts';
import type { Findings, Report } from './report.ts';

/** Reads a text file; rejects like `node:fs` does. */
export type ReadFile = (path: string) => Promise<string>;

/** What the parts need while the operator's file is read. */
export interface Reading {
  readonly file: string;
  readonly env: Environment;
  readonly readFile: ReadFile;
  readonly report: Report;
  /** For reports on further files. */
  readonly findings: Findings;
}
