import { chmodSync, existsSync, mkdtempSync, rmSync, statfsSync } from 'node:fs';
import http from 'node:http';
import { homedir, tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import type { TestProject } from 'vitest/node';
import { processEnvironment } from '../../src/base/config/environment.ts';
import { startEmbeddedPostgres } from '../../src/devnet/postgres.ts';
import { readerRole, writerRole } from '../../src/ledger/store/database.ts';
import { migrate } from '../../src/ledger/store/migrations.ts';
import { noteCosts } from './service-costs.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** The test server's URL with DATABASE in place of a database's name. */
    serverUrl: string;
  }
}

interface TestServer {
  readonly kind: 'given' | 'testcontainers' | 'embedded';
  readonly url: string;
  stop(): Promise<void>;
}

export const templateDatabase = 'tollbook_template';

/** One PostgreSQL for all tests: TEST_DATABASE_URL, else a container where Docker answers, else the embedded one. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const server = await startServer();
  await makeTemplate(server.url);
  project.provide('serverUrl', server.url);
  return () => {
    noteCosts('PostgreSQL', 'postgres');
    return server.stop();
  };
}

async function startServer(): Promise<TestServer> {
  const env = processEnvironment();
  const given = env['TEST_DATABASE_URL'];
  if (given) return { kind: 'given', url: withDatabase(given), stop: async () => {} };
  if (env['TEST_POSTGRES'] !== 'embedded' && (await dockerAnswers(env['DOCKER_HOST'])))
    return startContainer();
  return startEmbedded();
}

const image = 'postgres:18.6@sha256:86c951e05bf56c93d95d397747fb8820ac76cc3bedb78f43abd83eedbe3666ae';

async function startContainer(): Promise<TestServer> {
  const { PostgreSqlContainer } = await import('@testcontainers/postgresql');
  const container = await new PostgreSqlContainer(image)
    .withCommand(['postgres', '-c', 'fsync=off', '-c', 'max_connections=300'])
    .start();
  return {
    kind: 'testcontainers',
    url: withDatabase(container.getConnectionUri()),
    stop: async () => {
      await container.stop();
    },
  };
}

async function startEmbedded(): Promise<TestServer> {
  const dir = mkdtempSync(path.join(roomyMemory() ? '/dev/shm' : tmpdir(), 'tollbook-test-'));
  chmodSync(dir, 0o755);
  const postgres = await startEmbeddedPostgres({
    dir: path.join(dir, 'pg'),
    durable: false,
    // the files are in memory: asking their own process to read them costs more
    settings: { max_connections: '300', file_copy_method: 'copy', io_method: 'sync' },
  });
  return {
    kind: 'embedded',
    url: postgres.url('DATABASE'),
    stop: async () => {
      await postgres.stop();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

function roomyMemory(): boolean {
  if (!existsSync('/dev/shm')) return false;
  const { bavail, bsize } = statfsSync('/dev/shm');
  return bavail * bsize > 1 << 30;
}

function withDatabase(url: string): string {
  const parsed = new URL(url);
  parsed.pathname = '/DATABASE';
  return parsed.href;
}

async function makeTemplate(url: string): Promise<void> {
  const admin = new pg.Client(url.replace('DATABASE', 'postgres'));
  await admin.connect();
  await admin.query(`drop database if exists ${templateDatabase} with (force)`);
  await admin.query(`create database ${templateDatabase}`);
  // the same roles for all copies
  await migrate(url.replace('DATABASE', templateDatabase), { role: writerRole, readerRole });
  await admin.end();
}

/** A socket that accepts and never answers must not hang the tests. */
async function dockerAnswers(host: string | undefined): Promise<boolean> {
  const targets = host ? [dockerTarget(host)] : dockerSockets();
  const answers = await Promise.all(targets.map(pings));
  return answers.includes(true);
}

function dockerTarget(host: string): http.RequestOptions {
  if (host.startsWith('unix://')) return { socketPath: host.slice('unix://'.length) };
  const { hostname, port } = new URL(host);
  return { host: hostname, port: port || 2375 };
}

function dockerSockets(): http.RequestOptions[] {
  return [
    '/var/run/docker.sock',
    `${homedir()}/.docker/run/docker.sock`,
    `${homedir()}/.docker/desktop/docker.sock`,
  ]
    .filter((socketPath) => existsSync(socketPath))
    .map((socketPath) => ({ socketPath }));
}

function pings(target: http.RequestOptions): Promise<boolean> {
  return new Promise((resolve) => {
    const request = http.get({ ...target, path: '/_ping', timeout: 10_000 }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    request.on('timeout', () => request.destroy());
    request.on('error', () => resolve(false));
  });
}
