import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { type Account, childEnv } from './guarded-process.ts';

/**
 * The account PostgreSQL has to run under: undefined means our own. It refuses to run as root, so root runs it as
 * `postgres` or `nobody`.
 * @throws when we are root and neither account exists
 */
export function postgresAccount(): Account | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const lines = readFileSync('/etc/passwd', 'utf8').split('\n');
  for (const name of ['postgres', 'nobody']) {
    const [, , uid, gid] = lines.find((line) => line.startsWith(`${name}:`))?.split(':') ?? [];
    if (uid !== undefined && gid !== undefined) return { uid: Number(uid), gid: Number(gid) };
  }
  throw new Error(
    'PostgreSQL does not run as root, and there is no account "postgres" or "nobody" to run it under',
  );
}

/** Whether the account may enter this directory, or execute this file. We ourselves always may. */
export function isReachable(file: string, account: Account | undefined): boolean {
  if (account === undefined) return true;
  const probe = spawnSync('/bin/sh', ['-c', 'test -x "$1"', 'sh', file], {
    ...account,
    env: childEnv,
    cwd: '/',
  });
  return probe.status === 0;
}
