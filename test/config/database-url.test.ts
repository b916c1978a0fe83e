import { describe, expect, it } from 'vitest';
import { readDatabaseUrl } from '../../src/config/database-url.ts';
import { ConfigError } from '../../src/config/mistakes.ts';

describe('DATABASE_URL', () => {
  it.each([
    'postgres://u:p@db.example:5432/tollbook?sslmode=require',
    'postgresql://localhost/tollbook',
    'postgres:///tollbook?host=/run/postgresql',
    'postgresql://u@/tollbook?host=/run/postgresql',
  ])('may be %s', (url) => {
    expect(readDatabaseUrl({ DATABASE_URL: url })).toBe(url);
  });

  it.each([
    'postgres://u:hush@one,two/tollbook',
    'postgres://u:hush@one:5432,two:5432/tollbook?target_session_attrs=read-write',
    'postgres://u:hush@/tollbook?host=one,two',
  ])('that names several hosts is refused, with what to use instead: %s', (url) => {
    const read = () => readDatabaseUrl({ DATABASE_URL: url });
    expect(read).toThrow(/DATABASE_URL: names several hosts.*HAProxy/);
    expect(read).not.toThrow(/hush/);
  });

  it('may have a comma in its password', () => {
    const url = 'postgres://u:a,b@one:5432/tollbook';
    expect(readDatabaseUrl({ DATABASE_URL: url })).toBe(url);
  });

  it.each([
    undefined,
    '',
    'mysql://u:hush@db/x',
    'db.example/hush',
    'postgres://u:hush@db:port/x',
    'postgres://a hush',
  ])('may not be %s, which is not repeated', (url) => {
    const read = () => readDatabaseUrl({ DATABASE_URL: url });
    expect(read).toThrow(ConfigError);
    expect(read).toThrow(/environment {2}DATABASE_URL: is not/);
    expect(read).not.toThrow(/hush/);
  });
});
