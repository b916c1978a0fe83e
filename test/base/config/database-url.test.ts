import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import pg from 'pg';
import { describe, expect, it, test } from 'vitest';
import {
  databaseWarning,
  readDatabaseUrl,
  readReplicaUrls,
  replicaWarning,
} from '../../../src/base/config/database-url.ts';
import { ConfigError } from '../../../src/base/config/mistakes.ts';
import { propertyRuns } from '../../support/property-runs.ts';

const read = (url: string | undefined, more: Readonly<Record<string, string>> = {}) =>
  readDatabaseUrl({ DATABASE_URL: url, ...more });

/** What the driver takes from a URL. */
function driverReads(connectionString: string) {
  const { host, database, user, password } = new pg.Client({ connectionString });
  return { host, database, user, password };
}

/** Of mistakes and of nothing else; none of them has the password. */
async function refusalOf(reading: Promise<unknown>): Promise<string> {
  const error: unknown = await reading.catch((refusal: unknown) => refusal);
  if (!(error instanceof ConfigError)) throw new Error(`it was not refused: ${String(error)}`);
  expect(error.message).not.toContain('hush');
  return error.message;
}

/** Reads the files that are found, by path. */
const files = (found: Readonly<Record<string, string>>) => (path: string) => {
  const text = found[path];
  if (text !== undefined) return Promise.resolve(text);
  return Promise.reject(Object.assign(new Error('nothing here'), { code: 'ENOENT' }));
};

describe('DATABASE_URL', () => {
  it.each([
    'postgres://u:p@db.example:5432/tollbook?sslmode=require',
    'postgresql://localhost/tollbook',
    'postgres:///tollbook?host=/run/postgresql',
    'postgresql://u@/tollbook?host=/run/postgresql',
    'postgres://u:a,b@one:5432/tollbook',
  ])('may be %s', async (url) => {
    expect(await read(url)).toBe(url);
  });

  it.each([
    'postgres://u:hush@one,two/tollbook',
    'postgres://u:hush@one:5432,two:5432/tollbook?target_session_attrs=read-write',
    'postgres://u:hush@/tollbook?host=one,two',
  ])('that names several hosts is refused, with what to use instead: %s', async (url) => {
    expect(await refusalOf(read(url))).toMatch(/DATABASE_URL: names several hosts.*HAProxy/);
  });

  it.each([undefined, '', 'mysql://u:hush@db/x', 'db.example/hush', 'postgres://u:hush@db:port/x'])(
    'may not be %s, which is not repeated',
    async (url) => {
      expect(await refusalOf(read(url))).toMatch(/environment {2}DATABASE_URL: is not/);
    },
  );

  // the digits are ports to a URL parser: with them the driver would connect to a host named u
  it.each(['12#hush', '12/hush', '12?hush', 'a hush', '50%hush', 'h#ush', '%FFhush', 'hush@/x'])(
    'with the unencoded password %s is refused, and the error shows how to write it',
    async (password) => {
      expect(await refusalOf(read(`postgres://u:${password}@db/x`))).toMatch(
        /DATABASE_URL: has a character .* # as %23, .* or omit the password and set PGPASSWORD/,
      );
    },
  );
});

const replicas = (url: string, env: Readonly<Record<string, string>> = {}) =>
  readReplicaUrls({ REPLICA_URL: url, ...env });

describe('the replicas of REPLICA_URL', () => {
  it('are none where it is not set', async () => {
    expect(await readReplicaUrls({ DATABASE_URL: 'postgres://db/x' })).toEqual([]);
  });

  it.each([
    ['postgres://u:p@one/x', ['postgres://u:p@one/x']],
    [
      'postgres://u:a,b@a,b:5433/x?sslmode=require',
      ['a', 'b:5433'].map((host) => `postgres://u:a,b@${host}/x?sslmode=require`),
    ],
    ['postgres://one,two/x', ['postgres://one/x', 'postgres://two/x']],
    ['postgres://u@/x?host=/run/a,/run/b', ['postgres://u@/x?host=/run/a', 'postgres://u@/x?host=/run/b']],
  ])('are as many as it names hosts: %s', async (url, found) => {
    expect(await replicas(url)).toEqual(found);
  });

  it('have the password of PGPASSWORD if theirs is left out', async () => {
    expect(await replicas('postgres://u@one,two/x', { PGPASSWORD: 'hush' })).toEqual([
      'postgres://u@one/x?password=hush',
      'postgres://u@two/x?password=hush',
    ]);
  });

  it('with a mistake are refused by the name of the variable, without the address', async () => {
    const refused = await refusalOf(replicas('mysql://u:hush@one,two/x'));
    expect(refused).toMatch(/REPLICA_URL: is not a PostgreSQL URL/);
    expect(refused).not.toContain('hush');
    expect(replicaWarning('postgres://u:hush@one/x', {})).toMatch(/REPLICA_URL: .*sslmode=verify-full/);
  });
});

describe('a connection to another host without a verified certificate', () => {
  it.each([
    ['postgres://u:hush@db.internal/x', {}],
    ['postgres://u:hush@10.0.0.7:5432/x?sslmode=disable', {}],
    ['postgres://u:hush@db/x?sslmode=no-verify', {}],
    ['postgres://u:hush@db/x?sslmode=require&uselibpqcompat=true', {}],
    ['postgres://u:hush@/x?host=db', {}],
    ['postgres:///x', { PGHOST: 'db' }],
    ['postgres://[fd00::1]:5432/x', {}],
    ['postgres://db/x?sslmode=disable', { PGSSLMODE: 'verify-full' }],
  ])('is warned of: %s %j', (url, env) => {
    const warning = databaseWarning(url, env);
    expect(warning).toMatch(/^environment {2}DATABASE_URL: .*sslmode=verify-full/);
    expect(warning).not.toContain('hush');
  });

  it.each([
    ['postgres://db/x?sslmode=verify-full', {}],
    ['postgres://db/x?sslmode=require', {}],
    ['postgres://db/x?sslmode=verify-full&uselibpqcompat=true', {}],
    ['postgres://db/x', { PGSSLMODE: 'verify-full' }],
    ['postgres:///x', {}],
    ['postgres:///x?host=/run/postgresql', {}],
    ['postgres://u@%2Frun%2Fpostgresql/x', {}],
    ['postgres://u@127.0.0.1:5432/x', {}],
    ['postgres://u@[::1]:5432/x', {}],
    ['postgres://localhost/x', {}],
  ])('is not what this is: %s %j', (url, env) => {
    expect(databaseWarning(url, env)).toBe(undefined);
  });
});

test('every password reaches the driver unchanged: encoded in the URL, in PGPASSWORD, or in a file', async () => {
  const places = ['postgres://u:PASSWORD@db:5432/x', 'postgres://u@db/x', 'postgres://u@/x?host=%2Frun'];
  await fc.assert(
    fc.asyncProperty(
      fc.string({ minLength: 1, unit: 'grapheme' }).filter((text) => text.trim() === text),
      async (password) => {
        const [encoded = '', ...bare] = places;
        const inUrl = await read(encoded.replace('PASSWORD', () => encodeURIComponent(password)));
        expect(driverReads(inUrl).password).toBe(password);
        for (const url of bare) {
          const given = driverReads(await read(url, { PGPASSWORD: password }));
          expect(given).toEqual({ ...driverReads(url), password });
          const file = '/run/secrets/password';
          const env = { DATABASE_URL: url, PGPASSWORD_FILE: file };
          const reading = readDatabaseUrl(env, files({ [file]: `${password}\n` }));
          expect(driverReads(await reading).password).toBe(password);
        }
      },
    ),
    propertyRuns(50),
  );
});

test('a password that is not encoded in the URL is either refused or read unchanged, except for codes such as %41', async () => {
  const characters = fc.constantFrom(...Array.from('ab1:/?#[]@!$&%=+, \\^|"'));
  const text = fc.string({ minLength: 1, maxLength: 12, unit: characters });
  const wronglyRead: string[] = [];
  await fc.assert(
    fc.asyncProperty(text, async (password) => {
      fc.pre(!/%[0-9a-f]{2}/i.test(password));
      const url = await read(`postgres://u:${password}@db:5432/x`).catch(() => undefined);
      const meant = { host: 'db', database: 'x', user: 'u', password };
      if (url !== undefined && !isDeepStrictEqual(driverReads(url), meant)) wronglyRead.push(password);
    }),
    propertyRuns(500),
  );
  expect(wronglyRead).toEqual([]);
});

test('a password in the URL is used before PGPASSWORD, as by libpq', async () => {
  expect(driverReads(await read('postgres://u:one@db/x', { PGPASSWORD: 'two' })).password).toBe('one');
});

describe('a secret NAME may be in the file that NAME_FILE names', () => {
  const url = 'postgres://u:p@db/x';
  it.each([url, `${url}\n`, `${url}\r\n`])(
    'and the end of its last line does not count: %j',
    async (text) => {
      const env = { DATABASE_URL_FILE: '/run/secrets/url', DATABASE_URL: '' };
      expect(await readDatabaseUrl(env, files({ '/run/secrets/url': text }))).toBe(url);
    },
  );

  it('and both together are a mistake', async () => {
    const reading = read(url, { DATABASE_URL_FILE: '/run/secrets/url' });
    expect(await refusalOf(reading)).toContain(
      'DATABASE_URL_FILE: is set, and so is DATABASE_URL: set one of them',
    );
  });

  it('and one that cannot be read is a mistake with its path', async () => {
    const env = { DATABASE_URL: 'postgres://u@db/x', PGPASSWORD_FILE: '/run/secrets/none' };
    expect(await refusalOf(readDatabaseUrl(env, files({})))).toContain(
      'PGPASSWORD_FILE: names /run/secrets/none, which cannot be read: there is no such file',
    );
  });
});
