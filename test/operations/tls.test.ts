import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import https from 'node:https';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, onTestFinished, test } from 'vitest';
import { freePort } from '../../src/devnet/ports.ts';
import { startEmbeddedPostgres } from '../../src/devnet/postgres.ts';
import { postgresAccount } from '../../src/devnet/postgres-account.ts';
import { openPool } from '../../src/ledger/store/database.ts';
import { makeCertificate } from '../support/certificate.ts';
import { createDatabase } from '../support/database.ts';
import { startTestGateway } from '../support/gateway.ts';
import { isInstalled, notChecked, packageEnvironment } from '../support/installed.ts';
import { logLines } from '../support/log-lines.ts';
import { readPage, root } from '../support/pages.ts';
import { temporaryFolder } from '../support/program.ts';
import { eventually } from '../support/wait.ts';

const page = readPage('docs/operations/tls.md');
const blockOf = (language: string): string =>
  page.blocks.find((block) => block.language === language)?.text ?? '';
const hasOpenssl = isInstalled('openssl', 'version');
const noOpenssl = notChecked('TLS', hasOpenssl ? [] : ['openssl']);
const noPromtool = notChecked('TLS', isInstalled('promtool') ? [] : ['promtool of prometheus']);

interface Place {
  /** An empty one. */
  readonly folder: string;
  readonly certificate: string;
  readonly key: string;
  readonly port: number;
  /** `HOST:PORT` of what stands for the gateways. */
  readonly upstream: string;
}

interface Proxy {
  readonly name: string;
  readonly absence: string;
  /** Writes the page's configuration for this place; the command that runs it in the foreground. */
  readonly configure: (place: Place) => Promise<readonly [command: string, ...args: string[]]>;
}

const proxies: readonly Proxy[] = [
  {
    name: 'HAProxy',
    absence: noOpenssl || notChecked('TLS', isInstalled('haproxy', '-v') ? [] : ['haproxy']),
    configure: async ({ folder, certificate, key, port, upstream }) => {
      const [bundle, file] = [path.join(folder, 'bundle.pem'), path.join(folder, 'haproxy.cfg')];
      writeFileSync(bundle, readFileSync(certificate, 'utf8') + readFileSync(key, 'utf8'));
      const statusPort = await freePort();
      const bind = blockOf('conf')
        .replace('10.0.0.10:443', `127.0.0.1:${port}`)
        .replace('/etc/haproxy/jobs.example.pem', bundle);
      const configuration = readFileSync(path.join(root, 'docs/operations/haproxy.cfg'), 'utf8')
        // as many files as any account may open
        .replace(/maxconn \d+/, 'maxconn 100')
        .replace('  bind 127.0.0.1:8400\n', bind)
        .replace(/^frontend status[^]*/m, (part) => part.replace('8404', String(statusPort)))
        .replaceAll(/10\.0\.0\.1[12]:8402/g, upstream);
      writeFileSync(file, configuration);
      return ['haproxy', '-db', '-f', file];
    },
  },
  {
    name: 'nginx',
    absence: noOpenssl || notChecked('TLS', isInstalled('nginx', '-v') ? [] : ['nginx']),
    configure: async ({ folder, certificate, key, port, upstream }) => {
      const server = blockOf('nginx')
        .replace('10.0.0.10:443', `127.0.0.1:${port}`)
        .replace('/etc/nginx/jobs.example.pem', certificate)
        .replace('/etc/nginx/jobs.example.key', key)
        .replace('10.0.0.11:8402', upstream);
      // what the package's own nginx.conf has around it, in folders of this test
      const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
        (what) => `${what}_temp_path ${folder}/${what};`,
      );
      const file = path.join(folder, 'nginx.conf');
      writeFileSync(
        file,
        `pid ${folder}/pid;\ndaemon off;\n${postgresAccount() ? 'user root;' : ''}\nevents {}\nhttp {\naccess_log off;\n${temporary.join('\n')}\n${server}}\n`,
      );
      return ['nginx', '-e', 'stderr', '-c', file];
    },
  },
];
/** Starts the proxy before an upstream; makes requests through it, of a client of its own address. */
async function startProxy({ configure }: Proxy, upstream: string) {
  const folder = temporaryFolder();
  const { certificate, key } = makeCertificate(folder);
  const port = await freePort();
  const [command, ...args] = await configure({ folder, certificate, key, port, upstream });
  const proxy = spawn(command, args, { env: packageEnvironment(), stdio: 'pipe' });
  const exited = once(proxy, 'exit');
  const complaints = text(proxy.stderr);
  onTestFinished(async () => {
    proxy.kill('SIGTERM');
    await exited;
    expect(await complaints).not.toMatch(/ALERT|WARNING|\[(?:emerg|alert|crit|error|warn)\]/);
  });
  const ca = readFileSync(certificate);
  const ask = (headers: Readonly<Record<string, string>> = {}): Promise<IncomingMessage> =>
    new Promise((resolve, reject) => {
      const to = { host: '127.0.0.1', port, path: '/x402/none', servername: 'localhost' };
      https.get({ ...to, localAddress: '127.0.0.9', ca, headers }, resolve).on('error', reject);
    });
  await eventually(async () => void (await ask()).resume());
  return { ask };
}

describe.each(proxies)('$name as the page configures it', (proxy) => {
  const { absence } = proxy;

  test.skipIf(absence !== '')(
    `passes a payment of 16 KiB on, and the address of its client, which the client cannot choose${absence}`,
    async () => {
      const { lines, logger } = logLines();
      // nothing here asks a peer
      const nowhere = 'http://127.0.0.1:1';
      const peers = { rpcUrl: nowhere, facilitatorUrl: nowhere };
      const chain = { ...peers, token: `0x${'1'.repeat(40)}`, secondToken: `0x${'2'.repeat(40)}` } as const;
      const gateway = await startTestGateway({ database: await createDatabase(), chain, logger });
      // HAProxy reports a gateway that is not ready yet
      await eventually(async () => expect((await fetch(`${gateway.url}/x402/ready`)).status).toBe(200));
      const { ask } = await startProxy(proxy, new URL(gateway.url).host);
      const answer = await ask({ 'payment-signature': 'x'.repeat(16_384), 'x-forwarded-for': '203.0.113.7' });
      expect(answer.statusCode).toBe(404);
      answer.resume();
      const clients = lines.filter(({ msg }) => msg === 'request').map(({ client }) => client);
      expect(new Set(clients)).toEqual(new Set(['127.0.0.9']));
    },
  );

  test.skipIf(absence !== '')(
    `passes headers of 12 KiB on, and the first event of a stream before its second${absence}`,
    async () => {
      let open: ServerResponse | undefined;
      const upstream = createServer(({ url }, response) => {
        if (url === '/x402/ready') return void response.end();
        response.writeHead(200, {
          'content-type': 'text/event-stream',
          'payment-required': 'x'.repeat(12_000),
        });
        response.write('data: one\n\n');
        open = response;
      }).listen(0, '127.0.0.1');
      await once(upstream, 'listening');
      onTestFinished(() => {
        upstream.close().closeAllConnections();
      });
      const { ask } = await startProxy(proxy, `127.0.0.1:${(upstream.address() as AddressInfo).port}`);
      const answer = await ask();
      expect(answer.headers['payment-required']).toHaveLength(12_000);
      const [first] = (await once(answer, 'data')) as [Buffer];
      expect(String(first)).toBe('data: one\n\n');
      open?.end('data: two\n\n');
      expect(await text(answer)).toBe('data: two\n\n');
    },
  );
});

test.skipIf(noOpenssl !== '')(
  `a connection to PostgreSQL with sslmode=verify-full is encrypted, and none is made to a server with another name or authority${noOpenssl}`,
  async () => {
    const folder = temporaryFolder();
    const { certificate, key } = makeCertificate(folder);
    const ca = path.join(folder, 'ca.pem');
    writeFileSync(ca, readFileSync(certificate));
    const account = postgresAccount();
    if (account) for (const file of [certificate, key]) chownSync(file, account.uid, account.gid);
    const port = await freePort();
    const server = await startEmbeddedPostgres({
      dir: path.join(temporaryFolder(), 'pg'),
      durable: false,
      settings: {
        listen_addresses: '127.0.0.1',
        port: String(port),
        ssl: 'on',
        ssl_cert_file: certificate,
        ssl_key_file: key,
      },
    });
    onTestFinished(() => server.stop());
    const isEncrypted = async (host: string, query: string): Promise<boolean | undefined> => {
      const pool = openPool({ url: `postgresql://postgres@${host}:${port}/postgres${query}` });
      try {
        const { rows } = await pool.query<{ ssl: boolean }>(
          'select ssl from pg_stat_ssl where pid = pg_backend_pid()',
        );
        return rows[0]?.ssl;
      } finally {
        await pool.end();
      }
    };
    expect(await isEncrypted('127.0.0.1', '')).toBe(false);
    expect(await isEncrypted('localhost', `?sslmode=verify-full&sslrootcert=${ca}`)).toBe(true);
    await expect(isEncrypted('localhost', '?sslmode=verify-full')).rejects.toThrow(/self.signed/);
    const otherName = `?sslmode=verify-full&sslrootcert=${ca}`;
    await expect(isEncrypted('127.0.0.1', otherName)).rejects.toThrow(/does not match certificate/);
    // as the page says: no weaker than verify-full
    await expect(isEncrypted('localhost', '?sslmode=require')).rejects.toThrow(/self.signed/);
    expect(await isEncrypted('localhost', '?sslmode=no-verify')).toBe(true);
  },
);

test.skipIf(noOpenssl !== '')(`the page's command finds a certificate that expires soon${noOpenssl}`, () => {
  const command = page.blocks.find(({ text: commands }) => commands.startsWith('openssl'))?.text ?? '';
  const check = (days: number): void => {
    const { certificate } = makeCertificate(temporaryFolder(), days);
    const words = command.trim().replace('/etc/haproxy/jobs.example.pem', certificate).split(' ');
    execFileSync('openssl', words.slice(1), { stdio: 'pipe', env: packageEnvironment() });
  };
  check(30);
  expect(() => check(10)).toThrow(/Command failed/);
});

test.skipIf(noPromtool !== '')(`Prometheus accepts the page's rule about certificates${noPromtool}`, () => {
  const file = path.join(temporaryFolder(), 'rules.yml');
  writeFileSync(file, blockOf('yaml'));
  const said = execFileSync('promtool', ['check', 'rules', file], {
    encoding: 'utf8',
    env: packageEnvironment(),
  });
  expect(said).toContain('1 rules found');
});
