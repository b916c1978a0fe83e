import type { Constants } from './constants.ts';
import type { Environment } from './environment.ts';
import type { Path, Findings, Lines, Report } from './mistakes.ts';
import type { Networks } from './networks.ts';

/** Reads a text file; rejects like `node:fs` does. */
export type ReadFile = (path: string) => Promise<string>;

/** What the parts need while the operator's file is read. */
export interface Reading {
  readonly file: string;
  readonly env: Environment;
  readonly readFile: ReadFile;
  readonly report: Report;
  readonly constants: Constants;
  readonly loopbackWebhooks: boolean;
  readonly networks: Networks;
  readonly lineOf: Lines['lineOf'];
  /** If it is given, no secret is read; it gets the path of each. The configuration is then good for a check only. */
  readonly skippedSecrets?: Path[] | undefined;
  /** Gets the path of each file that a secret is read from. */
  readonly secretFiles: Set<string>;
  /** For reports on further files. */
  readonly findings: Findings;
}
