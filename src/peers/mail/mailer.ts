import { randomUUID } from 'node:crypto';
import { mkdir, rename, writeFile } from 'node:fs/promises';
import path from 'node:path';

/** A plain-text mail. */
export interface Mail {
  readonly to: string;
  readonly subject: string;
  readonly text: string;
}

/** Sends the gateway's mails. */
export interface Mailer {
  /** Resolves once the mail was handed over for delivery; throws when it could not be. */
  send(mail: Mail): Promise<void>;
}

/** Writes each mail as a file in a folder, from which a program or the operator delivers it. Names sort by time. */
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

/** Removes line breaks from a header's value, so that it cannot add headers. */
function oneLine(text: string): string {
  return text.replaceAll(/\p{Cc}+/gu, ' ');
}
