import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { ArgumentError } from '../../../base/terminal/arguments.ts';
import { thisProgram } from '../start/this-program.ts';

const templates = new URL('../../../../deploy/systemd/', import.meta.url);
/** As the templates name them. */
const program = '/opt/tollbook/bin/tollbook';
const configFolder = '/etc/tollbook';

/** What `ProtectHome` hides from the units. */
const hidden = /^\/(?:home|root|run\/user)\//;

/** @throws ArgumentError if the units could read neither this folder nor this program */
export function checkUnits(dir: string): void {
  if (hidden.test(dir))
    throw new ArgumentError(`no unit can read ${dir}: write it elsewhere, as with --dir /etc/tollbook`);
  const [started = ''] = thisCommand().split(' ');
  if (hidden.test(started))
    throw new ArgumentError(
      `no unit can start ${started}: install the package elsewhere, as with npm install --global --prefix /opt/tollbook`,
    );
}

/** A unit for the files that `tollbook init` writes. */
export interface UnitWishes {
  readonly dir: string;
  /** The names of the secrets in `folder`, each in a file. */
  readonly secrets: readonly string[];
  readonly folder: 'credentials' | 'owner-credentials';
  /** Added to the command. */
  readonly options?: string;
}

/** The text of one of the units in `deploy/systemd/`, with this program, this folder and these secrets. */
export async function unitText(
  name: 'tollbook.service' | 'tollbook-migrate.service',
  { dir, secrets, folder, options = '' }: UnitWishes,
): Promise<string> {
  const template = await readFile(new URL(name, templates), 'utf8');
  const credentials = [
    ...secrets.map((secret) => `LoadCredential=${secret}:${dir}/${folder}/${secret}`),
    ...secrets.map((secret) => `Environment=${secret}_FILE=%d/${secret}`),
  ];
  // before the credentials are in it, whose paths may contain what is replaced
  const placed = template.replaceAll(program, thisCommand()).replaceAll(configFolder, dir);
  const lines = placed.split('\n').flatMap((line) => {
    if (/^LoadCredential=|^Environment=\w+_FILE=/.test(line)) return [];
    if (line === 'Environment=NODE_ENV=production') return [...credentials, line];
    return line.startsWith('ExecStart=') ? [`${line}${options}`] : [line];
  });
  return lines.join('\n');
}

/** Whether it was started by the command of the package, not in a clone. */
export function isInstalled(): boolean {
  const [, started = ''] = process.argv;
  return path.basename(started) === 'tollbook';
}

/** How a unit starts this program: the installed command, or in a clone Node with the source. */
function thisCommand(): string {
  const [, started = ''] = process.argv;
  return isInstalled() ? started : `${process.execPath} ${thisProgram}`;
}
