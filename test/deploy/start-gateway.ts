import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'vitest';
import { freePort } from '../../src/devnet/ports.ts';
import { createDatabase } from '../support/database.ts';
import { startTollbook, temporaryFolder, tollbook } from '../support/program.ts';

/** A command as a deployment starts it. */
export interface DeployedCommand {
  /** After the program's name. */
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** The folder of its secrets, one file each. */
  readonly secretsAt: string;
}

/** As files have them: each ends its line. */
const secretOf = (name: string): string => `the-secret-${name}-of-more-than-32-characters\n`;

/**
 * Runs the migration and then the gateway, each with its own variables and files only, on a database of this test. No peer is there.
 * Returns the gateway's URL once it listens.
 */
export async function startDeployed(
  { migrate, gateway }: { readonly migrate: DeployedCommand; readonly gateway: DeployedCommand },
  config: string,
): Promise<string> {
  const database = await createDatabase();
  const folder = temporaryFolder();
  const port = await freePort();
  const ours = config
    .replace(/^bind_address = "0\.0\.0\.0:8402"/m, `bind_address = "127.0.0.1:${port}"`)
    .replace('0.0.0.0:9464', '127.0.0.1:0')
    .replaceAll(/^((?:facilitator|rpc)_url) = ".*"/gm, '$1 = "http://127.0.0.1:1"');
  writeFileSync(path.join(folder, 'tollbook.toml'), ours);

  /** Makes the files that its variables name, and no others. */
  const prepare = ({ args, env, secretsAt }: DeployedCommand) => {
    const here = (text: string): string =>
      text.replaceAll(secretsAt, path.join(folder, args[0] ?? '')).replaceAll('/etc/tollbook', folder);
    const variables = Object.entries(env).map(([name, value]) => [name, here(value)] as const);
    mkdirSync(path.join(folder, args[0] ?? ''));
    for (const [name, file] of variables)
      if (name.endsWith('_FILE'))
        writeFileSync(
          file,
          name === 'DATABASE_URL_FILE' ? `${database.url}\n` : secretOf(path.basename(file)),
        );
    return { args: args.map(here), env: Object.fromEntries(variables) };
  };
  const first = prepare(migrate);
  expect(await tollbook(first.args, first.env)).toMatchObject({ code: 0, stderr: '' });
  const second = prepare(gateway);
  const program = startTollbook(second.args, second.env);
  await program.says(/"msg":"listening"/);
  return `http://127.0.0.1:${port}`;
}
