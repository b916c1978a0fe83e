import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { chmod, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { isLoopback } from '../../../base/config/hosts.ts';
import { ArgumentError } from '../../../base/terminal/arguments.ts';
import { allMethods, sellerConfig, type SellerConfig, type SellerSecret } from '../start/seller-config.ts';
import type { Answers } from './answers.ts';
import { composeText, fromContainer } from './compose.ts';
import { nginxText } from './nginx.ts';
import { unitText } from './units.ts';

/** Of the gateway; paid routes have the next one. */
const [port, routesPort] = ['8402', '8403'];
const createDatabase = new URL('../../../../deploy/create-database.sql', import.meta.url);
/** What units may write to. */
const stateFolder = '/var/lib/tollbook';

/** What starts the gateway: a shell, systemd, or the Compose file of the repository, which has a database and secrets of its own. */
export type Starter = 'shell' | 'units' | 'compose';

/** Where the embedded database is. */
export function databaseFolder(dir: string, starter: Starter): string {
  return `${starter === 'units' ? stateFolder : dir}/database`;
}

interface NewFile {
  /** Below the folder. */
  readonly name: string;
  readonly text: string;
  readonly isSecret?: true;
}

/**
 * Writes the files of a new gateway, all or none. Secrets are for the owner of the folder alone.
 * @returns the names of the files
 * @throws ArgumentError if one of them exists
 */
export async function writeGateway(dir: string, answers: Answers, starter: Starter): Promise<string[]> {
  const files = starter === 'compose' ? composeFiles(dir, answers) : await hostFiles(dir, answers, starter);
  const all = [
    { name: 'tollbook.toml', text: sellerConfig(configOf(answers, starter === 'compose')) },
    ...files,
    ...nginxFiles(answers),
  ];
  const taken = all.find(({ name }) => existsSync(path.join(dir, name)));
  if (taken)
    throw new ArgumentError(
      `${path.join(dir, taken.name)} exists, and nothing was changed: name another folder, or move this one away`,
    );
  const written: string[] = [];
  try {
    await mkdir(dir, { recursive: true });
    if (starter === 'units') await chmod(dir, 0o755);
    for (const { name, text, isSecret } of all) {
      const file = path.join(dir, name);
      await mkdir(path.dirname(file), { recursive: true, mode: name.includes('/') ? 0o700 : 0o755 });
      const mode = isSecret ? 0o600 : 0o644;
      await writeFile(file, text, { flag: 'wx', mode });
      written.push(file);
      // the user of a unit reads the others, whatever umask this shell has
      await chmod(file, mode);
    }
  } catch (error) {
    // a part of them would keep the next try from writing
    for (const file of written) await rm(file, { force: true });
    throw error;
  }
  return all.map(({ name }) => name);
}

/** For a gateway that a shell or systemd starts on this machine. */
async function hostFiles(dir: string, answers: Answers, starter: Starter): Promise<NewFile[]> {
  const { databaseServer: server, sold, network } = answers;
  const passwords = { owner: newSecret(), gateway: newSecret() };
  const secrets = {
    RECEIPT_KEY: newSecret(),
    QUOTE_KEY: newSecret(),
    ...(sold.kind === 'job' && { RUNNER_TOKEN: newSecret() }),
    ...(network.facilitator.key === 'signs' && { FACILITATOR_TOKEN: '' }),
    ...(server !== undefined && login('tollbook_gateway', server, passwords.gateway)),
  };
  const database = databaseFolder(dir, starter);
  const embeddedUrl = `DATABASE_URL=postgresql://postgres@/postgres?host=${encodeURIComponent(`${database}/run`)}`;
  const variables = [
    ...fileVariables(dir, 'credentials', secrets),
    ...(server === undefined ? [embeddedUrl] : []),
  ];
  const files: NewFile[] = [
    // the folder may be in a repository
    { name: '.gitignore', text: 'credentials/\nowner-credentials/\ncreate-database.sql\ndatabase/\n' },
    ...secretFiles('credentials', secrets),
    { name: 'gateway.env', text: `${variables.join('\n')}\n` },
  ];
  const unit = { dir, secrets: Object.keys(secrets), folder: 'credentials' } as const;
  const hasUnits = starter === 'units';
  if (server === undefined) {
    const options = ` --embedded ${database}`;
    if (hasUnits) files.push(await unitFile('tollbook.service', { ...unit, options }));
    return files;
  }
  const owner = login('tollbook_owner', server, passwords.owner);
  const ofOwner = { dir, secrets: Object.keys(owner), folder: 'owner-credentials' } as const;
  return [
    ...files,
    ...secretFiles('owner-credentials', owner),
    { name: 'owner.env', text: `${fileVariables(dir, 'owner-credentials', owner).join('\n')}\n` },
    { name: 'create-database.sql', text: await databaseText(passwords), isSecret: true },
    ...(hasUnits
      ? [await unitFile('tollbook.service', unit), await unitFile('tollbook-migrate.service', ofOwner)]
      : []),
  ];
}

async function unitFile(...[name, wishes]: Parameters<typeof unitText>): Promise<NewFile> {
  return { name, text: await unitText(name, wishes) };
}

function composeFiles(dir: string, answers: Answers): NewFile[] {
  return [{ name: 'compose.yaml', text: composeText(dir, answers, portOfRoutes(answers)) }];
}

function nginxFiles(answers: Answers): NewFile[] {
  const { publicUrl } = answers;
  if (publicUrl === undefined) return [];
  const ports = { port, routesPort: portOfRoutes(answers) };
  return [{ name: 'nginx.conf', text: nginxText(publicUrl, ports) }];
}

function portOfRoutes({ sold }: Answers): string | undefined {
  return sold.kind === 'api' ? routesPort : undefined;
}

/** 32 random bytes, in digits and letters that no URL, shell or SQL reads in another way. */
function newSecret(): string {
  return randomBytes(32).toString('hex');
}

/** The variables with which a user of the database logs in. */
function login(user: string, server: string, password: string) {
  const encryption = isLoopback(server.replace(/:\d+$/, '')) ? '' : '?sslmode=verify-full';
  return { DATABASE_URL: `postgresql://${user}@${server}/tollbook${encryption}`, PGPASSWORD: password };
}

function secretFiles(folder: string, secrets: Readonly<Record<string, string>>): NewFile[] {
  return Object.entries(secrets).map(([name, secret]) => ({
    name: `${folder}/${name}`,
    text: secret === '' ? '' : `${secret}\n`,
    isSecret: true,
  }));
}

function fileVariables(dir: string, folder: string, secrets: object): string[] {
  return Object.keys(secrets).map((name) => `${name}_FILE=${dir}/${folder}/${name}`);
}

/** For psql as a superuser: `deploy/create-database.sql` with its passwords. */
async function databaseText({ owner, gateway }: { readonly owner: string; readonly gateway: string }) {
  const text = await readFile(createDatabase, 'utf8');
  const statements = text
    .replace(/^(?:--.*\n)+/, '')
    .replace(/^\\getenv owner_password .*$/m, `\\set owner_password '${owner}'`)
    .replace(/^\\getenv gateway_password .*$/m, `\\set gateway_password '${gateway}'`)
    // the files of passwords
    .replace(/^\\getenv owner_file [^]*?(?=^create )/m, '');
  return `-- The database of the gateway and its two users, for psql as a superuser, once. It has their passwords.\n\\set ON_ERROR_STOP on\n${statements}`;
}

function configOf({ network, payTo, sold, publicUrl, rpcUrl }: Answers, isContainer: boolean): SellerConfig {
  const { facilitator, token } = network;
  const variables: Readonly<Record<SellerSecret, string>> = {
    receipt_key: 'RECEIPT_KEY',
    quote_key: 'QUOTE_KEY',
    facilitator_token: 'FACILITATOR_TOKEN',
    runner_token: 'RUNNER_TOKEN',
  };
  return {
    intro: [
      'Written by `tollbook init`, once: change it as you like. `tollbook config check FILE` reports mistakes, `tollbook doctor` what is',
      'missing around it, and `tollbook config reference` prints every key.',
    ],
    port,
    isContainer,
    // below a path of its own where the API has all others
    publicUrl: publicUrl === undefined || sold.kind === 'job' ? publicUrl : `${publicUrl}/tollbook`,
    facilitatorUrl: facilitator.url,
    hasFacilitatorToken: facilitator.key === 'signs',
    secret: (name) => `"env:${variables[name]}"`,
    token,
    network: network.network,
    rpcUrl,
    payTo,
    sold:
      sold.kind === 'job'
        ? { kind: 'job', name: sold.what, price: sold.price }
        : {
            kind: 'api',
            to: isContainer ? fromContainer(sold.what) : sold.what,
            routes: [{ methods: allMethods, path: '/*', price: sold.price }],
            port: routesPort,
            publicUrl,
          },
  };
}
