import { changeRunner } from '../../change-runner.ts';
import type { ExitCode } from '../../exit-codes.ts';

export function run(args: readonly string[]): Promise<ExitCode> {
  return changeRunner(args, 'pause');
}
