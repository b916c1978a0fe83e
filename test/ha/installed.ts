import { existsSync } from 'node:fs';

/** What the Debian packages install, by path: the documentation names the packages. */
export const programs = {
  etcd: '/usr/bin/etcd',
  patroni: '/usr/bin/patroni',
  haproxy: '/usr/sbin/haproxy',
  postgres: '/usr/lib/postgresql/15/bin/postgres',
} as const;

/** Those that are not installed. */
export const missing: readonly string[] = Object.values(programs).filter((file) => !existsSync(file));
