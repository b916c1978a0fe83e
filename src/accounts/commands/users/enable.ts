import { changeUser } from '../../terminal/change-user.ts';
import type { ExitCode } from '../../../base/terminal/exit-codes.ts';

export const run = (args: readonly string[]): Promise<ExitCode> => changeUser(args, 'enable');
