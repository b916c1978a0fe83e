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
