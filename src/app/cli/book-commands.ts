import { agingFormats } from '../../finance/use-cases/books/aging-format.ts';
import { bookFormats } from '../../base/values/format.ts';
import { costPurposes } from '../../base/values/transaction-cost.ts';
import { explanationClasses } from '../../ledger/rules/explanation-class.ts';

const notAsClosed = 'the period is not as it was closed';

const changedLog = 'with --require-sealed: the events are not those that were sealed';
export const requireSealedHelp =
  '  --require-sealed  not done unless a signed checkpoint covers every event that is used; --pubkey checks its signature\n';

/** The commands of the books: exports, reconciliation, periods. */
export const bookCommands = {
  export: {
    isReading: true,
    summary: 'writes the ledger, or the books of a period, to a file',
    usage:
      'tollbook export [--format jsonl] [--from-seq N] [--out FILE] [--require-sealed [--pubkey KEY]]\n' +
      '  one line for each event with its sealed leaf bytes, then the counters; with --from-seq, --out is appended to\n' +
      `tollbook export --format ${bookFormats.join('|')} --from 2026-11 --to 2026-12 [--tz Europe/Berlin]\n` +
      '  [--out FILE] [--input EXPORT [--exported-at 2026-12-01T08:00:00Z]] [--rates FILE [--value-in EUR]] [--currency USD]\n' +
      '  [--accounts FILE] [--require-sealed [--pubkey KEY]]\n' +
      '  the books of a period in the past, from --from until before --to: months, days or RFC 3339 times;\n' +
      '  --tz: where days and months begin, and the days in the files are counted; default UTC;\n' +
      '  summary: opening, debits, credits and closing of each account, as CSV; summary-page: the same in Markdown;\n' +
      '  a journal begins with the balances brought forward, and asserts the balances at both ends;\n' +
      '  --no-opening: it continues the journals of its year, which begins in January or with --year-from 2026-04, and can be\n' +
      '  appended to them; the first one of the year has the opening;\n' +
      '  a late record is in the period of its recording, so a period always has the same bytes\n' +
      '  needs DATABASE_URL, or with --input a file of --format jsonl; --exported-at is the time of that export,\n' +
      '  needed if it has no event after the period\n' +
      '  --rates     a CSV of date, commodity, currency and rate: prices in journals, the worth of each row, and a closing\n' +
      '              entry of conversions; --value-in is the currency of rows where the file has several\n' +
      requireSealedHelp +
      '                    with --input also --checkpoint FILE\n' +
      '  --currency  that of credit, for a ledger that does not say it\n' +
      '  --accounts  TOML: other names of accounts, and codes, by account or by what it begins with',
    exits: {
      finding: `the period is closed, and the bytes are not those of the close; events contradict each other; ${changedLog}`,
    },
    load: () => import('../../finance/commands/export.ts'),
  },
  'costs record': {
    summary: 'records what a transaction of yours cost: a refund, a sweep, a spend or an anchor',
    usage:
      `tollbook costs record --network eip155:8453 --tx TRANSACTION --purpose ${costPurposes.join('|')}\n` +
      '  (--rpc NETWORK=URL | --config FILE) [--payer ADDRESS] [--by NAME]\n' +
      '  of its receipt, once it is final; also where it failed. What a command or a gateway has recorded is not recorded again\n' +
      'tollbook costs record --missing [--network eip155:8453] [--from 2026-11] (--rpc NETWORK=URL | --config FILE)\n' +
      '  [--payer ADDRESS] [--by NAME]\n' +
      '  finds the refunds, sweeps, transfers and spends in the ledger whose transaction has no recorded cost, and records each;\n' +
      '  with --config also the anchors that its keys have published on a chain. Where one of them could not be recorded, or found,\n' +
      '  it is named, and the command is not done: repeat it\n' +
      "  --from   looks for anchors since then; default: the ledger's first event, which reads many blocks of an old ledger\n" +
      '  --payer  the account that sent it: says that it is yours, where neither ledger nor configuration knows it\n' +
      '  --by     the operator; default: your account on this machine; needs DATABASE_URL',
    load: () => import('../../finance/commands/costs/record.ts'),
  },
  'costs reverse': {
    summary: 'takes back what was recorded of the cost of a transaction, so that it can be recorded rightly',
    usage:
      "tollbook costs reverse --network eip155:8453 --tx TRANSACTION --why 'TEXT' [--by NAME]\n" +
      '  who and why are on record, and the books have both entries; needs DATABASE_URL',
    load: () => import('../../finance/commands/costs/reverse.ts'),
  },
  'costs list': {
    isReading: true,
    summary: 'lists what your transactions cost, and what of it was reversed, the newest first',
    usage:
      'tollbook costs list [--from 2026-11] [--to 2026-12] [--tz Europe/Berlin]\n' +
      '  those recorded from --from until before --to; --tz: the zone of days and times; needs DATABASE_URL',
    load: () => import('../../finance/commands/costs/list.ts'),
  },
  aging: {
    isReading: true,
    summary:
      'lists what was open at a date, with its age: settlements, refunds due, suspense, spends, prepaid credit',
    usage:
      `tollbook aging [--as-of 2026-11-01] [--format ${agingFormats.join('|')}] [--tz Europe/Berlin] [--currency USD]\n` +
      '  [--input EXPORT --exported-at 2026-12-01T08:00:00Z] [--require-sealed [--pubkey KEY]]\n' +
      '  --as-of  the moment: the beginning of a month or day, or an RFC 3339 time; default: now;\n' +
      '           --as-of 2026-11 is how October ended, and the sums are the balances of its journals\n' +
      requireSealedHelp +
      '                    with --input also --checkpoint FILE\n' +
      '  credit is listed by grant and purchase, and the oldest is used first;\n' +
      '  needs DATABASE_URL, or with --input a file of `export --format jsonl`',
    exits: { finding: `events contradict each other; ${changedLog}` },
    load: () => import('../../finance/commands/aging.ts'),
  },
  reconcile: {
    isReading: true,
    summary: 'compares the ledger of a period with the chains: payments, transfers and balances',
    usage:
      'tollbook reconcile --from 2026-11 --to 2026-12 (--rpc NETWORK=URL --pubkey KEY | --config FILE) [--json FILE|-]\n' +
      '  [--csv FILE]  a line for each item\n' +
      '  [--no-store]  keeps no report in the database, as with the reader role\n' +
      '  reads the database that DATABASE_URL names, at the newest head of its log, and stores the result there\n' +
      'tollbook reconcile --from … --to … --input EXPORT --checkpoint FILE --pubkey KEY --rpc NETWORK=URL\n' +
      '  reads an export; needs no database\n' +
      '  --tz ZONE            where days and months begin; default UTC\n' +
      '  --size N             uses the head of N events instead of the newest\n' +
      '  --block NETWORK=N    reads up to that block; needed to repeat a period that was not final\n' +
      '  --twice              reads every log a second time\n' +
      '  --require-sealed     not done unless a signed checkpoint covers every event that was recorded before the end of the period\n' +
      '  --resume FILE        saves the read logs there, and continues from them\n' +
      '  where a side cannot be read, nothing is stored',
    exits: {
      finding: 'a break that nobody has explained; or the period is closed with another report',
      explained: 'there are breaks, and each is explained',
    },
    load: () => import('../../finance/commands/reconcile.ts'),
  },
  'reconcile explain': {
    summary: 'records what a break of a reconciliation is; later runs carry it',
    usage:
      "tollbook reconcile explain BREAK --class CLASS --note 'TEXT' --by NAME [--report FILE]\n" +
      '  BREAK     its id as the report has it, or at least 8 of its first digits\n' +
      `  --class   ${explanationClasses.join(', ')}\n` +
      '            open: what was said of it holds no more\n' +
      '  --report  a report of `reconcile --json`; default: the reports in the database, the newest first; needs DATABASE_URL',
    load: () => import('../../finance/commands/reconcile/explain.ts'),
  },
  'period close': {
    summary: 'closes a period of the books: records its reconciliation, exports and head by their hashes',
    usage:
      "tollbook period close 2026-10 --by NAME [--tz Europe/Berlin] [--report FILE] [--despite 'TEXT']\n" +
      '  [--require-sealed [--pubkey KEY]]\n' +
      '  a month, or two ends: 2026-10-01/2026-11-01; it is over, and begins where the last closed one ends\n' +
      '  --report   its reconciliation, of `reconcile --json`; default: the stored one that read the most of the ledger\n' +
      '  --despite  closes it although breaks are not explained, and says why\n' +
      requireSealedHelp +
      '  needs DATABASE_URL',
    exits: { finding: 'breaks are not explained, or the ledger is not the one that was reconciled' },
    load: () => import('../../finance/commands/period/close.ts'),
  },
  'period review': {
    summary: 'compares a closed period with its hashes, and records that another person did',
    usage:
      'tollbook period review 2026-10 --by NAME [--rpc NETWORK=URL --pubkey KEY | --config FILE]\n' +
      '  with a node of each chain it reconciles again, and says so in the record; needs DATABASE_URL',
    exits: { finding: notAsClosed },
    load: () => import('../../finance/commands/period/review.ts'),
  },
  'period reopen': {
    summary: 'takes the close of a period back, the last one first',
    usage:
      "tollbook period reopen 2026-10 --reason 'TEXT' --by NAME\n  who and why are on record; needs DATABASE_URL",
    load: () => import('../../finance/commands/period/reopen.ts'),
  },
  'period list': {
    isReading: true,
    summary: 'lists the periods that were closed, reviewed and reopened, with their persons',
    usage: 'tollbook period list\n  needs DATABASE_URL',
    load: () => import('../../finance/commands/period/list.ts'),
  },
  'period show': {
    isReading: true,
    summary: 'prints all that the close of a period has recorded',
    usage: 'tollbook period show 2026-10 [--json]\n  needs DATABASE_URL',
    load: () => import('../../finance/commands/period/show.ts'),
  },
  'period check': {
    isReading: true,
    summary: 'compares a closed period with its hashes, and names what differs',
    usage:
      'tollbook period check 2026-10 [--rpc NETWORK=URL --pubkey KEY | --config FILE] [--report FILE]\n' +
      'tollbook period check 2026-10 --input EXPORT [--rpc NETWORK=URL --pubkey KEY --checkpoint FILE]\n' +
      '  with a node of each chain it reconciles again, at the head of the close\n' +
      '  --report  the reconciliation of the close, to name what differs; default: the stored one\n' +
      '  needs DATABASE_URL, or with --input an export of --format jsonl',
    exits: { finding: notAsClosed },
    load: () => import('../../finance/commands/period/check.ts'),
  },
} as const;
