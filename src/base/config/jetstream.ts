import { z } from 'zod';
import { brokerName } from '../values/broker/names.ts';
import { besideConfig, reasonOf } from './files.ts';
import type { Reading } from './reading.ts';
import type { RunnerConfig } from './runners.ts';
import { secret } from './secret-source.ts';
import { readSecret } from './secrets.ts';
import { type ConfigOf, readTable, type Table } from './table.ts';
import { brokerUrl } from './urls.ts';
import { filePath, matching, wholeNumber } from './values.ts';

const mebibyte = 1_048_576;

export const jetStreamShape = {
  servers: z
    .array(brokerUrl, 'must be an array of URLs')
    .min(1, 'must name at least one server')
    .describe("Any of the cluster's servers; the client learns the others from them"),
  name: matching(brokerName, 'must be 1 to 64 of A-Z, a-z, 0-9, "_" and "-"')
    .default('tollbook')
    .describe(
      'Begins the names of the streams and the subjects: gateways of another ledger need another one',
    ),
  replicas: wholeNumber(1, 5)
    .refine((count) => count % 2 === 1, 'must be 1, 3 or 5')
    .default(3)
    .describe('On how many servers a message is written before it is acknowledged'),
  max_bytes: wholeNumber(mebibyte, 1024 * 1024 * mebibyte)
    .default(1024 * mebibyte)
    .describe('Of each of the two streams'),
  max_waiting: wholeNumber(1, 100_000)
    .default(500)
    .describe('Calls of one runner that wait in the broker; the others wait in the database'),
  take_within_secs: wholeNumber(5, 240)
    .default(120)
    .describe(
      'How long a call may wait in the broker. A runner refuses a message that was signed 300 seconds ago',
    ),
  user: matching(/^[\x21-\x7e]{1,200}$/, 'must be visible ASCII without blanks')
    .optional()
    .describe('The user of the account, with its password'),
  password: secret.describe('The password of the user'),
  nkey_seed: secret.describe('The seed of an NKey of the kind user'),
  ca_file: filePath
    .optional()
    .describe("PEM, where the servers' certificates are of an authority of the operator"),
} as const;

/** The broker from which runners with `mode = "jetstream"` take their calls. */
export interface JetStreamConfig extends ConfigOf<typeof jetStreamShape> {
  readonly password: string | undefined;
  readonly nkeySeed: string | undefined;
  /** PEM. */
  readonly ca: string | undefined;
}

/** Reads `[jetstream]`; undefined where no runner uses it, or after a report. */
export async function readJetStream(
  raw: unknown,
  reading: Reading,
  runners: readonly RunnerConfig[],
): Promise<JetStreamConfig | undefined> {
  const { report } = reading;
  const users = runners.filter(({ mode }) => mode === 'jetstream');
  for (const { name } of users)
    if (!brokerName.test(name))
      report.mistake(['runners'], `"${name}" is the name of a subject with mode = "jetstream": use no dot`);
  if (raw === undefined) {
    if (users.length > 0)
      report.mistake(
        ['jetstream'],
        'is missing: a runner has mode = "jetstream", so name the broker\'s servers',
      );
    return undefined;
  }
  const table = readTable(jetStreamShape, raw, ['jetstream'], report);
  if (users.length === 0) report.warning(['jetstream'], 'is not used: no runner has mode = "jetstream"');
  const password = await readSecret(table, 'password', { minChars: 1 }, reading);
  const nkeySeed = await readSecret(table, 'nkey_seed', { minChars: 1 }, reading);
  checkCredentials(table, nkeySeed, reading);
  const ca = await readCa(table, reading);
  return table.whole && { ...table.whole, password, nkeySeed, ca };
}

type JetStreamTable = Table<typeof jetStreamShape>;

function checkCredentials(
  { at, names }: JetStreamTable,
  nkeySeed: string | undefined,
  { report, skippedSecrets }: Reading,
): void {
  if (names('user') !== names('password'))
    report.mistake([...at, 'user'], 'needs a password beside it, and a password needs a user');
  if (nkeySeed === undefined) return;
  if (names('user')) report.mistake([...at, 'user'], 'cannot stand beside nkey_seed: name one of them');
  if (!skippedSecrets && !/^SU[A-Z2-7]{56}$/.test(nkeySeed))
    report.mistake([...at, 'nkey_seed'], 'is not the seed of an NKey of a user, which begins with SU');
}

async function readCa({ at, values }: JetStreamTable, reading: Reading): Promise<string | undefined> {
  if (values.caFile === undefined) return undefined;
  const file = besideConfig(reading.file, values.caFile);
  try {
    return await reading.readFile(file);
  } catch (error) {
    reading.report.mistake([...at, 'ca_file'], `${file} cannot be read: ${reasonOf(error)}`);
    return undefined;
  }
}
