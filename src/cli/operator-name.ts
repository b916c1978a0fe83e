import { userInfo } from 'node:os';

const operatorName = /^[A-Za-z0-9._@-]{1,64}$/;

export const operatorNameRule = '--by is your name: letters, digits, dots, dashes, underscores, @';

/** Who the ledger is told it was: the name given, or that of the account on this machine. Undefined for none. */
export function operatorNamed(by: string | undefined): string | undefined {
  const name = by ?? userInfo().username;
  return operatorName.test(name) ? name : undefined;
}
