import { changeRunner } from '../../terminal/change-runner.ts';
import type { ExitCode } from '../../../base/terminal/exit-codes.ts';

export function run(args: readonly string[]): Promise<ExitCode> {
  return changeRunner(args, 'pause');
}
