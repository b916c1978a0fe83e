import type { JobPrice } from '../values/amount.ts';
import { jobKey, parseJobId } from '../values/job.ts';
import { besideConfig, reasonOf } from './files.ts';
import { ConfigError, type Path, createReport, type Report } from './mistakes.ts';
import type { Reading } from './reading.ts';
import type { RootTable } from './root.ts';
import { isTable, readValue } from './table.ts';
import { readToml } from './toml-source.ts';
import { jobPrice } from './values.ts';

type PriceReading = Pick<Reading, 'file' | 'readFile' | 'report' | 'findings'>;

/** Reads the price map, from `[job_prices]` or from `job_prices_file`: by `jobKey()`. */
export async function readPrices(
  { values }: { readonly values: Pick<RootTable['values'], 'jobPrices' | 'jobPricesFile'> },
  reading: PriceReading,
): Promise<Map<string, JobPrice>> {
  const { jobPrices: inline, jobPricesFile: file } = values;
  const prices =
    inline === undefined ? new Map<string, JobPrice>() : readPriceMap(inline, ['job_prices'], reading.report);
  if (file === undefined) return prices;
  if (inline === undefined) return readPricesFile(file, reading);
  reading.report.mistake(['job_prices_file'], 'excludes job_prices: name one of them');
  return prices;
}

async function readPricesFile(path: string, reading: PriceReading): Promise<Map<string, JobPrice>> {
  const file = besideConfig(reading.file, path);
  let source: string;
  try {
    source = await reading.readFile(file);
  } catch (error) {
    reading.report.mistake(['job_prices_file'], `${file} cannot be read: ${reasonOf(error)}`);
    return new Map();
  }
  return readPriceSource(source, file, reading);
}

function readPriceSource(source: string, file: string, reading: PriceReading): Map<string, JobPrice> {
  try {
    const toml = readToml(source, file);
    return readPriceMap(toml.root, [], createReport(toml, reading.findings));
  } catch (error) {
    // a syntax error in it is one mistake among those of the operator's file: reading continues
    if (!(error instanceof ConfigError)) throw error;
    reading.findings.mistakes.push(...error.mistakes);
    return new Map();
  }
}

function readPriceMap(raw: unknown, at: Path, report: Report): Map<string, JobPrice> {
  const prices = new Map<string, JobPrice>();
  for (const [service, jobs, servicePath] of entriesOf(raw, at, report)) {
    if (parseJobId(service, '0') === undefined) report.mistake(servicePath, 'is not a service id');
    for (const [index, value, path] of entriesOf(jobs, servicePath, report)) {
      const job = parseJobId(service, index);
      if (parseJobId('0', index) === undefined) report.mistake(path, 'is not a job index');
      const price = readValue(jobPrice, value, path, report);
      if (job !== undefined && price !== undefined) prices.set(jobKey(job), price.value);
    }
  }
  return prices;
}

function entriesOf(raw: unknown, at: Path, report: Report): (readonly [string, unknown, Path])[] {
  if (isTable(raw)) return Object.entries(raw).map(([key, value]) => [key, value, [...at, key]] as const);
  report.mistake(
    at,
    at.length === 2 ? 'must be a table of prices by job index' : 'must be a table of prices by service id',
  );
  return [];
}
