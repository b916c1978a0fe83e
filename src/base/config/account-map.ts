import { AccountMap, accountName, type MappedAccount } from '../values/account-map.ts';
import type { Report } from './mistakes.ts';

const code = /^[A-Za-z0-9][A-Za-z0-9._-]{0,31}$/;
const titleForm = /^(?! )[^"\p{C}]{1,100}(?<! )$/u;

/** Reads names, codes and titles of accounts: a TOML table for each account. Mistakes are reported, each with its path. */
export function readAccountMap(tables: Readonly<Record<string, unknown>>, report: Report): AccountMap {
  const rules = Object.entries(tables).flatMap(([account, value]) => {
    const rule = readRule(account, value, report);
    return rule ? [rule] : [];
  });
  const codes = new Map<string, MappedAccount>();
  for (const rule of rules) {
    const name = rule.name ?? rule.account;
    const other = codes.get(name);
    if (other && other.code !== rule.code)
      report.mistake([rule.account], `has the name of ${other.account} and another code: ${name}`);
    codes.set(name, rule);
  }
  return new AccountMap(rules);
}

function readRule(account: string, value: unknown, report: Report): MappedAccount | undefined {
  const path = [account];
  if (!accountName.test(account)) {
    report.mistake(
      path,
      'is not an account: such as "Income:Jobs:1:0", or "Income:Jobs" for all that begin with it',
    );
    return undefined;
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    report.mistake(path, 'must be a table with name, code or title');
    return undefined;
  }
  const { name, code: given, title, ...others } = value as Record<string, unknown>;
  for (const key of Object.keys(others))
    report.mistake([account, key], 'is unknown: there are name, code and title');
  if (name === undefined && given === undefined && title === undefined)
    report.mistake(path, 'has neither name nor code nor title');
  return {
    account,
    name: readName(account, name, report),
    code: readCode(account, given, report),
    title: readTitle(account, title, report),
  };
}

function readName(account: string, name: unknown, report: Report): string | undefined {
  if (name === undefined) return undefined;
  const kind = account.slice(0, account.indexOf(':') + 1);
  if (typeof name === 'string' && accountName.test(name) && name.startsWith(kind)) return name;
  report.mistake(
    [account, 'name'],
    `must begin with ${kind} and have parts of letters, digits and hyphens that begin with a capital or a digit`,
  );
  return undefined;
}

function readCode(account: string, given: unknown, report: Report): string | undefined {
  if (given === undefined) return undefined;
  const text = typeof given === 'bigint' ? String(given) : given;
  if (typeof text === 'string' && code.test(text)) return text;
  report.mistake([account, 'code'], 'must have 1 to 32 letters, digits, dots, hyphens or underscores');
  return undefined;
}

function readTitle(account: string, given: unknown, report: Report): string | undefined {
  if (given === undefined) return undefined;
  if (typeof given === 'string' && titleForm.test(given)) return given;
  report.mistake([account, 'title'], 'must have 1 to 100 visible characters, without quotation marks');
  return undefined;
}
