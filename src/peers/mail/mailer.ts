import { randomUUID } from 'node:crypto';
import { mkdir, rename, writeFile } from 'node:fs/promises';
import path from 'node:path';

/** A mail of plain text. */
export interface Mail {
  readonly to: string;
  readonly subject: string;
  readonly text: string;
}

/** How mails leave this gateway. */
export interface Mailer {
  /** Resolves once it is somebody else's to deliver. Throws where it could not be handed over. */
  send(mail: Mail): Promise<void>;
}

/** Writes each mail as a file of a folder, for a person or a program that delivers them. Names sort by time. */
export function createFolderMailer(dir: string): Mailer {
  return {
    async send({ to, subject, text }) {
      await mkdir(dir, { recursive: true, mode: 0o700 });
      const name = `${new Date().toISOString().replaceAll(':', '-')}-${randomUUID()}`;
      const lines = [`To: ${oneLine(to)}`, `Subject: ${oneLine(subject)}`, '', text, ''];
      // under its name only once it is whole; it may let somebody in
      const unfinished = path.join(dir, `.${name}`);
      await writeFile(unfinished, lines.join('\n'), { mode: 0o600, flag: 'wx' });
      await rename(unfinished, path.join(dir, `${name}.txt`));
    },
  };
}

/** A header's value has no lines: nobody adds a header of their own. */
function oneLine(text: string): string {
  return text.replaceAll(/\p{Cc}+/gu, ' ');
}
