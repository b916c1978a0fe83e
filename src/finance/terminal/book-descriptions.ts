import { agingFormats, bookFormats, importFormats } from '../../base/values/format.ts';
import { explanationClasses } from '../../ledger/rules/explanation-class.ts';
import {
  byName,
  type CommandDescription,
  flag,
  text,
  textOr,
  texts,
  why,
  zone as tz,
} from '../../base/terminal/command.ts';
import {
  attestedBy,
  chains,
  checkpoint,
  databaseSealed,
  input,
  pubkey,
  sealed,
  source,
  valued,
} from './options.ts';

const changedLog = 'with --require-sealed: the events are not those that were sealed';
const notAsClosed = 'the period is not as it was closed';
const databaseOrExport = 'needs DATABASE_URL, or with --input a file of `export --format jsonl`';

const ofPeriod = { forms: ['2026-10'] } as const;

/** The commands of the books: exports, reconciliation, periods, verification. */
export const bookCommands = {
  export: {
    noDatabase: true,
    isReading: true,
    summary: 'writes the ledger, or the books of a period, to a file',
    forms: ['', `--format FORMAT --from 2026-11 --to 2026-12`],
    options: {
      format: textOr('FORMAT', 'jsonl', `jsonl, ${bookFormats.join(', ')},\n${importFormats.join(', ')}`),
      out: text('FILE', 'where it is written; default: standard output. With --from-seq it is appended to'),
      'from-seq': text('N', 'of the ledger: the first event'),
      from: text('2026-11', 'the books since then: a month, a day or an RFC 3339 time in the past'),
      to: text('2026-12', 'until before then'),
      ...source,
      rates: text(
        'FILE',
        'a CSV of date, commodity, currency and rate: prices in journals, the worth of each row,\nand a closing entry of conversions; default: the file that TOLLBOOK_RATES names',
      ),
      'value-in': text('EUR', 'the currency of rows if the file of --rates has several'),
      accounts: text(
        'FILE',
        'TOML: other names of accounts, and codes, by account or by what it begins with; rates of tax; what accounting programs need;\ndefault: the file that TOLLBOOK_ACCOUNTS names',
      ),
      'no-opening': flag(
        'the journal continues the journals of its year, and can be appended to them;\nthe first one of the year has the opening',
      ),
      'year-from': text('2026-04', 'where that year begins; default: January'),
      ...sealed,
    },
    notes: [
      'without --format: one line for each event with its sealed leaf bytes, then the counters;',
      'summary: opening, debits, credits and closing of each account, as CSV; summary-page: the same in Markdown;',
      'a journal begins with the balances brought forward, and asserts the balances at both ends;',
      'a late record is in the period of its recording, so a period always has the same bytes;',
      databaseOrExport,
    ],
    exits: {
      finding: `the period is closed, and the bytes are not those of the close; events contradict each other; ${changedLog}`,
    },
  },
  aging: {
    noDatabase: true,
    isReading: true,
    summary:
      'lists what was open at a date, with its age: settlements, refunds due, suspense, spends, prepaid credit',
    options: {
      'as-of': text(
        '2026-11-01',
        'the moment: the beginning of a month or day, or an RFC 3339 time; default: now;\n2026-11 is how October ended, and the sums are the balances of its journals',
      ),
      format: textOr('FORMAT', agingFormats[0], agingFormats.join(', ')),
      ...source,
      ...valued,
      ...sealed,
    },
    notes: ['credit is listed by grant and purchase, and the oldest is used first;', databaseOrExport],
    exits: { finding: `events contradict each other; ${changedLog}` },
  },
  reconcile: {
    noDatabase: true,
    isReading: true,
    summary: 'compares the ledger of a period with the chains: payments, transfers and balances',
    forms: [
      '--from 2026-11 --to 2026-12 --rpc NETWORK=URL --pubkey KEY',
      '--from 2026-11 --to 2026-12 --config FILE',
      '--from 2026-11 --to 2026-12 --input EXPORT --checkpoint FILE --pubkey KEY --rpc NETWORK=URL',
    ],
    options: {
      from: text('2026-11', 'the period since then: a month, a day or an RFC 3339 time in the past'),
      to: text('2026-12', 'until before then'),
      tz,
      ...chains,
      pubkey,
      json: text('FILE|-', 'the report as JSON'),
      csv: text('FILE', 'a line for each item'),
      'no-store': flag('keeps no report in the database, as with the reader role'),
      input,
      checkpoint,
      size: text('N', 'uses the head of N events instead of the newest'),
      block: texts('NETWORK=N', 'reads up to that block; needed to repeat a period that was not final'),
      twice: flag('reads every log a second time'),
      resume: text('FILE', 'saves the read logs there, and continues from them'),
      'require-sealed': flag(
        'not done unless a signed checkpoint covers every event that was recorded before the end of the period',
      ),
    },
    notes: [
      'reads the database that DATABASE_URL names, at the newest head of its log, and stores the result there;',
      'where a side cannot be read, nothing is stored',
    ],
    exits: {
      finding: 'a break that no operator has explained; or the period is closed with another report',
      explained: 'there are breaks, and each is explained',
    },
  },
  'reconcile explain': {
    summary: 'records what a break of a reconciliation is; later runs carry it',
    forms: ["BREAK --class CLASS --note 'TEXT' --by NAME"],
    options: {
      class: text('CLASS', `${explanationClasses.join(', ')};\nopen: what was said of it holds no more`),
      note: text("'TEXT'", 'what it is, for the record'),
      by: byName,
      report: text(
        'FILE',
        'a report of `reconcile --json`; default: the reports in the database, the newest first',
      ),
    },
    notes: ['BREAK: its id as the report has it, or at least 8 of its first digits'],
  },
  'period close': {
    summary: 'closes a period of the books: records its reconciliation, exports and head by their hashes',
    ...ofPeriod,
    forms: ['2026-10 --by NAME'],
    options: {
      by: byName,
      tz,
      report: text(
        'FILE',
        'its reconciliation, of `reconcile --json`; default: the stored one that read the most of the ledger',
      ),
      despite: text("'TEXT'", 'closes it although breaks are not explained, and says why'),
      ...databaseSealed,
    },
    notes: [
      'a month, or two ends: 2026-10-01/2026-11-01; it is over, and begins where the last closed one ends',
    ],
    exits: { finding: 'breaks are not explained, or the ledger is not the one that was reconciled' },
  },
  'period review': {
    summary: 'compares a closed period with its hashes, and records that another person did',
    ...ofPeriod,
    forms: ['2026-10 --by NAME'],
    options: { by: byName, ...chains, pubkey },
    notes: [
      'with a node of each chain and --pubkey, or with --config, it reconciles again, and says so in the record',
    ],
    exits: { finding: notAsClosed },
  },
  'period reopen': {
    summary: 'takes the close of a period back, the last one first',
    ...ofPeriod,
    forms: ["2026-10 --reason 'TEXT' --by NAME"],
    options: { reason: why, by: byName },
  },
  'period list': {
    isReading: true,
    summary: 'lists the periods that were closed, reviewed and reopened, with their persons',
  },
  'period show': {
    isReading: true,
    summary: 'prints all that the close of a period has recorded',
    ...ofPeriod,
    options: { json: flag('as JSON') },
  },
  'period check': {
    noDatabase: true,
    isReading: true,
    summary: 'compares a closed period with its hashes, and names what differs',
    forms: ['2026-10', '2026-10 --input EXPORT'],
    options: {
      ...chains,
      pubkey,
      report: text('FILE', 'the reconciliation of the close, to name what differs; default: the stored one'),
      input,
      checkpoint,
    },
    notes: [
      'with a node of each chain and --pubkey, or with --config, it reconciles again, at the head of the close;',
      databaseOrExport,
    ],
    exits: { finding: notAsClosed },
  },
  verify: {
    noDatabase: true,
    isReading: true,
    summary: 'verifies an export against checkpoints and the public key, the database, or one receipt',
    forms: ['EXPORT --checkpoint OLD --checkpoint NEW --pubkey KEY', '', '--receipt FILE --pubkey KEY'],
    options: {
      checkpoint,
      pubkey,
      receipt: text(
        'FILE',
        'verifies one payment by its proofs: the JSON of GET /x402/receipts/{quote_digest} with the receipt token, or of GET /audit/payments/{quote_digest}; opens no connection',
      ),
      'require-sealed': databaseSealed['require-sealed'],
    },
    notes: [
      'without EXPORT and --receipt it verifies the database that DATABASE_URL names;',
      'names the first wrong event, or the two checkpoints between which something was changed',
    ],
    exits: { finding: 'something is not valid' },
  },
  'attestations sign': {
    isReading: true,
    summary: 'verifies the ledger as a third party, and signs its size, root and refunds due',
    forms: ['NAME --key FILE --out FILE'],
    options: {
      key: text(
        'FILE',
        "the verifier's secret seed, as `log key NAME` prints it: never on a gateway's machine",
      ),
      out: text('FILE', 'the attestation, to be recorded'),
      pubkey,
      whole: flag('reads everything again, although an earlier attestation allows to read what came since'),
    },
    notes: [
      'NAME: the verifier, such as audit.example/tollbook;',
      'the first one verifies all events and rows, as `verify` does; a later one continues the last that is recorded',
    ],
    exits: { finding: 'the ledger is not as it was sealed or attested' },
  },
  'attestations record': {
    summary: 'records an attestation that a verifier has signed',
    forms: ['--file FILE --attested-by KEY --by NAME'],
    options: { file: text('FILE', 'the attestation'), 'attested-by': attestedBy, by: byName },
    exits: { finding: 'it is about another ledger' },
  },
  'attestations list': {
    isReading: true,
    summary: 'lists the recorded attestations of a verifier',
    forms: ['--attested-by KEY'],
    options: { 'attested-by': attestedBy },
    exits: { finding: 'one of them was not signed by the verifier' },
  },
} satisfies Readonly<Record<string, CommandDescription>>;
