/**
 * `npm run supply-chain`: checks the lockfile and the packages that may run scripts when they are installed, then the registry's
 * signatures. `-- --licences` lists the licences of production, `-- --offline` leaves the registry out.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { licencesOf, lockfileFaults, type Lockfile, type Manifest, productionPackages } from './lockfile.ts';

const { values } = parseArgs({
  options: { licences: { type: 'boolean', default: false }, offline: { type: 'boolean', default: false } },
});
const lockfile = JSON.parse(readFileSync('package-lock.json', 'utf8')) as Lockfile;
const manifest = JSON.parse(readFileSync('package.json', 'utf8')) as Manifest;
const say = (line: string): void => void process.stdout.write(`${line}\n`);

if (values.licences) {
  for (const [licence, names] of licencesOf(lockfile)) say(`${licence}: ${names.join(', ')}`);
} else {
  const faults = lockfileFaults(lockfile, manifest);
  for (const fault of faults) say(fault);
  if (faults.length > 0) process.exitCode = 1;
  else {
    const { required, optional } = productionPackages(lockfile);
    say(
      `the lockfile is sound: ${required.length} production packages, and ${optional.length} optional ones`,
    );
  }
  if (!values.offline) checkSignatures();
}

/** npm verifies the registry's signature of each installed package. A registry that cannot be asked is reported and is not a failure. */
function checkSignatures(): void {
  const asked = spawnSync('npm', ['audit', 'signatures'], { encoding: 'utf8', timeout: 60_000 });
  const text = `${asked.stdout ?? ''}${asked.stderr ?? ''}`.trim();
  if (asked.status === 0) return say(text.split('\n')[0] ?? '');
  const isUnreachable =
    asked.status === null ||
    /E(?:NOTFOUND|AI_AGAIN|CONNREFUSED|CONNRESET|TIMEDOUT|NETUNREACH|PROTO)|E4\d\d|E5\d\d|network|fetch failed|keys? not found|not supported/i.test(
      text,
    );
  const isBad = /invalid|missing registry signatures|tampered/i.test(text);
  if (isBad || !isUnreachable) {
    say(text);
    process.exitCode = 1;
  } else
    say(
      `NOT CHECKED: the registry's signatures, since it gave no answer about them (${text.split('\n')[0] ?? 'timed out'})`,
    );
}
