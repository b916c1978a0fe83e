import { randomUUID } from 'node:crypto';
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';

/** A mail. */
export interface Mail {
  readonly to: string;
  readonly subject: string;
  readonly text: string;
  /** The same in HTML. */
  readonly html?: string;
}

/** Sends the gateway's mails. */
export interface Mailer {
  /** Resolves once the mail was handed over for delivery; throws when it could not be. */
  send(mail: Mail): Promise<void>;
  /** Closes connections that are kept. */
  close?(): Promise<void>;
}

/** Writes the text of each mail as a file in a folder, from which a program or the operator delivers it. Names sort by time. */
export function createFolderMailer(dir: string): Mailer {
  return {
    async send({ to, subject, text }) {
      await mkdir(dir, { recursive: true, mode: 0o700 });
      const name = `${new Date().toISOString().replaceAll(':', '-')}-${randomUUID()}`;
      const lines = [`To: ${oneLine(to)}`, `Subject: ${oneLine(subject)}`, '', text, ''];
      // renamed only when complete; readable by its owner only, since it may contain a sign-in token
      const unfinished = path.join(dir, `.${name}`);
      await writeFile(unfinished, lines.join('\n'), { mode: 0o600, flag: 'wx' });
      await rename(unfinished, path.join(dir, `${name}.txt`));
    },
  };
}

/** The names of the files that a folder mailer writes, unfinished ones included. */
const mailName = /^\.?\d{4}-\d\d-\d\dT[\dZ.-]+-[0-9a-f-]{36}(?:\.txt)?$/;

/** Deletes the mails in a folder that were written before a time and that no program has taken; returns how many. */
export async function pruneMails(dir: string, beforeMs: number): Promise<number> {
  let deleted = 0;
  for (const file of await mailsIn(dir)) {
    const written = await stat(file).catch(() => undefined);
    if (!written || written.mtimeMs >= beforeMs) continue;
    await rm(file, { force: true });
    deleted++;
  }
  return deleted;
}

/** Deletes the mails to an address in a folder that no program has taken; returns how many. */
export async function eraseMails(dir: string, to: string): Promise<number> {
  let deleted = 0;
  const firstLine = `to: ${oneLine(to)}\n`.toLowerCase();
  for (const file of await mailsIn(dir)) {
    const text = await readFile(file, 'utf8').catch(() => '');
    if (!text.toLowerCase().startsWith(firstLine)) continue;
    await rm(file, { force: true });
    deleted++;
  }
  return deleted;
}

async function mailsIn(dir: string): Promise<string[]> {
  const names = await readdir(dir).catch((error: unknown) => {
    // nothing was ever sent
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return [];
    throw error;
  });
  return names.filter((name) => mailName.test(name)).map((name) => path.join(dir, name));
}

/** Removes line breaks from a header's value, so that it cannot add headers. */
function oneLine(text: string): string {
  return text.replaceAll(/\p{Cc}+/gu, ' ');
}
