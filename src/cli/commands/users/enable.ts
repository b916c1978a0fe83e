import { changeUser } from '../../change-user.ts';
import type { ExitCode } from '../../exit-codes.ts';

export const run = (args: readonly string[]): Promise<ExitCode> => changeUser(args, 'enable');
