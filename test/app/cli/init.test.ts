import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { loadConfig } from '../../../src/base/config/load.ts';
import { networkPresets, tokenPresets } from '../../../src/base/config/presets.ts';
import { freePort } from '../../../src/devnet/ports.ts';
import { readCompose, type Service } from '../../deploy/compose-file.ts';
import { facilitatorKey } from '../../support/facilitator-key.ts';
import { isInstalled, notChecked } from '../../support/installed.ts';
import { root } from '../../support/pages.ts';
import { commandLine, spawnInput, startTollbook, temporaryFolder, tollbook } from '../../support/program.ts';

const noScript = notChecked('questions at a terminal', isInstalled('script') ? [] : ['script of bsdutils']);
const payTo = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8';
const usual = {
  network: 'base-sepolia',
  'pay-to': payTo,
  sell: 'http://localhost:3000 for 0.01 USD',
  database: 'localhost',
  'public-url': 'https://api.example',
};

function init(dir: string, changed: Partial<Record<keyof typeof usual, string>> = {}, ...more: string[]) {
  const options = Object.entries({ ...usual, ...changed }).flatMap(([name, value]) => [`--${name}`, value]);
  return tollbook(['init', '--dir', dir, ...options, ...more]);
}

const isSecret = (name: string): boolean => name.includes('/') || name === 'create-database.sql';

/** The files below a folder. */
const filesIn = (dir: string): string[] =>
  readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(dir, path.join(entry.parentPath, entry.name)))
    .toSorted();

/** The variables of an environment file, as a shell reads them. */
function variablesIn(file: string): Record<string, string> {
  const lines = readFileSync(file, 'utf8').trim().split('\n');
  return Object.fromEntries(lines.map((line) => line.split(/=(.*)/s).slice(0, 2) as [string, string]));
}

const load = (dir: string) =>
  loadConfig(path.join(dir, 'tollbook.toml'), variablesIn(path.join(dir, 'gateway.env')));

test('five answered questions write a configuration of at most 40 lines that is valid, with secrets that others cannot read', async () => {
  const dir = path.join(temporaryFolder(), 'new');
  const lines = ['base', payTo, usual.sell, '', 'https://api.example'];
  const { code, stdout, stderr } = await spawnInput(['init', '--dir', dir], `${lines.join('\n')}\n`);
  expect({ code, questions: stderr.trim().split('\n').length }).toEqual({ code: 0, questions: 5 });
  expect(stdout).toMatch(
    /^REAL MONEY on Base goes to 0x70997970C5.*; facilitator\.payai\.network settles it\.$/m,
  );
  expect(readFileSync(path.join(dir, 'tollbook.toml'), 'utf8').split('\n').length).toBeLessThanOrEqual(40);
  const { config } = await load(dir);
  expect(config).toMatchObject({
    publicUrl: 'https://api.example/tollbook',
    trustProxy: ['127.0.0.1'],
    jobs: { acceptedTokens: [tokenPresets['base/USDC']], routes: { publicUrl: 'https://api.example' } },
  });
  expect(filesIn(dir)).toEqual([
    '.gitignore',
    'create-database.sql',
    ...['DATABASE_URL', 'PGPASSWORD', 'QUOTE_KEY', 'RECEIPT_KEY'].map((name) => `credentials/${name}`),
    'gateway.env',
    'nginx.conf',
    ...['DATABASE_URL', 'PGPASSWORD'].map((name) => `owner-credentials/${name}`),
    'owner.env',
    'tollbook.toml',
  ]);
  for (const name of filesIn(dir))
    expect(`${name} ${(statSync(path.join(dir, name)).mode & 0o777).toString(8)}`).toBe(
      `${name} ${isSecret(name) ? '600' : '644'}`,
    );
  const openFiles = filesIn(dir).filter((name) => !isSecret(name));
  const secrets = filesIn(dir)
    .filter((name) => /KEY$|PASSWORD$/.test(name))
    .map((name) => readFileSync(path.join(dir, name), 'utf8').trim());
  expect(new Set(secrets).size).toBe(4);
  for (const secret of secrets) {
    expect(secret).toMatch(/^[0-9a-f]{64}$/);
    for (const name of openFiles) expect(readFileSync(path.join(dir, name), 'utf8')).not.toContain(secret);
  }
});

test.each(Object.keys(networkPresets))(
  'what is written for %s is valid, for an API and for a job, with every facilitator there',
  async (network) => {
    const { facilitators } = networkPresets[network as keyof typeof networkPresets];
    for (const facilitator of facilitators)
      for (const sell of [usual.sell, 'Portrait of you for 2 USD']) {
        const dir = path.join(temporaryFolder(), 'new');
        expect(await init(dir, { network, sell }, '--facilitator', facilitator)).toMatchObject({ code: 0 });
        const token = path.join(dir, 'credentials/FACILITATOR_TOKEN');
        expect(existsSync(token)).toBe(facilitator === 'cdp');
        if (facilitator === 'cdp') writeFileSync(token, facilitatorKey().secret);
        const { config } = await load(dir);
        expect(config.jobs?.jobPrices.size).toBe(1);
        expect(config.runners).toHaveLength(sell === usual.sell ? 0 : 1);
      }
  },
);

test('an embedded database needs neither passwords nor an owner', async () => {
  const dir = path.join(temporaryFolder(), 'new');
  expect((await init(dir, { database: 'embedded', 'public-url': 'none' })).code).toBe(0);
  expect(filesIn(dir)).toEqual([
    '.gitignore',
    'credentials/QUOTE_KEY',
    'credentials/RECEIPT_KEY',
    'gateway.env',
    'tollbook.toml',
  ]);
  expect(variablesIn(path.join(dir, 'gateway.env'))['DATABASE_URL']).toBe(
    `postgresql://postgres@/postgres?host=${encodeURIComponent(`${dir}/database/run`)}`,
  );
});

test('a gateway with the embedded database starts from what was written, again on the same ledger, and ends with its database', async () => {
  const dir = path.join(temporaryFolder(), 'new');
  const nowhere = 'http://127.0.0.1:1';
  const peers = ['--facilitator', nowhere, '--rpc-url', nowhere];
  expect((await init(dir, { database: 'embedded', 'public-url': 'none' }, ...peers)).code).toBe(0);
  const file = path.join(dir, 'tollbook.toml');
  const [port, routesPort] = [await freePort(), await freePort()];
  const text = readFileSync(file, 'utf8').replace(':8402', `:${port}`).replace(':8403', `:${routesPort}`);
  writeFileSync(file, text);
  const env = variablesIn(path.join(dir, 'gateway.env'));
  const lists: unknown[] = [];
  const serveOnce = async (...command: readonly string[]): Promise<void> => {
    const gateway = startTollbook(['serve', '--config', file, '--embedded', path.join(dir, 'database')], env);
    await gateway.says(/"msg":"listening"/);
    const { stdout } = await tollbook(command, env);
    lists.push(stdout);
    gateway.kill('SIGINT');
    expect((await gateway.ended).code).toBe(0);
  };
  await serveOnce('tokens', 'create', 'a', '--scope', 'audit:read');
  await serveOnce('tokens', 'list');
  const failing = startTollbook(['serve', '--config', file, '--embedded', path.join(dir, 'database')], env);
  await failing.says(/"msg":"listening"/);
  const [postmaster = ''] = readFileSync(path.join(dir, 'database/data/postmaster.pid'), 'utf8').split('\n');
  process.kill(Number(postmaster), 'SIGKILL');
  expect(await failing.ended).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/^the embedded database ended, and so does this gateway/m),
  });
  const tooLong = path.join(dir, 'x'.repeat(110));
  expect(await tollbook(['serve', '--config', file, '--embedded', tooLong], env)).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/its path is too long/),
  });
  expect(lists).toEqual([expect.any(String), expect.stringMatching(/ a .*audit:read/)]);
});

test('the database file has the passwords of both users, and asks its environment for none', async () => {
  const dir = path.join(temporaryFolder(), 'new');
  await init(dir);
  const sql = readFileSync(path.join(dir, 'create-database.sql'), 'utf8');
  const passwordIn = (folder: string) => readFileSync(path.join(dir, folder, 'PGPASSWORD'), 'utf8').trim();
  expect(sql).toContain(`\\set owner_password '${passwordIn('owner-credentials')}'`);
  expect(sql).toContain(`\\set gateway_password '${passwordIn('credentials')}'`);
  expect(sql).not.toMatch(/getenv|`/);
});

test('for Compose there is a second file, which Compose reads, for a gateway that reaches an API of its machine', async () => {
  const dir = path.join(temporaryFolder(), 'new');
  const { database: _, ...answers } = usual;
  const options = Object.entries(answers).flatMap(([name, value]) => [`--${name}`, value]);
  expect((await tollbook(['init', '--dir', dir, ...options, '--compose', '--facilitator', 'cdp'])).code).toBe(
    0,
  );
  expect(filesIn(dir)).toEqual(['compose.yaml', 'nginx.conf', 'tollbook.toml']);
  const { services } = parse(readFileSync(path.join(dir, 'compose.yaml'), 'utf8')) as {
    services: { gateway: Service };
  };
  const { gateway } = readCompose(readFileSync(path.join(root, 'docker-compose.yml'), 'utf8'), {}).services;
  expect(services.gateway).toEqual({
    // takes the place of the first file's: Compose merges volumes by their targets
    volumes: [
      {
        ...gateway?.volumes.find((volume) => typeof volume === 'object'),
        source: path.join(dir, 'tollbook.toml'),
      },
    ],
    ports: ['127.0.0.1:8403:8403'],
    extra_hosts: ['host.docker.internal:host-gateway'],
    environment: { FACILITATOR_TOKEN: expect.stringContaining('${FACILITATOR_TOKEN:?') },
  });
  const env = {
    RECEIPT_KEY: 'receipts-of-at-least-32-characters',
    QUOTE_KEY: 'quotes-of-at-least-32-characters-',
    FACILITATOR_TOKEN: facilitatorKey().secret,
  };
  const { config } = await loadConfig(path.join(dir, 'tollbook.toml'), env);
  expect(config.bindAddress.host).toBe('0.0.0.0');
  expect([...(config.jobs?.routes?.all.values() ?? [])].map(({ upstream }) => upstream)).toEqual([
    'http://host.docker.internal:3000',
  ]);
});

test('units have the secrets that the configuration names, and the database of another host is encrypted', async () => {
  const dir = path.join(temporaryFolder(), 'new');
  expect(
    (await init(dir, { sell: 'Portrait for 1 USD', database: 'db.internal:5433' }, '--units')).code,
  ).toBe(0);
  const unit = readFileSync(path.join(dir, 'tollbook.service'), 'utf8');
  const loaded = [...unit.matchAll(/^LoadCredential=(\w+):(.*)$/gm)].map(([, name, file]) => ({
    name,
    file,
  }));
  const secrets = filesIn(path.join(dir, 'credentials'));
  expect(new Set(loaded.map(({ name }) => name))).toEqual(new Set(secrets));
  for (const { name, file } of loaded) expect(file).toBe(path.join(dir, 'credentials', name ?? ''));
  expect(unit).toContain(` serve --config ${dir}/tollbook.toml\n`);
  const migrate = readFileSync(path.join(dir, 'tollbook-migrate.service'), 'utf8');
  expect(migrate).toContain(`LoadCredential=PGPASSWORD:${dir}/owner-credentials/PGPASSWORD`);
  expect(`${unit}${migrate}`).not.toContain('/etc/tollbook');
  const url = readFileSync(path.join(dir, 'credentials/DATABASE_URL'), 'utf8').trim();
  expect(url).toBe('postgresql://tollbook_gateway@db.internal:5433/tollbook?sslmode=verify-full');
});

test.each([
  ['an unknown network', { network: 'mainnet' }, /the network is one of base-sepolia, base/],
  [
    'an address of 39 digits',
    { 'pay-to': payTo.slice(0, -1) },
    /the address that gets the money is not an address/,
  ],
  [
    'an address whose checksum is wrong',
    { 'pay-to': payTo.replace('C51812', 'c51812') },
    /the address that gets the money/,
  ],
  ['no price', { sell: 'http://localhost:3000' }, /what you sell has a price/],
  [
    'the token itself as payee',
    { network: 'base', 'pay-to': tokenPresets['base/USDC'].asset },
    /is that of the token/,
  ],
  ['an API without its protocol', { sell: 'localhost:3000 for 1 USD' }, /looks like the address of an API/],
  ['a price in euros', { sell: 'Portrait for 1 EUR' }, /the price must be/],
  [
    'an API over plain http elsewhere',
    { sell: 'http://api.example for 1 USD' },
    /the address of the API must be https/,
  ],
  ['a database in a URL', { database: 'postgresql://a@b/c' }, /the database is HOST/],
  [
    'a public address over plain http',
    { 'public-url': 'http://api.example' },
    /the public address must be https/,
  ],
  ['a public address with a path', { 'public-url': 'https://api.example/a' }, /without a path/],
])('%s is refused, and nothing is written', async (_what, changed, said) => {
  const dir = path.join(temporaryFolder(), 'new');
  const { code, stderr } = await init(dir, changed);
  expect(code).toBe(2);
  expect(stderr).toMatch(said);
  expect(existsSync(dir)).toBe(false);
});

test.each([
  [
    'a facilitator that does not settle there',
    ['--network', 'base', '--facilitator', 'x402.org'],
    /for Base is payai, cdp/,
  ],
  ['a folder with a blank', ['--dir', '/tmp/a b'], /may have only letters/],
  ['a database for Compose', ['--compose'], /leave out --database/],
  ['Compose and units', ['--compose', '--units'], /exclude each other/],
])('%s is refused', async (_what, options, said) => {
  const rest = Object.entries(usual).filter(([name]) => !options.includes(`--${name}`));
  const args = ['init', ...options, ...rest.flatMap(([name, value]) => [`--${name}`, value])];
  const { code, stderr } = await tollbook(args);
  expect(code).toBe(2);
  expect(stderr).toMatch(said);
});

test.skipIf(noScript !== '')(
  `a wrong answer at a terminal is asked for again immediately${noScript}`,
  async () => {
    const dir = path.join(temporaryFolder(), 'new');
    const lines = ['bsae', 'base', '0x1', payTo, 'weather', usual.sell, '', 'http://api.example', 'none'];
    const command = [...commandLine, 'init', '--dir', dir].join(' ');
    const { code, stdout } = await spawnInput(
      ['--quiet', '--return', '--command', command, '/dev/null'],
      `${lines.join('\n')}\n`,
      ['script'],
    );
    const asked = [
      ...stdout.matchAll(
        /^(?:Where|Which|What|At which)|^.*(?:is one of|the address|has a price|must be https).*$/gm,
      ),
    ];
    expect({ code, said: asked.map(([text]) => text.trim().slice(0, 20)) }).toMatchObject({
      code: 0,
      said: [
        'Where',
        'the network is one o',
        'Where',
        'Which',
        'the address that get',
        'Which',
        'What',
        'what you sell has a ',
        'What',
        'Where',
        'At which',
        'the public address m',
        'At which',
      ],
    });
    expect((await load(dir)).config.publicUrl).toMatch(/^http:\/\/127/);
  },
);

test('units for a folder that systemd hides from them are refused', async () => {
  const { code, stderr } = await init('/root/gateway', {}, '--units');
  expect(code).toBe(2);
  expect(stderr).toMatch(/no unit can read \/root\/gateway/);
});

test('input that ends before the last question writes nothing and says which option answers', async () => {
  const dir = path.join(temporaryFolder(), 'new');
  const { code, stderr } = await spawnInput(['init', '--dir', dir], `base\n${payTo}\n`);
  expect(code).toBe(2);
  expect(stderr).toMatch(/the input ended: answer with --sell/);
  expect(existsSync(dir)).toBe(false);
});

test('files of a gateway that exists are never changed', async () => {
  const dir = path.join(temporaryFolder(), 'new');
  await init(dir);
  const before = filesIn(dir).map((name) => readFileSync(path.join(dir, name), 'utf8'));
  const { code, stderr } = await init(dir);
  expect(code).toBe(2);
  expect(stderr).toMatch(/tollbook\.toml exists, and nothing was changed/);
  expect(filesIn(dir).map((name) => readFileSync(path.join(dir, name), 'utf8'))).toEqual(before);
});
