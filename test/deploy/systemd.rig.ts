import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { loadConfig } from '../../src/base/config/load.ts';
import { isInstalled, packageEnvironment } from '../support/installed.ts';
import { root } from '../support/pages.ts';
import { temporaryFolder } from '../support/program.ts';
import { eventually } from '../support/wait.ts';
import { type DeployedCommand, startDeployed } from './start-gateway.ts';

const folder = path.join(root, 'deploy/systemd');
const units = readdirSync(folder);
const program = '/opt/tollbook/bin/tollbook';
const configFile = path.join(root, 'deploy/compose/devnet.toml');

/** What the unit sets, one value for each line. */
function settingsOf(unit: string, key: string): string[] {
  const text = readFileSync(path.join(folder, unit), 'utf8');
  return [...text.matchAll(new RegExp(`^${key}=(.*)$`, 'gm'))].map(([, value = '']) => value);
}

const isThere = isInstalled('systemd-analyze');

function analyze(...args: string[]): string {
  return execFileSync('systemd-analyze', args, {
    encoding: 'utf8',
    env: packageEnvironment(),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
}

test.skipIf(!isThere)(
  'systemd accepts each unit, and rates it as little exposed (skipped where systemd is missing)',
  () => {
    const copies = temporaryFolder();
    for (const unit of units) {
      const text = readFileSync(path.join(folder, unit), 'utf8');
      // the program has to be there
      writeFileSync(path.join(copies, unit), text.replace(program, process.execPath));
    }
    const files = units.map((unit) => path.join(copies, unit));
    expect(analyze('verify', '--man=no', ...files)).toBe('');
    for (const file of files) analyze('security', '--offline=yes', '--threshold=20', file);
  },
);

test.each(units)('%s reads from files the credentials that it loads, and no others', (unit) => {
  const loaded = settingsOf(unit, 'LoadCredential').map((credential) => credential.split(':', 1)[0] ?? '');
  const named = settingsOf(unit, 'Environment').flatMap(
    (pair) => /^(\w+)_FILE=%d\/\1$/.exec(pair)?.[1] ?? [],
  );
  expect(named.toSorted()).toEqual(loaded.toSorted());
  expect(settingsOf(unit, 'Environment').filter((pair) => pair.includes('%d'))).toHaveLength(named.length);
});

test('tollbook.service gives a gateway the time that a stop takes, and does not start it again with a wrong configuration', async () => {
  const names = ['TRIAL_RUNNER_TOKEN', 'RECEIPT_KEY', 'QUOTE_KEY'];
  const secrets = Object.fromEntries(names.map((name) => [name, `${name}-of-thirty-two-characters-or-more`]));
  const { config } = await loadConfig(configFile, secrets);
  const stopSecs = config.drainDelaySecs + config.shutdownGraceSecs;
  expect(Number(settingsOf('tollbook.service', 'TimeoutStopSec')[0])).toBeGreaterThan(stopSecs);
  expect(settingsOf('tollbook.service', 'RestartPreventExitStatus')).toEqual(['78']);
});

/** The unit's command; its credentials are in a folder of the name that stands for `%d`. */
function commandOf(unit: string): DeployedCommand {
  const [command = ''] = settingsOf(unit, 'ExecStart');
  const [name, ...args] = command.split(' ');
  if (name !== program) throw new Error(`${unit} starts ${name}`);
  const env = settingsOf(unit, 'Environment').map((pair): [string, string] => {
    const [variable = '', value = ''] = pair.split('=', 2);
    return [variable, value.replace('%d', '/credentials')];
  });
  return { args, env: Object.fromEntries(env), secretsAt: '/credentials' };
}

test('the units migrate and start a gateway, with their secrets in files', async () => {
  const commands = { migrate: commandOf('tollbook-migrate.service'), gateway: commandOf('tollbook.service') };
  const url = await startDeployed(
    commands,
    readFileSync(configFile, 'utf8').replace('TRIAL_RUNNER_TOKEN', 'RUNNER_TOKEN'),
  );
  await eventually(async () => expect((await fetch(`${url}/x402/ready`)).status).toBe(200));
});
