import { accessSync, constants } from 'node:fs';

/** What the Debian packages install, by path: the page names the packages. */
export const programs = {
  etcd: '/usr/bin/etcd',
  patroni: '/usr/bin/patroni',
  haproxy: '/usr/sbin/haproxy',
  postgres: '/usr/lib/postgresql/15/bin/postgres',
} as const;

/** The programs that are not installed. */
export const missing: readonly string[] = Object.values(programs).filter((file) => {
  try {
    accessSync(file, constants.X_OK);
    return false;
  } catch {
    return true;
  }
});
