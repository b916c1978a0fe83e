import { changeRunner } from '../../change-runner.ts';

export function run(args: readonly string[]): Promise<number> {
  return changeRunner(args, 'resume');
}
