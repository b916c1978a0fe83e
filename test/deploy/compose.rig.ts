import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { parse as parseToml } from 'smol-toml';
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { loadConfig } from '../../src/base/config/load.ts';
import { isInstalled, packageEnvironment } from '../support/installed.ts';
import { root } from '../support/pages.ts';
import { makeFolder, temporaryFolder } from '../support/program.ts';
import { mountsOf, readCompose, type Service, variablesOf } from './compose-file.ts';
import { readStages, type Stage } from './dockerfile.ts';
import { runServices } from './running-services.ts';

const read = (file: string): string => readFileSync(path.join(root, file), 'utf8');
const composeText = read('docker-compose.yml');
const ignored = read('.dockerignore').split('\n');
const stages = readStages(read('Dockerfile'));
const variables = variablesOf(composeText);
const { services, volumes } = readCompose(composeText, {});
const configFile = variables.get('TOLLBOOK_CONFIG') ?? '';
const secretsService = serviceOf('secrets');
const secretNames = Object.keys(secretsService.environment);

function serviceOf(name: string): Service {
  const service = services[name];
  if (!service) throw new Error(`docker-compose.yml has no service ${name}`);
  return service;
}

function stageOf({ build }: Service): Stage {
  const stage = stages.get(build?.target ?? '');
  if (!stage) throw new Error(`the Dockerfile has no stage ${build?.target}`);
  return stage;
}

/** Runs the script of the service `secrets` on a folder, and reads what is there: of each service its secrets. */
function makeSecrets(folder: string, env: Readonly<Record<string, string>> = {}): Record<string, object> {
  for (const { target } of mountsOf(secretsService))
    mkdirSync(path.join(folder, path.basename(target)), { recursive: true });
  const [, script = ''] = secretsService.entrypoint ?? [];
  execFileSync(process.execPath, [path.join(root, script), folder], {
    env: { ...packageEnvironment(), ...env },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  return Object.fromEntries(
    readdirSync(folder).map((service) => [
      service,
      Object.fromEntries(
        readdirSync(path.join(folder, service)).map((name) => [
          name,
          readFileSync(path.join(folder, service, name), 'utf8'),
        ]),
      ),
    ]),
  );
}

test('docker-compose.yml needs nothing: each variable has a value without it, and no service waits for a profile', () => {
  expect([...variables].filter(([, fallback]) => fallback === undefined)).toEqual([]);
  expect([...variables.keys()].toSorted()).toEqual([...secretNames, 'TOLLBOOK_CONFIG'].toSorted());
});

test('the first start makes each secret, and a later one changes none but that which it is given', () => {
  const folder = temporaryFolder();
  const made = makeSecrets(folder);
  const values = Object.values(made).flatMap((secrets) => Object.entries(secrets as Record<string, string>));
  const distinct = new Map(values);
  expect([...distinct.keys()].toSorted()).toEqual(secretNames.toSorted());
  expect(new Set(distinct.values()).size).toBe(secretNames.length);
  for (const [name, value] of values) {
    expect(value).toMatch(/^[0-9a-f]{64}$/);
    expect(value).toBe(distinct.get(name));
  }
  expect(makeSecrets(folder)).toEqual(made);
  // a crash between the copies of one secret
  rmSync(path.join(folder, 'gateway/GATEWAY_PASSWORD'));
  expect(makeSecrets(folder)).toEqual(made);
  const given = makeSecrets(folder, { RUNNER_TOKEN: 'of the operator' });
  const changed = { RUNNER_TOKEN: 'of the operator' };
  expect(given).toEqual({ ...made, gateway: { ...made['gateway'], ...changed } });
  // what a start that was interrupted has left
  writeFileSync(path.join(folder, 'gateway/RUNNER_TOKEN.new'), 'half', { mode: 0o444 });
  const again = makeSecrets(folder, { RUNNER_TOKEN: 'another of the operator' });
  expect(again['gateway']).toMatchObject({ RUNNER_TOKEN: 'another of the operator' });
});

test('each service of docker-compose.yml reads the secrets that the first start makes for it, and no others', () => {
  const made = makeSecrets(temporaryFolder());
  const folderOf = new Map(
    mountsOf(secretsService).map(({ volume, target }) => [volume, path.basename(target)]),
  );
  const readers = Object.entries(services).flatMap(([name, service]) => {
    const mount = mountsOf(service).find(({ target }) => target === '/run/tollbook');
    if (!mount) return [];
    const files = Object.values(service.environment).flatMap((value) =>
      value.startsWith(`${mount.target}/`) ? [path.basename(value)] : [],
    );
    expect(Object.keys(made[folderOf.get(mount.volume) ?? ''] ?? {}).toSorted()).toEqual(files.toSorted());
    expect(service.volumes).toContain(`${mount.volume}:/run/tollbook:ro`);
    expect(folderOf.get(mount.volume)).toBe(name);
    return [name];
  });
  expect(readers.toSorted()).toEqual(Object.keys(made).toSorted());
});

test('no service of docker-compose.yml may do or knows more than it needs', () => {
  for (const [name, service] of Object.entries(services)) {
    const user = service.build ? stageOf(service).user : service.user;
    expect({ name, ...service, user }).toMatchObject({
      user: expect.stringMatching(/^(?:node|postgres)$/),
      read_only: true,
      cap_drop: ['ALL'],
      security_opt: ['no-new-privileges:true'],
      tmpfs: expect.arrayContaining(['/tmp']),
    });
  }
  // a client reaches the gateway alone, and only from this machine
  expect(Object.values(services).flatMap(({ ports }) => ports)).toEqual(['127.0.0.1:8402:8402']);
});

/** What a service names and the repository, the images or the file do not have. */
function missingIn(name: string, service: Service): string[] {
  const mounted = [
    ...service.volumes.flatMap((volume) =>
      typeof volume === 'string' || existsSync(path.join(root, volume.source)) ? [] : [volume.source],
    ),
    ...mountsOf(service).flatMap(({ volume }) => (volume in volumes ? [] : [volume])),
  ];
  const copied = service.build ? stageOf(service).copies.map(([from]) => from) : [];
  const absent = copied.filter(
    (from) => !existsSync(path.join(root, from)) || ignored.includes(from.split('/', 1)[0] ?? ''),
  );
  const neverThere = Object.entries(service.depends_on).flatMap(([other, { condition }]) => {
    const dependency = services[other];
    const canBe = {
      service_started: dependency !== undefined,
      service_healthy: dependency?.healthcheck !== undefined,
      service_completed_successfully: dependency?.restart === 'no',
    };
    return canBe[condition] ? [] : [`${name} waits for ${other}`];
  });
  const shared = /^service:(.*)$/.exec(service.network_mode ?? '')?.[1];
  const noNetwork = shared === undefined || shared in services ? [] : [shared];
  return [...mounted, ...absent, ...neverThere, ...noNetwork];
}

test('what docker-compose.yml mounts, builds and waits for exists', () => {
  expect(Object.entries(services).flatMap(([name, service]) => missingIn(name, service))).toEqual([]);
  expect(ignored).toEqual(expect.arrayContaining(['.env', '.git']));
});

test('the gateway of docker-compose.yml gets every secret that its configuration names, and the time that a stop takes', async () => {
  const { environment, stop_grace_period: grace = '' } = services['gateway'] ?? {};
  const given = Object.keys({ ...environment }).map((name) => name.replace(/_FILE$/, ''));
  const env = given.map((name) => [name, `${name}-of-thirty-two-characters-or-more`]);
  const { config, warnings } = await loadConfig(path.join(root, configFile), Object.fromEntries(env));
  expect(warnings).toEqual([]);
  const stopSecs = config.drainDelaySecs + config.shutdownGraceSecs;
  expect(Number(/^(\d+)s$/.exec(grace)?.[1])).toBeGreaterThan(stopSecs);
  expect(config.bindAddress).toEqual({ host: '0.0.0.0', port: 8402 });
  const named = [...read(configFile).matchAll(/"env:(\w+)"/g)].map(([, name = '']) => name);
  // RUNNER_TOKEN is that of a configuration which `tollbook init` writes
  expect(given.toSorted()).toEqual([...named, 'RUNNER_TOKEN', 'DATABASE_URL', 'PGPASSWORD'].toSorted());
  // the addresses that every devnet has
  const dev = parseToml(read('config/dev.toml')) as { accepted_tokens: object[]; networks: object[] };
  const { eip712_name: _, peg: __, ...token } = dev.accepted_tokens[0] as Record<string, unknown>;
  expect(parseToml(read(configFile))).toMatchObject({ accepted_tokens: [token], networks: dev.networks });
});

const awkward = `a#b@c/d%e?f g&h=i:j+k\\l"m'n$o`;

test.skipIf(!isInstalled('psql'))(
  'docker-compose.yml reaches a paid self-check, with any characters in the passwords (skipped where psql is missing)',
  async () => {
    const folder = makeFolder();
    const passwords = secretNames.filter((name) => name.endsWith('_PASSWORD'));
    const env = Object.fromEntries(passwords.map((name) => [name, `${name}${awkward}`]));
    const { programs, databasePort } = await runServices(
      readCompose(composeText, env).services,
      stages,
      folder,
    );
    expect(await programs.get('self-check')?.ended).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(
        /402 payment required.*202 accepted: .* paid 3\.2 USDC.*result: hello, runner\n$/s,
      ),
      stderr: '',
    });
    // the owner and the gateway are members of the role
    expect(await programs.get('migrate')?.ended).toMatchObject({ stderr: '' });
    expect(programs.get('gateway')?.stdout()).not.toContain("the owner's rights");

    const connection = { host: '127.0.0.1', port: databasePort, database: 'tollbook' };
    const gateway = new pg.Client({
      ...connection,
      user: 'tollbook_gateway',
      password: env['GATEWAY_PASSWORD'],
    });
    await gateway.connect();
    onTestFinished(() => gateway.end());
    const { rows } = await gateway.query(
      `select distinct usename, rolsuper, rolcreaterole, rolcreatedb from pg_stat_activity join pg_roles on rolname = usename
       where datname = 'tollbook' and application_name like 'tollbook%'`,
    );
    const noMore = { rolsuper: false, rolcreaterole: false, rolcreatedb: false };
    expect(rows).toEqual([{ usename: 'tollbook_gateway', ...noMore }]);
    for (const change of ['delete from tollbook.event', 'create table tollbook.mine ()'])
      await expect(gateway.query(change)).rejects.toThrow('permission denied');
  },
);
