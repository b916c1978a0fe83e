import { execFileSync } from 'node:child_process';
import { chownSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, onTestFinished, vi } from 'vitest';
import { freePort } from '../../src/devnet/ports.ts';
import type { Account } from '../../src/devnet/guarded-process.ts';
import { startEmbeddedPostgres } from '../../src/devnet/postgres.ts';
import { isReachable, postgresAccount } from '../../src/devnet/postgres-account.ts';
import { packageEnvironment } from '../support/installed.ts';
import { root } from '../support/pages.ts';
import { endProcessesAround } from '../support/processes.ts';
import { destroy, type Program, spawnProgram } from '../support/program.ts';
import { timeLimits } from '../support/time-limits.ts';
import { inOrder, mountsOf, type Service } from './compose-file.ts';
import { makeImage, type Stage } from './dockerfile.ts';
import { type Forwarder, startForwarder } from './forwarder.ts';

export interface RunningServices {
  readonly programs: ReadonlyMap<string, Program>;
  readonly databasePort: number;
  /** Puts this machine's places in the text for those of the containers. */
  here(text: string): string;
}

/** The lines of the devnet's output, and the ports of it that a configuration names. */
const devnetPorts = { rpcUrl: 8412, facilitatorUrl: 8413, modelUpstreamUrl: 8415 } as const;

/**
 * Runs the services of a compose file as processes on this machine: each with its own variables only, in its image's files, once those
 * that it depends on are started, healthy or at their end. Where the tests run as root, the services do not, and can write to /tmp and
 * only to volumes.
 */
export async function runServices(
  services: Readonly<Record<string, Service>>,
  stages: ReadonlyMap<string, Stage>,
  folder: string,
): Promise<RunningServices> {
  const programs = new Map<string, Program>();
  onTestFinished(async () => {
    for (const program of programs.values()) await destroy(program);
    await endProcessesAround(folder);
    rmSync(folder, { recursive: true, force: true });
  });
  for (const [name, stage] of stages) makeImage(stage, root, path.join(folder, name));
  const databasePort = await freePort();
  const forwarders = new Map<string, Forwarder>();
  for (const fact of Object.keys(devnetPorts)) forwarders.set(fact, await startForwarder());
  const account = unprivileged();
  const here = await mapper(folder, databasePort, forwarders);
  for (const [name, service] of Object.entries(services)) mountVolumes(folder, name, service, account);

  const launch = (
    name: string,
    service: Service,
    words: readonly string[],
    more: Record<string, string> = {},
  ): Program => {
    const inside = (text: string): string => here(inMounts(folder, name, service, text));
    const variables = Object.entries(service.environment).map(([key, value]) => [key, inside(value)]);
    const argv = words.map((word) => (word === 'node' ? process.execPath : inside(word)));
    const cwd = path.join(folder, service.build?.target ?? '');
    return spawnProgram(argv, cwd, { ...Object.fromEntries(variables), ...more }, account);
  };
  const expectHealthy = (name: string, service: Service): Promise<void> =>
    vi.waitFor(
      async () => {
        const [, ...words] = service.healthcheck?.test ?? ['CMD'];
        const { ended } = launch(name, service, words, { PGPORT: String(databasePort) });
        expect(await ended).toMatchObject({ code: 0 });
      },
      // each is a process
      { timeout: timeLimits.testMs, interval: 300 },
    );

  for (const name of inOrder(services)) {
    const service = services[name];
    if (!service) continue;
    for (const [other, { condition }] of Object.entries(service.depends_on)) {
      const dependency = services[other];
      if (condition === 'service_healthy' && dependency) await expectHealthy(other, dependency);
      if (condition === 'service_completed_successfully')
        expect(await programs.get(other)?.ended).toMatchObject({ code: 0 });
    }
    for (const volume of service.volumes)
      if (typeof volume !== 'string' && !volume.target.startsWith('/docker-entrypoint-initdb.d/'))
        writeFileSync(here(volume.target), here(readFileSync(path.join(root, volume.source), 'utf8')));
    const stage = stages.get(service.build?.target ?? '');
    if (!stage) {
      await startDatabase(folder, databasePort, {
        ...service,
        environment: Object.fromEntries(
          Object.entries(service.environment).map(([key, value]) => [
            key,
            inMounts(folder, name, service, value),
          ]),
        ),
      });
      continue;
    }
    const command = service.command ?? stage.command;
    const program = launch(name, service, [...(service.entrypoint ?? stage.entrypoint), ...command]);
    programs.set(name, program);
    if (service.command === undefined && stage.command.includes('devnet'))
      await connectDevnet(program, forwarders);
  }
  return { programs, databasePort, here };
}

/** Where a service's volumes are mounted. */
const mountsIn = (folder: string, name: string): string => path.join(folder, 'mounts', name);

/** Makes a folder for each volume, and for each service links to those that it has. */
function mountVolumes(folder: string, name: string, service: Service, account: Account | undefined): void {
  for (const { volume, target } of mountsOf(service)) {
    const content = path.join(folder, 'volumes', volume);
    mkdirSync(content, { recursive: true });
    // as an image's folder gives it to its user, when the volume is new
    if (account) chownSync(content, account.uid, account.gid);
    const place = path.join(mountsIn(folder, name), target);
    mkdirSync(path.dirname(place), { recursive: true });
    symlinkSync(content, place);
  }
}

/** A path in a service's volumes, or of the folder that has them, as it is here. Other texts are returned as they are. */
function inMounts(folder: string, name: string, service: Service, text: string): string {
  const isMounted = mountsOf(service).some(
    ({ target }) => text === target || text.startsWith(`${target}/`) || path.dirname(target) === text,
  );
  return isMounted ? path.join(mountsIn(folder, name), text) : text;
}

/** Undefined if the tests are not run by root, or the account could not enter the repository. */
function unprivileged(): Account | undefined {
  const account = postgresAccount();
  return [process.execPath, root].every((file) => isReachable(file, account)) ? account : undefined;
}

/** The names of the containers' network and files, and what stands for them here. */
async function mapper(
  folder: string,
  databasePort: number,
  forwarders: ReadonlyMap<string, Forwarder>,
): Promise<(text: string) => string> {
  const gateway = `127.0.0.1:${await freePort()}`;
  const places: [RegExp, string][] = [
    [/@database\//g, `@127.0.0.1:${databasePort}/`],
    [/(?:gateway|127\.0\.0\.1|0\.0\.0\.0):8402/g, gateway],
    [/\/etc\/tollbook\/tollbook\.toml/g, path.join(folder, 'tollbook.toml')],
  ];
  for (const [fact, port] of Object.entries(devnetPorts))
    places.push([new RegExp(`127\\.0\\.0\\.1:${port}`, 'g'), `127.0.0.1:${forwarders.get(fact)?.port}`]);
  return (text) => places.reduce((changed, [name, place]) => changed.replaceAll(name, () => place), text);
}

async function connectDevnet(devnet: Program, forwarders: ReadonlyMap<string, Forwarder>): Promise<void> {
  for (const [fact, forwarder] of forwarders) {
    const [, port] = await devnet.says(new RegExp(`${fact} +"http://127\\.0\\.0\\.1:(\\d+)`));
    forwarder.leadTo(Number(port));
  }
}

/** PostgreSQL as its image starts it on an empty volume: with the scripts that are mounted into its folder for a new database. */
async function startDatabase(folder: string, port: number, service: Service): Promise<void> {
  const hba = path.join(folder, 'pg_hba.conf');
  writeFileSync(hba, 'local all postgres trust\nhost all all 127.0.0.1/32 scram-sha-256\n');
  const server = await startEmbeddedPostgres({
    dir: path.join(folder, 'pg'),
    durable: false,
    settings: { listen_addresses: '127.0.0.1', port: String(port), hba_file: hba },
  });
  onTestFinished(() => server.stop());
  const socketDir = new URL(server.url().replace('@/', '@localhost/')).searchParams.get('host') ?? '';
  const options = ['--set', 'ON_ERROR_STOP=1', '--no-psqlrc', '--no-password', '--username', 'postgres'];
  for (const volume of service.volumes)
    if (typeof volume !== 'string' && volume.target.startsWith('/docker-entrypoint-initdb.d/'))
      execFileSync('psql', [...options, '--file', path.join(root, volume.source)], {
        env: { ...packageEnvironment(), ...service.environment, PGHOST: socketDir, PGPORT: String(port) },
        stdio: ['ignore', 'ignore', 'pipe'],
      });
}
