import { readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { routesPort } from '../../src/app/cli/start/development-config.ts';
import { freePort } from '../../src/devnet/ports.ts';
import { isStart, linkRepository, runSteps } from '../support/page-shell.ts';
import { pages } from '../support/pages.ts';
import { endProcessesAround } from '../support/processes.ts';
import { destroy, makeFolder, type Program, spawnTollbook } from '../support/program.ts';
import { soonMs } from '../support/time-limits.ts';

/** One `npm start` for the commands of all pages. finance.rig.ts has its own: its books begin with an empty ledger. */
const folder = makeFolder();
let gateway: Program;
/** The ports that the pages name, and those that stand for them here. */
const ports = new Map<string, string>();

beforeAll(async () => {
  linkRepository(folder);
  for (const port of ['8402', '8403', '8404', '8406', '4318']) ports.set(port, String(await freePort()));
  ports.set('8405', String(routesPort(Number(ports.get('8402')))));
  const options = ['--fresh', '--dir', path.join(folder, '.tollbook'), '--port', ports.get('8402') ?? ''];
  gateway = spawnTollbook(['start', ...options]);
  await gateway.says(/Try next/);
});
afterAll(async () => {
  gateway.kill('SIGTERM');
  await Promise.race([gateway.exited, sleep(soonMs(0))]);
  await destroy(gateway);
  await endProcessesAround(folder);
  rmSync(folder, { recursive: true, force: true });
});

const withOurPorts = (commands: string): string =>
  commands.replaceAll(/(?<=127\.0\.0\.1:)\d+/g, (port) => ports.get(port) ?? port);

const shells = pages.flatMap(({ file, blocks }) => {
  const commands = blocks.filter((block) => block.language === 'sh' && !isStart(block));
  const steps = commands.filter(({ notRun }) => notRun === undefined);
  return file.startsWith('docs/finance/')
    ? []
    : [{ file, steps, notRun: commands.filter(({ notRun }) => notRun) }];
});

test.each(shells.filter(({ steps }) => steps.length > 0))(
  'every command of $file runs and prints what the page shows',
  async ({ steps }) => {
    const ours = steps.map((step) => ({ ...step, text: withOurPorts(step.text) }));
    expect((await runSteps(ours, folder)).join('\n')).toBe('');
  },
);

const excluded = shells.flatMap(({ file, notRun }) =>
  notRun.map(({ notRun: reason, text }) => ({ file, reason, first: text.split('\n', 1)[0] })),
);
// oxlint-disable-next-line vitest/no-disabled-tests -- the page says why these cannot run, and the report repeats it
test.skip.each(excluded)('NOT RUN in $file, $reason: $first', () => expect.unreachable());

// those of an auditor are asked by audit.test.ts, with values in place of their names
const queries = pages.flatMap(({ file, blocks }) =>
  (file === 'docs/finance/audit.md' ? [] : blocks)
    .filter(({ language, notRun }) => language === 'sql' && notRun === undefined)
    .map(({ text }) => ({ file, text })),
);

test.each(queries)('PostgreSQL accepts the query of $file', async ({ text }) => {
  const description = readFileSync(path.join(folder, '.tollbook/devnet.json'), 'utf8');
  const { database_url: connectionString } = JSON.parse(description) as { database_url: string };
  const client = new pg.Client({ connectionString });
  await client.connect();
  try {
    const { command } = await client.query(text);
    expect(command).toBe('SELECT');
  } finally {
    await client.end();
  }
});
