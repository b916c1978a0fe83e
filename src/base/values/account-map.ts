import { Balances, type Balance, type Move } from './entry.ts';

/** How an accountant names an account, or all accounts that begin with its name. */
export interface MappedAccount {
  /** As the chart of accounts has it: `Income:Jobs:1:0`, or `Income:Jobs` for all jobs. */
  readonly account: string;
  /** Of the same kind; undefined if only the code differs. */
  readonly name: string | undefined;
  readonly code: string | undefined;
  /** As the accounting program shows it, such as `Sales:Services`. */
  readonly title: string | undefined;
}

/** A name that both journals can hold: parts begin with a capital or a digit, and hold letters, digits and hyphens. */
export const accountName = /^(?:Assets|Liabilities|Equity|Income|Expenses)(?::[A-Z0-9][A-Za-z0-9-]*)+$/;

/** The accounts of an export by other names, with codes. Accounts that get the same name are added up. */
export class AccountMap {
  /** The longest first, so that the closest one decides. */
  readonly #rules: readonly MappedAccount[];
  readonly #names = new Map<string, string>();
  readonly #codes = new Map<string, string | undefined>();
  readonly #titles = new Map<string, string>();
  readonly #renamed = new Set<string>();

  constructor(rules: readonly MappedAccount[]) {
    this.#rules = rules.toSorted((a, b) => b.account.length - a.account.length);
  }

  nameOf(account: string): string {
    const known = this.#names.get(account);
    if (known !== undefined) return known;
    const rule = this.#rules.find((one) => isWithin(account, one.account));
    const name = rule?.name === undefined ? account : rule.name + account.slice(rule.account.length);
    this.#names.set(account, name);
    if (rule?.code !== undefined) this.#codes.set(name, rule.code);
    if (rule?.title !== undefined) this.#titles.set(name, rule.title);
    if (name !== account) this.#renamed.add(name);
    return name;
  }

  /** The code of an account by its new name; undefined if it has no code, or no earlier name. */
  codeOf(name: string): string | undefined {
    return this.#codes.get(name);
  }

  /** The accounting program's name of an account, by its new name; undefined if it has none, or no earlier name. */
  titleOf(name: string): string | undefined {
    return this.#titles.get(name);
  }

  /** Whether a name of the operator's own chart is among those that were named before. */
  isRenamed(name: string): boolean {
    return this.#renamed.has(name);
  }

  move(move: Move): Move {
    return { ...move, debit: this.nameOf(move.debit), credit: this.nameOf(move.credit) };
  }

  balances(balances: readonly Balance[]): Balance[] {
    const renamed = new Balances();
    for (const { account, commodity, atoms } of balances) renamed.add(this.nameOf(account), commodity, atoms);
    return renamed.list();
  }

  /** Two names so far of which one is the parent of the other: tools would add the child to the balance of its parent. */
  findParent(): { readonly parent: string; readonly child: string } | undefined {
    const names = new Set(this.#names.values());
    for (const child of names)
      for (let end = child.lastIndexOf(':'); end > 0; end = child.lastIndexOf(':', end - 1)) {
        const parent = child.slice(0, end);
        if (names.has(parent)) return { parent, child };
      }
    return undefined;
  }
}

/** Whether an account is another one or below it. */
function isWithin(account: string, other: string): boolean {
  return account === other || account.startsWith(`${other}:`);
}
