import { isRole, operatorRoles } from '../../../base/values/operator-role.ts';
import { operatorNamePattern } from '../../../base/values/operator-words.ts';
import { invitationHours, invitationUrl, inviteOperator } from '../../use-cases/invitations.ts';
import { ArgumentError, readOperator, readOptions } from '../../../base/terminal/arguments.ts';
import { type ExitCode, exitCodes } from '../../../base/terminal/exit-codes.ts';
import { withLedger } from '../../../ledger/terminal/ledger.ts';
import { fail, say } from '../../../base/terminal/terminal.ts';
import { accountCommands } from '../../terminal/descriptions.ts';

export async function run(args: readonly string[]): Promise<ExitCode> {
  const { values, positionals } = readOptions(accountCommands['operators invite'], args);
  const [name, ...more] = positionals;
  if (name === undefined || more.length > 0 || !operatorNamePattern.test(name))
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
  if (invited.kind === 'name_taken') {
    fail(`${name} is, or was, another operator: names are never given twice. Nothing was changed.`);
    return exitCodes.notDone;
  }
  say(invitationUrl(new URL(url).origin, invited.token));
  fail(`The link is valid for ${invitationHours} hours, and once. Give it to the owner of ${email} alone.`);
  return exitCodes.done;
}
