import { accessSync, constants } from 'node:fs';

/** What the Debian packages install, by path: the documentation names the packages. */
export const programs = {
  etcd: '/usr/bin/etcd',
  patroni: '/usr/bin/patroni',
  haproxy: '/usr/sbin/haproxy',
  postgres: '/usr/lib/postgresql/15/bin/postgres',
} as const;

/** Those of these programs that are not installed. */
export function missingOf(names: readonly (keyof typeof programs)[]): string[] {
  return names
    .map((name) => programs[name])
    .filter((file) => {
      try {
        accessSync(file, constants.X_OK);
        return false;
      } catch {
        return true;
      }
    });
}

/** Those that three nodes with Patroni need. */
export const missing: readonly string[] = missingOf(['etcd', 'patroni', 'haproxy', 'postgres']);
