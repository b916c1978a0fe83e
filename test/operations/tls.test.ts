import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, readFileSync, writeFileSync } from 'node:fs';
import https from 'node:https';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, onTestFinished, test } from 'vitest';
import { freePort } from '../../src/devnet/ports.ts';
import { startEmbeddedPostgres } from '../../src/devnet/postgres.ts';
import { postgresAccount } from '../../src/devnet/postgres-account.ts';
import { openPool } from '../../src/store/database.ts';
import { makeCertificate } from '../support/certificate.ts';
import { createDatabase } from '../support/database.ts';
import { startTestGateway } from '../support/gateway.ts';
import { isInstalled, packageEnvironment } from '../support/installed.ts';
import { logLines } from '../support/log-lines.ts';
import { readPage, root } from '../support/pages.ts';
import { temporaryFolder } from '../support/program.ts';
import { eventually } from '../support/wait.ts';

const page = readPage('docs/operations/tls.md');
const blockOf = (language: string): string =>
  page.blocks.find((block) => block.language === language)?.text ?? '';
const hasHaproxy = isInstalled('haproxy', '-v');
const hasOpenssl = isInstalled('openssl', 'version');
const hasPromtool = isInstalled('promtool');
const absent = (tool: string, package_: string): string =>
  `: NOT CHECKED, ${tool.toUpperCase()} IS NOT INSTALLED (apt-get install ${package_})`;
const noProxy = hasHaproxy && hasOpenssl ? '' : absent('haproxy or openssl', 'haproxy openssl');
const noOpenssl = hasOpenssl ? '' : absent('openssl', 'openssl');
const noPromtool = hasPromtool ? '' : absent('promtool', 'prometheus');
for (const missing of [noProxy, noPromtool]) if (missing) process.stderr.write(`\n*** TLS${missing}\n\n`);

test.skipIf(noProxy !== '')(
  `HAProxy as the page configures it passes a payment of 16 KiB on, and the address of its client, which the client cannot choose${noProxy}`,
  async () => {
    const { lines, logger } = logLines();
    // nothing here asks a peer
    const nowhere = 'http://127.0.0.1:1';
    const peers = { rpcUrl: nowhere, facilitatorUrl: nowhere };
    const chain = { ...peers, token: `0x${'1'.repeat(40)}`, secondToken: `0x${'2'.repeat(40)}` } as const;
    const gateway = await startTestGateway({ database: await createDatabase(), chain, logger });
    const folder = temporaryFolder();
    const { certificate, key } = makeCertificate(folder);
    const [bundle, file] = [path.join(folder, 'bundle.pem'), path.join(folder, 'haproxy.cfg')];
    writeFileSync(bundle, readFileSync(certificate, 'utf8') + readFileSync(key, 'utf8'));
    const [port, statusPort] = [await freePort(), await freePort()];
    const bind = blockOf('conf')
      .replace('10.0.0.10:443', `127.0.0.1:${port}`)
      .replace('/etc/haproxy/jobs.example.pem', bundle);
    const configuration = readFileSync(path.join(root, 'docs/operations/haproxy.cfg'), 'utf8')
      // as many files as any account may open
      .replace(/maxconn \d+/, 'maxconn 100')
      .replace('  bind 127.0.0.1:8400\n', bind)
      .replace(/^frontend status[^]*/m, (part) => part.replace('8404', String(statusPort)))
      .replaceAll(/10\.0\.0\.1[12]:8402/g, new URL(gateway.url).host);
    writeFileSync(file, configuration);
    const haproxy = spawn('haproxy', ['-db', '-f', file], { env: packageEnvironment(), stdio: 'pipe' });
    const exited = once(haproxy, 'exit');
    const complaints = text(haproxy.stderr);
    onTestFinished(async () => {
      haproxy.kill('SIGTERM');
      await exited;
      expect(await complaints).not.toMatch(/ALERT|WARNING/);
    });
    const ask = (headers: Readonly<Record<string, string>>): Promise<number | undefined> =>
      new Promise((resolve, reject) => {
        const to = { host: '127.0.0.1', port, path: '/x402/none', servername: 'localhost' };
        https
          .get({ ...to, localAddress: '127.0.0.9', ca: readFileSync(certificate), headers }, (answer) => {
            void text(answer).then(() => resolve(answer.statusCode), reject);
          })
          .on('error', reject);
      });
    await eventually(async () => expect(await ask({})).toBe(404));
    const sent = { 'payment-signature': 'x'.repeat(16_384), 'x-forwarded-for': '203.0.113.7' };
    expect(await ask(sent)).toBe(404);
    const clients = lines.filter(({ msg }) => msg === 'request').map(({ client }) => client);
    expect(new Set(clients)).toEqual(new Set(['127.0.0.9']));
  },
);

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
