import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { parse as parseToml } from 'smol-toml';
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { loadConfig } from '../../src/base/config/load.ts';
import { isInstalled, packageEnvironment } from '../support/installed.ts';
import { root } from '../support/pages.ts';
import { makeFolder, temporaryFolder } from '../support/program.ts';
import { readCompose, readEnv, type Service, variablesOf } from './compose-file.ts';
import { readStages, type Stage } from './dockerfile.ts';
import { runServices } from './running-services.ts';

const read = (file: string): string => readFileSync(path.join(root, file), 'utf8');
const composeText = read('docker-compose.yml');
const exampleEnv = readEnv(read('.env.example'));
const configFile = exampleEnv['TOLLBOOK_CONFIG'] ?? '';
const ignored = read('.dockerignore').split('\n');
const stages = readStages(read('Dockerfile'));
const { services, volumes } = readCompose(composeText, exampleEnv);

function stageOf({ build }: Service): Stage {
  const stage = stages.get(build?.target ?? '');
  if (!stage) throw new Error(`the Dockerfile has no stage ${build?.target}`);
  return stage;
}

/** Runs the script that writes .env, in a copy of its folder, and reads what it wrote. */
function makeEnv(folder: string): Record<string, string> {
  mkdirSync(path.join(folder, 'deploy'), { recursive: true });
  for (const file of ['.env.example', 'deploy/compose'])
    cpSync(path.join(root, file), path.join(folder, file), { recursive: true });
  const script = path.join(folder, 'deploy/compose/make-env.sh');
  execFileSync('sh', [script], { env: packageEnvironment(), stdio: ['ignore', 'ignore', 'pipe'] });
  return readEnv(readFileSync(path.join(folder, '.env'), 'utf8'));
}

test('the variables of .env.example are those that docker-compose.yml takes', () => {
  const own = Object.keys(exampleEnv).filter((name) => !name.startsWith('COMPOSE_'));
  expect(own.toSorted()).toEqual([...variablesOf(composeText)].toSorted());
});

test('make-env.sh gives each secret its own value, and does not touch a .env that is there', () => {
  const folder = temporaryFolder();
  const env = makeEnv(folder);
  const secrets = Object.keys(exampleEnv).filter((name) => exampleEnv[name] === '');
  expect(Object.keys(env)).toEqual(Object.keys(exampleEnv));
  expect(new Set(secrets.map((name) => env[name])).size).toBe(secrets.length);
  for (const name of secrets) expect(env[name]).toMatch(/^[0-9a-f]{64}$/);
  expect(() => makeEnv(folder)).toThrow('there already');
  expect(readEnv(readFileSync(path.join(folder, '.env'), 'utf8'))).toEqual(env);
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
  const passwords = { OWNER_PASSWORD: 'the-owner', POSTGRES_PASSWORD: 'the-superuser' };
  const marked = readCompose(composeText, { ...exampleEnv, ...passwords });
  const holders = (password: string) =>
    Object.entries(marked.services)
      .filter(([, { environment }]) => Object.values(environment).some((value) => value.includes(password)))
      .map(([name]) => name);
  expect(holders('the-owner')).toEqual(['database', 'migrate']);
  expect(holders('the-superuser')).toEqual(['database']);
  // a client reaches the gateway alone, and only from this machine
  expect(Object.values(services).flatMap(({ ports }) => ports)).toEqual(['127.0.0.1:8402:8402']);
});

/** What a service names and the repository, the images or the file do not have. */
function missingIn(name: string, service: Service): string[] {
  const mounted = service.volumes.flatMap((volume) => {
    if (typeof volume !== 'string') return existsSync(path.join(root, volume.source)) ? [] : [volume.source];
    const [own = ''] = volume.split(':', 1);
    return own in volumes ? [] : [own];
  });
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
    // one that always starts cannot wait for one of a profile
    const isThere = dependency?.profiles.every((profile) => service.profiles.includes(profile)) ?? false;
    return canBe[condition] && isThere ? [] : [`${name} waits for ${other}`];
  });
  const shared = /^service:(.*)$/.exec(service.network_mode ?? '')?.[1];
  const noNetwork = shared === undefined || shared in services ? [] : [shared];
  return [...mounted, ...absent, ...neverThere, ...noNetwork];
}

test('what docker-compose.yml mounts, builds and waits for exists', () => {
  expect(Object.entries(services).flatMap(([name, service]) => missingIn(name, service))).toEqual([]);
  expect(exampleEnv['COMPOSE_PROFILES']).toBe('devnet');
  expect(ignored).toEqual(expect.arrayContaining(['.env', '.git']));
});

test('the gateway of docker-compose.yml gets every secret that its configuration names, and the time that a stop takes', async () => {
  const { environment, stop_grace_period: grace = '' } = services['gateway'] ?? {};
  const env = Object.entries({ ...environment }).map(([name, value]) => [
    name,
    value === '' ? `${name}-of-thirty-two-characters-or-more` : value,
  ]);
  const { config, warnings } = await loadConfig(path.join(root, configFile), Object.fromEntries(env));
  expect(warnings).toEqual([]);
  const stopSecs = config.drainDelaySecs + config.shutdownGraceSecs;
  expect(Number(/^(\d+)s$/.exec(grace)?.[1])).toBeGreaterThan(stopSecs);
  expect(config.bindAddress).toEqual({ host: '0.0.0.0', port: 8402 });
  const named = [...read(configFile).matchAll(/"env:(\w+)"/g)].map(([, name = '']) => name);
  expect(Object.keys({ ...environment }).toSorted()).toEqual(
    [...named, 'DATABASE_URL', 'PGPASSWORD'].toSorted(),
  );
  // the addresses that every devnet has
  const dev = parseToml(read('config/dev.toml')) as { accepted_tokens: object[]; networks: object[] };
  const { eip712_name: _, ...token } = dev.accepted_tokens[0] as Record<string, unknown>;
  expect(parseToml(read(configFile))).toMatchObject({ accepted_tokens: [token], networks: dev.networks });
});

const awkward = `a#b@c/d%e?f g&h=i:j+k\\l"m'n$o`;

test.skipIf(!isInstalled('psql'))(
  'docker-compose.yml reaches a paid self-check, with any characters in the passwords (skipped where psql is missing)',
  async () => {
    const folder = makeFolder();
    const env = makeEnv(folder);
    for (const name of Object.keys(env)) if (name.endsWith('_PASSWORD')) env[name] = `${name}${awkward}`;
    const { programs, databasePort } = await runServices(
      readCompose(composeText, env).services,
      stages,
      folder,
    );
    expect(await programs.get('self-check')?.ended).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(
        /402 payment required.*202 accepted: .* paid 3200000 atoms of USDC.*result: hello, runner\n$/s,
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
