import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { devnetKeys } from '../../src/devnet/accounts.ts';
import { freePort } from '../../src/devnet/ports.ts';
import { postgresAccount } from '../../src/devnet/postgres-account.ts';
import { json, startApi } from '../jobs/http/routes/support.ts';
import { makeCertificate } from '../support/certificate.ts';
import { childEnvironment } from '../support/child-environment.ts';
import { useChain } from '../support/devnet.ts';
import { isInstalled, notChecked } from '../support/installed.ts';
import { payer } from '../support/payer.ts';
import { canInstall, npmVariables, packTo } from '../support/npm.ts';
import { runSteps } from '../support/page-shell.ts';
import { readPage, root } from '../support/pages.ts';
import { endProcessesAround } from '../support/processes.ts';
import { spawnProgram, temporaryFolder } from '../support/program.ts';

const chain = useChain();
const missing = [
  ...(process.getuid?.() === 0 ? [] : ['root']),
  ...(existsSync('/usr/bin/pg_createcluster') ? [] : ['postgresql-15']),
  ...(isInstalled('nginx', '-v') ? [] : ['nginx']),
  ...(isInstalled('pgbouncer') ? [] : ['pgbouncer']),
  ...(canInstall() ? [] : ['A REGISTRY OF NPM']),
];
const absence = notChecked('docs/production.md', missing);
const page = readPage('docs/production.md');
const payTo = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8';

const run = (command: string, ...args: string[]) =>
  execFileSync(command, args, { stdio: 'pipe', cwd: '/', env: childEnvironment() });

/** A cluster of Debian's package, which only its superuser `postgres` may enter without a password, on a port of its own. */
async function createCluster(): Promise<number> {
  const name = `tollbook_rig_${randomBytes(4).toString('hex')}`;
  const port = await freePort();
  onTestFinished(() => {
    run('pg_dropcluster', '--stop', '15', name);
  });
  run('pg_createcluster', `--port=${port}`, '--start-conf=manual', '15', name);
  run('pg_ctlcluster', '15', name, 'start');
  return port;
}

/**
 * Stands for systemd, which tests do not have: starts a unit's command with the credentials that it loads and the variables that it sets,
 * and nothing else.
 */
const systemctl = `#!/bin/bash
set -e
unit=\${!#}
[ "$unit" = daemon-reload ] && exit
[ "$1" = restart ] && kill $(cat FOLDER/$unit.pid) && while kill -0 $(cat FOLDER/$unit.pid); do sleep 0.1; done 2> /dev/null
if [ "$unit" = pgbouncer ]; then
  runuser -u postgres -- pgbouncer --daemon --quiet FOLDER/pgbouncer/pgbouncer.ini
  exit
fi
credentials=FOLDER/credentials-of-$unit
mkdir -p $credentials
variables=(PATH="$PATH" NODE_EXTRA_CA_CERTS="$NODE_EXTRA_CA_CERTS")
while IFS= read -r line; do
  value=\${line#*=}
  case $line in
    LoadCredential=*) cp "\${value#*:}" "$credentials/\${value%%:*}" ;;
    Environment=*) variables+=("\${value//%d/$credentials}") ;;
    ExecStart=*) command=$value ;;
  esac
done < FOLDER/units/$unit.service
[ "$1" = start ] && exec env -i "\${variables[@]}" $command
env -i "\${variables[@]}" $command > FOLDER/$unit.log 2>&1 &
echo $! > FOLDER/$unit.pid
until grep -q '"msg":"listening"' FOLDER/$unit.log; do kill -0 $!; sleep 0.1; done
`;

test.skipIf(absence !== '')(
  `docs/production.md leads from packages of Debian to a paid request over TLS, and through pgbouncer to another${absence}`,
  async () => {
    const folder = temporaryFolder();
    onTestFinished(() => endProcessesAround(folder));
    const at = (name: string): string => path.join(folder, name);
    for (const name of ['bin', 'units', 'nginx', 'pgbouncer']) mkdirSync(at(name));
    packTo(folder);
    const api = await startApi(json);
    const { certificate, key } = makeCertificate(folder);
    const [databasePort, publicPort] = [await createCluster(), await freePort()];
    const [gatewayPort, routesPort, poolerPort] = [await freePort(), await freePort(), await freePort()];
    const publicUrl = `https://localhost:${publicPort}`;

    writeFileSync(at('bin/systemctl'), systemctl.replaceAll('FOLDER', folder), { mode: 0o755 });
    writeFileSync(at('bin/nginx'), `#!/bin/sh\nexec /usr/sbin/nginx -c ${folder}/nginx.conf "$@"\n`, {
      mode: 0o755,
    });
    writeFileSync(
      at('nginx.conf'),
      `pid ${folder}/nginx.pid;\nuser root;\nerror_log ${folder}/nginx.log;\nevents {}\nhttp {\naccess_log off;\ninclude ${folder}/nginx/*.conf;\n}\n`,
    );
    for (const name of ['pgbouncer.ini', 'userlist.txt']) {
      copyFileSync(`/etc/pgbouncer/${name}`, at(`pgbouncer/${name}`));
      const account = postgresAccount();
      if (account) chownSync(at(`pgbouncer/${name}`), account.uid, account.gid);
    }
    const pooler = readFileSync('/etc/pgbouncer/pgbouncer.ini', 'utf8')
      .replace('/etc/pgbouncer/', `${folder}/pgbouncer/`)
      .replace(/^listen_port = .*$/m, `listen_port = ${poolerPort}`)
      .replace(/^unix_socket_dir = .*$/m, 'unix_socket_dir =')
      .replace(/^logfile = .*$/m, `logfile = ${folder}/pgbouncer/log`)
      .replace(/^pidfile = .*$/m, `pidfile = ${folder}/pgbouncer.pid`);
    writeFileSync(at('pgbouncer/pgbouncer.ini'), pooler);
    chmodSync(at('pgbouncer'), 0o777);
    chmodSync(folder, 0o777);

    const answers = [
      'base-sepolia',
      payTo,
      `${api.url} for 0.01 USD`,
      `localhost:${databasePort}`,
      publicUrl,
    ];
    // a chain of this machine has neither the token of the preset nor its facilitator
    const peers = `--facilitator ${chain.facilitatorUrl} --rpc-url ${chain.rpcUrl}`;
    const token = `network = "eip155:84532"\\nasset = "${chain.token}"\\nsymbol = "USDC"\\ndecimals = 6\\npeg = "USD"\\neip712_name = "USD Coin"\\neip712_version = "2"`;
    const ofThisTest = [
      `sed -i 's/8402/${gatewayPort}/; s/8403/${routesPort}/' ${folder}/made/tollbook.toml ${folder}/made/nginx.conf`,
      `sed -i 's|^preset.*|${token}|' ${folder}/made/tollbook.toml`,
      `sed -i 's|/etc/letsencrypt/live/localhost/fullchain.pem|${certificate}|; s|/etc/letsencrypt/live/localhost/privkey.pem|${key}|' ${folder}/made/nginx.conf`,
    ].join('\n');
    const ours = (text: string): string =>
      text
        .replaceAll(/^apt-get .*$/gm, 'true')
        .replaceAll('/tmp/tollbook-', `${folder}/tollbook-`)
        .replaceAll('/opt/tollbook', `${folder}/opt`)
        .replaceAll('/usr/local/bin', `${folder}/bin`)
        .replace(
          /^tollbook init .*$/m,
          `printf '%s\\n' ${answers.map((answer) => `'${answer}'`).join(' ')} | $& ${peers}\n${ofThisTest}`,
        )
        .replaceAll('/etc/tollbook', `${folder}/made`)
        .replaceAll('/etc/systemd/system', `${folder}/units`)
        .replaceAll('/etc/nginx/conf.d', `${folder}/nginx`)
        .replaceAll('/etc/pgbouncer', `${folder}/pgbouncer`)
        .replace('nginx -s reload', 'nginx')
        .replaceAll('su postgres -c psql', `su postgres -c 'psql --quiet --port ${databasePort}'`)
        .replaceAll('5432', String(databasePort))
        .replaceAll('6432', String(poolerPort))
        .replaceAll('https://api.example', publicUrl)
        .replace('curl ', `curl --cacert ${certificate} `);
    const commands = page.blocks.map(({ text, shown }) => ({
      text: ours(text),
      shown: shown && ours(shown),
    }));
    const env = {
      ...npmVariables,
      PATH: `${folder}/bin:${childEnvironment()['PATH'] ?? ''}`,
      NODE_EXTRA_CA_CERTS: certificate,
    };
    const [first, rest] = [commands.slice(0, -1), commands.slice(-1)];
    expect((await runSteps(first.slice(0, 1), folder, { ...env, ...npmVariables })).join('\n')).toBe('');
    const beganMs = performance.now();
    expect((await runSteps(first.slice(1), folder, env)).join('\n')).toBe('');
    process.stderr.write(`steps 2 to 5: ${Math.round((performance.now() - beganMs) / 1_000)} s\n`);
    await chain.mint(payer.address, 1_000_000n);
    await pay(`${publicUrl}/weather/berlin`, certificate);

    expect((await runSteps(rest, folder, env)).join('\n')).toBe('');
    await pay(`${publicUrl}/weather/paris`, certificate);
    expect(readFileSync(at('made/credentials/DATABASE_URL'), 'utf8')).toContain(`:${poolerPort}/`);
    expect(page.text.split(/\s+/).length).toBeLessThanOrEqual(400);
    rmSync(at('made'), { recursive: true });
  },
);

/** Pays for one request as a client that trusts the certificate. */
async function pay(url: string, certificate: string): Promise<void> {
  const program = `import { payForUrl } from '${path.join(root, 'src/devnet/client.ts')}';
console.log(JSON.stringify(await payForUrl('${url}', '${devnetKeys.payer}')));`;
  const env = { ...childEnvironment(), NODE_EXTRA_CA_CERTS: certificate };
  const client = spawnProgram([process.execPath, '--input-type=module', '--eval', program], root, env);
  const { stdout } = await client.ended;
  expect(JSON.parse(stdout)).toMatchObject({
    status: 200,
    payment: { transaction: expect.stringMatching(/^0x/) },
  });
}
