import { changeUser } from '../../change-user.ts';

export const run = (args: readonly string[]): Promise<number> => changeUser(args, 'enable');
