import { readFile } from 'node:fs/promises';
import { reasonOf } from '../../base/config/files.ts';
import type { ReportJson } from '../rules/reconcile/report.ts';
import { ArgumentError } from '../../base/terminal/arguments.ts';

/** Reads a report of `tollbook reconcile --json`. Throws an ArgumentError where the file is none. */
export async function readReport(file: string): Promise<ReportJson> {
  const text = await readFile(file, 'utf8').catch((error: unknown) => {
    throw new ArgumentError(`--report ${file} cannot be read: ${reasonOf(error)}`);
  });
  const report = parsed(text);
  if (typeof report === 'object' && report !== null && 'tollbook_reconciliation' in report)
    return report as ReportJson;
  throw new ArgumentError(`${file} is no report of \`tollbook reconcile --json\``);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
