// `node compose-secrets.mjs DIR`: the service `secrets` of docker-compose.yml runs it at each start. DIR has a folder for each service that
// reads secrets, with one file for each of its secrets. A secret that is not there gets 32 random bytes, or the value of its variable;
// a variable with a value replaces the secret that is there. Plain JavaScript, of Node alone.
import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { argv, env } from 'node:process';

/** The services that read each secret. */
const readers = {
  POSTGRES_PASSWORD: ['database'],
  OWNER_PASSWORD: ['database', 'migrate'],
  GATEWAY_PASSWORD: ['database', 'gateway'],
  RUNNER_TOKEN: ['gateway'],
  TRIAL_RUNNER_TOKEN: ['gateway', 'runner'],
  RECEIPT_KEY: ['gateway'],
  QUOTE_KEY: ['gateway'],
};

const [dir] = argv.slice(2);
for (const [name, services] of Object.entries(readers)) {
  const files = services.map((service) => path.join(dir, service, name));
  const present = files.filter((file) => existsSync(file)).map((file) => readFileSync(file, 'utf8'));
  const secret = env[name] || (present[0] ?? randomBytes(32).toString('hex'));
  if (present.length === files.length && present.every((text) => text === secret)) continue;
  for (const file of files) {
    // one that an interrupted start has left cannot be opened
    rmSync(`${file}.new`, { force: true });
    writeFileSync(`${file}.new`, secret, { mode: 0o444, flush: true });
    renameSync(`${file}.new`, file);
  }
  console.log(`wrote ${name}`);
}
