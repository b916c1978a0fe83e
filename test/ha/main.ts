/** `npm run ha`: docs/operations/high-availability.md describes it. */
import { parseArgs } from 'node:util';
import { newSeed, oneOf, runCommand, say, whole } from '../chaos/command-line.ts';
import { seconds } from '../chaos/rig.ts';
import { missing } from './installed.ts';
import { type PlantName, plants } from './page-files.ts';
import { type HaReport, runHa } from './run.ts';
import type { FaultKind, FaultReport } from './strike.ts';

/** In this order, again and again. */
const rotation: readonly FaultKind[] = ['kill', 'kill', 'crash', 'kill', 'standby', 'kill', 'freeze'];
/** Gateways must take payments again within this time of the promotion. */
const resumeLimitMs = 10_000;

function readOptions() {
  const { values } = parseArgs({
    options: {
      faults: { type: 'string', default: '35' },
      clients: { type: 'string', default: '8' },
      seed: { type: 'string' },
      only: { type: 'string' },
      plant: { type: 'string' },
      keep: { type: 'boolean', default: false },
    },
  });
  const only = oneOf('only', values.only, [...new Set(rotation)]);
  const kinds = only ? [only] : rotation;
  const count = whole('faults', values.faults, 1, 1_000);
  return {
    faults: Array.from({ length: count }, (_, index) => kinds[index % kinds.length] ?? 'kill'),
    clients: whole('clients', values.clients, 1, 200),
    seed: values.seed ?? newSeed(),
    plant: oneOf('plant', values.plant, Object.keys(plants) as PlantName[]),
    keeps: values.keep,
    say,
  };
}

const isSound = ({ stuck, violations, differences }: HaReport): boolean =>
  stuck === undefined && violations.length === 0 && differences.length === 0;

function* summary(report: HaReport): Generator<string> {
  const { faults, violations, differences, payments, ms } = report;
  const kinds = [...new Set(rotation)].filter((kind) => faults.some((fault) => fault.kind === kind));
  for (const kind of kinds) {
    const some = faults.filter((fault) => fault.kind === kind);
    const times = `${String(some.length).padStart(3)} × ${kind.padEnd(7)}`;
    yield kind === 'standby'
      ? `${times}  longest time without a payment ${spread(some, 'resumedMs')}`
      : `${times}  new primary after ${spread(some, 'promotedMs')};  payments ${spread(some, 'resumedMs')} later`;
  }
  yield `payments: ${payments.signed} signed, ${payments.landed} landed, ${payments.accepted} answered 202, in ${seconds(ms)}`;
  for (const { kind, words } of violations.slice(0, 20)) yield `${kind}: ${words}`;
  for (const difference of differences) yield `the nodes differ: ${difference}`;
  yield isSound(report)
    ? 'no payment lost or doubled, no gateway restarted, all three nodes hold the same ledger'
    : `${violations.length} VIOLATIONS, ${differences.length} differences`;
}

function spread(faults: readonly FaultReport[], of: 'promotedMs' | 'resumedMs'): string {
  const sorted = faults.map((fault) => fault[of] ?? 0).toSorted((a, b) => a - b);
  const at = (share: number): string => seconds(sorted[Math.floor((sorted.length - 1) * share)] ?? 0);
  return `${at(0)} / ${at(0.5)} / ${at(1)} (least / median / most)`;
}

await runCommand(async () => {
  const options = readOptions();
  if (missing.length > 0)
    throw new Error(
      `not installed: ${missing.join(', ')} (docs/operations/high-availability.md names the packages)`,
    );
  say(`seed ${options.seed}`);
  const report = await runHa(options);
  for (const line of summary(report)) say(line);
  const isLate = report.faults.some(({ resumedMs }) => resumedMs > resumeLimitMs);
  if (isLate) say(`LATE: a gateway took more than ${seconds(resumeLimitMs)} after a promotion`);
  return isSound(report) && !isLate;
});
