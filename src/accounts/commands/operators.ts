import { isRole, operatorRoles } from '../../base/values/operator-role.ts';
import { operatorNamePattern } from '../../base/values/operator-words.ts';
import { invitationHours, invitationUrl, inviteOperator } from '../use-cases/invitations.ts';
import { ArgumentError, readOperator, readOptions } from '../../base/terminal/arguments.ts';
import { type ExitCode, exitCodes } from '../../base/terminal/exit-codes.ts';
import { withLedger } from '../../ledger/terminal/ledger.ts';
import { fail, notDone, say } from '../../base/terminal/terminal.ts';
import { accountCommands } from '../terminal/descriptions.ts';
import { listOperators } from '../store/operators.ts';
import { withdrawRole, removeFactors } from '../use-cases/operators.ts';

export async function invite(args: readonly string[]): Promise<ExitCode> {
  const { values, positionals } = readOptions(accountCommands['operators invite'], args);
  const [name] = positionals;
  if (name === undefined || !operatorNamePattern.test(name))
    throw new ArgumentError(
      'an operator needs a name, which the ledger keeps for ever: 1 to 64 letters, digits, dots, dashes, underscores',
    );
  const { email, role, url } = values;
  if (email === undefined || !/^[^\s@]{1,64}@[^\s@]{1,189}$/.test(email))
    throw new ArgumentError('--email is the address with which the person signs in');
  if (!isRole(role)) throw new ArgumentError(`--role is one of ${operatorRoles.join(', ')}`);
  if (url === undefined || !URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
    throw new ArgumentError('--url is where browsers reach the gateway, such as https://gateway.example');
  const by = { name: readOperator(values.by), at: 'command' } as const;
  const invited = await withLedger((ledger) => inviteOperator(ledger, { name, email, role, by }));
  if (invited.kind === 'name_taken')
    return notDone(`${name} is, or was, another operator: names are never given twice. Nothing was changed.`);
  say(invitationUrl(new URL(url).origin, invited.token));
  fail(`The link is valid for ${invitationHours} hours, and once. Give it to the owner of ${email} alone.`);
  return exitCodes.done;
}

export async function list(): Promise<ExitCode> {
  const operators = await withLedger(({ pool }) => listOperators(pool));
  for (const { name, role = 'withdrawn', email = 'erased', hasFactor } of operators)
    say(`${name}  ${role}  ${email}${hasFactor ? '' : '  without a second factor'}`);
  return exitCodes.done;
}

export async function withdraw(args: readonly string[]): Promise<ExitCode> {
  const { name, by } = readNamedOperator(args, 'withdraw');
  const change = { name, by: { name: by, at: 'command' } } as const;
  const { kind } = await withLedger((ledger) => withdrawRole(ledger, change));
  if (kind === 'withdrawn') {
    say(`${name} has no role any more, and the sessions have ended.`);
    return exitCodes.done;
  }
  return notDone(`There is no operator ${name} with a role. Invitations of the name were ended.`);
}

export async function resetFactor(args: readonly string[]): Promise<ExitCode> {
  const { name, by } = readNamedOperator(args, 'reset-factor');
  const change = { name, by: { name: by, at: 'command' } } as const;
  const { kind } = await withLedger((ledger) => removeFactors(ledger, change));
  if (kind === 'removed') {
    say(`${name} has no second factor any more: the next sign-in to the console sets one up.`);
    return exitCodes.done;
  }
  return notDone(`There is no operator ${name}.`);
}

/** The operator whom a command is about, and who runs it. Throws an ArgumentError if none is named. */
function readNamedOperator(
  args: readonly string[],
  verb: string,
): { readonly name: string; readonly by: string } {
  const { values, positionals } = readOptions(accountCommands['operators withdraw'], args);
  const [name] = positionals;
  if (name === undefined || !operatorNamePattern.test(name))
    throw new ArgumentError(`name one operator: tollbook operators ${verb} NAME`);
  return { name, by: readOperator(values.by) };
}
