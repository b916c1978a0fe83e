import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createFolderMailer, pruneMails } from '../../../../src/base/peers/mail/mailer.ts';

test('a mail is a file that only its owner can read, and its values cannot add headers', async () => {
  const dir = mkdtempSync(path.join(tmpdir(), 'tollbook-mailer-'));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  const mailer = createFolderMailer(path.join(dir, 'mail'));
  await mailer.send({
    to: 'a@b.example\r\nBcc: eve@example.org',
    subject: 'Hello\nX: y',
    text: 'One.\nTwo.',
  });
  const [name = '', ...more] = readdirSync(path.join(dir, 'mail'));
  expect(more).toEqual([]);
  const file = path.join(dir, 'mail', name);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(readFileSync(file, 'utf8')).toBe(
    'To: a@b.example Bcc: eve@example.org\nSubject: Hello X: y\n\nOne.\nTwo.\n',
  );
});

test('a mail that no program has taken is deleted when its life has ended, and no other file is', async () => {
  const dir = mkdtempSync(path.join(tmpdir(), 'tollbook-mailer-'));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  const mailer = createFolderMailer(dir);
  for (const to of ['a@b.example', 'c@d.example']) await mailer.send({ to, subject: 's', text: 't' });
  const [old = '', young = ''] = readdirSync(dir);
  writeFileSync(path.join(dir, 'notes.txt'), 'of the operator');
  for (const name of [old, 'notes.txt']) utimesSync(path.join(dir, name), 1_000, 1_000);
  expect(await pruneMails(dir, Date.now() - 86_400_000)).toBe(1);
  expect(readdirSync(dir).toSorted()).toEqual([young, 'notes.txt'].toSorted());
  expect(await pruneMails(path.join(dir, 'never-made'), Date.now())).toBe(0);
});
