import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { EventData } from '../../../../src/ledger/rules/event.ts';
import { writerRole } from '../../../../src/ledger/store/database.ts';
import { type Lane, openLane } from '../../../../src/ledger/store/lane.ts';
import { verifyDatabase } from '../../../../src/audit/use-cases/verify/verify-database.ts';
import { openDatabaseSource } from '../../../../src/finance/use-cases/books/source.ts';
import { issueInvoice, listInvoices } from '../../../../src/finance/use-cases/invoices/issue-invoice.ts';
import { readPeriods } from '../../../../src/finance/use-cases/periods/read-periods.ts';
import type { Invoice } from '../../../../src/finance/rules/invoices/invoice.ts';
import { createDatabase } from '../../../support/database.ts';
import { allEvents } from '../../../support/invariants.ts';
import { appendAll, rootOfEvents, sealAll, testSigner, testVerifier } from '../../../support/log.ts';
import { destroy, startTollbook, temporaryFolder, tollbook } from '../../../support/program.ts';
import { hex32Of, paidJob, refundOf } from '../../../support/synthetic-ledger.ts';
import { eventually } from '../../../support/wait.ts';

/** A ledger with one delivered job for each of three wallets, closed and sealed; the third one's money was given back. */
async function closedPeriod() {
  const database = await createDatabase();
  const lane = openLane({ url: database.url, role: writerRole });
  onTestFinished(() => lane.close());
  const jobs = [1, 2, 3].map((n) => paidJob(n));
  const [, , third = []] = jobs;
  await appendAll(database, [...jobs.flat(), refundOf(third)]);
  const events = await allEvents(database.db);
  const times = events.map(({ at }) => Date.parse(at));
  const [fromMs, toMs] = [Math.min(...times), Math.max(...times) + 1];
  await eventually(async () =>
    expect((await openDatabaseSource(database.pool)).nowMs).toBeGreaterThanOrEqual(toMs),
  );
  await sealAll(database);
  const root = (await rootOfEvents(database, events.length)).toString('base64');
  const hash = hex32Of('report');
  const data: EventData<'operator_period_closed'> = {
    from_ms: fromMs,
    to_ms: toMs,
    time_zone: 'UTC',
    head: { origin: testSigner.name, size: events.length, root },
    report_sha256: hash,
    outcome_sha256: hash,
    breaks: 0,
    breaks_explained: 0,
    open_items: 0,
    exports: {},
    formats_edition: 1,
    operator: 'ada',
  };
  await lane.append({ stream: 'period:books', events: [{ type: 'operator_period_closed', data }] });
  const [closed] = (await readPeriods(database.pool)).periods.standing;
  if (!closed) throw new Error('the period is not closed');
  const payers = jobs.map((job) => {
    const event = job.map((one) => one.event).find(({ type }) => type === 'settlement_started');
    return (event as { data: EventData<'settlement_started'> }).data.payment.payer;
  });
  const name = `${new Date(fromMs).toISOString()}/${new Date(toMs).toISOString()}`;
  const env = { DATABASE_URL: database.url };
  const issue = (customer: string, ...more: string[]) =>
    tollbook(['invoices', 'issue', name, ...issueOptions(customer), ...more], env);
  return { database, lane, closed, payers, name, env, issue };
}

const issueOptions = (customer: string): string[] => [
  '--customer',
  customer,
  '--series',
  '2026',
  '--by',
  'ada',
  '--format',
  'json',
];

const soldFor = (atoms: bigint): Invoice => ({
  currency: 'USDC-84532',
  decimals: 6,
  lines: [{ of: 'job 1/0', sales: 1, taxKey: undefined, gross: atoms }],
  taxes: [],
  gross: atoms,
  tax: 0n,
});

describe('tollbook invoices issue', () => {
  test('numbers invoices without gaps, gives one again under its number, and the ledger stays sound', async () => {
    const { database, payers, issue, env } = await closedPeriod();
    const [first = '', second = '', third = ''] = payers;
    const issued = await issue(first);
    expect(issued.stderr).toMatch(/^Issued: invoice 2026-0001 of 0\.002000 USDC-84532 to 0x/);
    expect(JSON.parse(issued.stdout)).toMatchObject({
      invoice: '2026-0001',
      customer: first,
      lines: [{ of: 'job 1/1', sales: 1, gross: '0.002000' }],
      gross: '0.002000',
      taxes: [],
    });
    expect((await issue(second)).stderr).toMatch(/^Issued: invoice 2026-0002/);
    expect(await issue(first)).toMatchObject({
      code: 0,
      stdout: issued.stdout,
      stderr: issued.stderr.replace('Issued', 'Issued before'),
    });
    // its sale was given back
    expect(await issue(third)).toMatchObject({
      code: 2,
      stderr:
        'no invoice was issued, because something is missing: a sale in this period that was not given back\n',
    });
    expect(await issue('nobody')).toMatchObject({ code: 2 });
    const list = await tollbook(['invoices', 'list', '--series', '2026'], env);
    expect(list.stdout.match(/^2026-\d{4}/gm)).toEqual(['2026-0001', '2026-0002']);
    await sealAll(database);
    expect(await verifyDatabase(database.pool, [], testVerifier)).toMatchObject({ isSound: true });
  });

  test('states tax and value by rate, country and job, and issues nothing where one of them is missing', async () => {
    const { payers, issue } = await closedPeriod();
    const [customer = ''] = payers;
    const dir = temporaryFolder();
    const [rates, accounts] = [path.join(dir, 'rates.csv'), path.join(dir, 'accounts.toml')];
    writeFileSync(rates, '2020-01-01,USDC-84532,EUR,59500\n');
    writeFileSync(accounts, '[tax.rates]\nDE = "19"\n"DE 1/1" = "7"\n');
    const given = ['--rates', rates, '--accounts', accounts];
    expect(await issue(customer, ...given)).toMatchObject({
      code: 2,
      stderr: `no invoice was issued, because something is missing: the country of customer ${customer}\n`,
    });
    writeFileSync(
      accounts,
      `${readFileSync(accounts, 'utf8')}[customers]\n"${customer.toUpperCase().replace('0X', '0x')}" = "DE"\n`,
    );
    writeFileSync(rates, '2999-01-01,USDC-84532,EUR,59500\n');
    expect((await issue(customer, ...given)).stderr).toContain(
      'something is missing: a rate of USDC-84532 in EUR on',
    );
    writeFileSync(rates, '2020-01-01,USDC-84532,EUR,53500\n');
    const { stdout, stderr } = await issue(customer, ...given);
    expect(stderr).toContain('invoice 2026-0001 of 107.00 EUR');
    expect(JSON.parse(stdout)).toMatchObject({
      currency: 'EUR',
      taxes: [{ country: 'DE', rate: '7', net: '100.00', tax: '7.00', gross: '107.00' }],
      net: '100.00',
    });
    // others would not be the invoice that was issued
    expect((await issue(customer)).stderr).toContain(
      'invoice 2026-0001 of this customer and period is another one',
    );
  });

  test('reads only the events that were closed and sealed', async () => {
    const { database, payers, issue, env, name } = await closedPeriod();
    const [customer = ''] = payers;
    expect(
      (await tollbook(['invoices', 'issue', '2020-01', ...issueOptions(customer)], env)).stderr,
    ).toContain('2020-01 is not closed');
    await database.asOwner((owner) =>
      owner.query(`alter table tollbook.event disable trigger user;
        update tollbook.event set data = replace(data, '"price_wei":"1', '"price_wei":"2') where seq = 1;
        alter table tollbook.event enable trigger user`),
    );
    expect(await issue(customer)).toMatchObject({ code: 1, stdout: '' });
    const statement = ['invoices', 'statement', name, '--customer', customer];
    expect(await tollbook(statement, env)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('is not as it was closed'),
    });
    expect(await listInvoices(database.pool, '2026')).toEqual([]);
  });
});

describe('numbers of a series', () => {
  test('neither repeat nor skip where many commands number invoices at the same time', async () => {
    const { database, lane, closed } = await closedPeriod();
    const other = openLane({ url: database.url, role: writerRole });
    onTestFinished(() => other.close());
    // every customer is invoiced by two commands
    const customers = Array.from({ length: 12 }, (_, n) => `customer-${n}`);
    const issue = (by: Lane, customer: string, n: number) =>
      issueInvoice(
        { ...database, lane: by },
        { series: '2026', customer, closed, invoice: soldFor(BigInt(n + 1)), operator: 'ada' },
      );
    const answers = await Promise.all(
      [lane, other].flatMap((by) => customers.map((customer, n) => issue(by, customer, n))),
    );
    expect(answers.filter(({ kind }) => kind === 'issued')).toHaveLength(12);
    expect(answers.filter(({ kind }) => kind === 'repeated')).toHaveLength(12);
    const issued = await listInvoices(database.pool, '2026');
    expect(issued.map(({ data }) => data.number)).toEqual(customers.map((_, n) => n + 1));
    expect(issued.map(({ data }) => data.customer).toSorted()).toEqual(customers.toSorted());
  });

  test('neither repeat nor skip where commands are killed', async () => {
    const { database, payers, name, env, issue } = await closedPeriod();
    const [first = '', second = ''] = payers;
    for (const afterMs of [150, 400, 700, 1_000]) {
      const program = startTollbook(['invoices', 'issue', name, ...issueOptions(first)], env);
      await new Promise((resolve) => setTimeout(resolve, afterMs));
      await destroy(program);
    }
    expect(await issue(second)).toMatchObject({ code: 0 });
    expect(await issue(first)).toMatchObject({ code: 0 });
    const issued = await listInvoices(database.pool, '2026');
    expect(issued.map(({ data }) => data.number)).toEqual([1, 2]);
    expect(issued.map(({ data }) => data.customer).toSorted()).toEqual([first, second].toSorted());
  });
});

test('a statement has what the operator owes at both ends and each change, as JSON and as a page without scripts', async () => {
  const { payers, name, env } = await closedPeriod();
  const [customer = ''] = payers;
  const args = ['invoices', 'statement', name, '--customer', customer];
  const json = await tollbook([...args, '--format', 'json'], env);
  expect(json).toMatchObject({ code: 0, stderr: '' });
  expect(JSON.parse(json.stdout)).toMatchObject({
    customer,
    opening: [],
    lines: [
      { what: 'payment', amount: '0.002000', commodity: 'USDC-84532', value: '' },
      { what: 'delivery', amount: '-0.002000' },
    ],
    closing: [],
  });
  const page = (await tollbook(args, env)).stdout;
  expect(page).toMatch(/^<!doctype html>/);
  expect(page).toContain(`Customer ${customer}`);
  expect(page).not.toMatch(/<script|http/);
});

test('a page has the address of the customer as text, and nothing of it is in the ledger', async () => {
  const { database, payers, name, env } = await closedPeriod();
  const [customer = ''] = payers;
  const out = path.join(temporaryFolder(), 'invoice.html');
  const page = ['--customer', customer, '--series', '2026', '--by', 'ada', '--out', out];
  const ended = await tollbook(['invoices', 'issue', name, ...page, '--bill-to', 'Acme <b>& Co'], env);
  expect(ended).toMatchObject({ code: 0, stdout: '' });
  const written = readFileSync(out, 'utf8');
  expect(written).toContain('Acme &#60;b&#62;&#38; Co<br');
  expect(written).toContain('<h1>Invoice 2026-0001</h1>');
  expect(JSON.stringify(await allEvents(database.db))).not.toContain('Acme');
});
