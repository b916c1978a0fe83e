import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { lockFolder } from '../../src/devnet/folder-lock.ts';

function folder(): string {
  const dir = mkdtempSync(path.join(tmpdir(), 'tollbook-lock-'));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

test('a folder is locked once, and can be locked again when it is unlocked', () => {
  const dir = folder();
  const first = lockFolder(dir);
  expect(lockFolder(dir)).toEqual({ kind: 'taken', pid: process.pid });
  if (first.kind === 'locked') first.unlock();
  expect(lockFolder(dir).kind).toBe('locked');
});

test.each([
  ['a process that has ended', '4194304 1'],
  ['an earlier process of our own number, as in a container', `${process.pid} 1`],
  ['an incomplete line', ''],
])('a folder lock of %s is taken over', (_, text) => {
  const dir = folder();
  writeFileSync(path.join(dir, 'start.pid'), text);
  expect(lockFolder(dir).kind).toBe('locked');
  expect(readdirSync(dir)).toEqual(['start.pid']);
  expect(readFileSync(path.join(dir, 'start.pid'), 'utf8')).toContain(String(process.pid));
});
