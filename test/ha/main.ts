/** `npm run ha`: docs/operations/high-availability.md describes it. */
import { parseArgs } from 'node:util';
import { missing } from './installed.ts';
import { type PlantName, plants } from './page-files.ts';
import { type HaReport, runHa, seconds } from './run.ts';
import type { FaultKind, FaultReport } from './strike.ts';

const say = (line: string): void => console.log(line);

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
  const whole = (name: 'faults' | 'clients', most: number): number => {
    const number = Number(values[name]);
    if (!Number.isInteger(number) || number < 1 || number > most)
      throw new Error(`--${name} is a whole number from 1 to ${most}`);
    return number;
  };
  const kinds = values.only === undefined ? rotation : rotation.filter((kind) => kind === values.only);
  if (kinds.length === 0) throw new Error(`--only is one of ${[...new Set(rotation)].join(', ')}`);
  const faults = Array.from(
    { length: whole('faults', 1_000) },
    (_, index) => kinds[index % kinds.length] ?? 'kill',
  );
  const seed = values.seed ?? String(Date.now() % 1_000_000);
  const plant = (Object.keys(plants) as PlantName[]).find((name) => name === values.plant);
  if (values.plant !== undefined && !plant)
    throw new Error(`--plant is one of ${Object.keys(plants).join()}`);
  return { faults, clients: whole('clients', 200), seed, plant, keeps: values.keep, say };
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

try {
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
  process.exitCode = isSound(report) && !isLate ? 0 : 1;
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 64;
}
