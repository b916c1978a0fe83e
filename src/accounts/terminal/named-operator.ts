import { ArgumentError, readOperator, readOptions } from '../../base/terminal/arguments.ts';
import { accountCommands } from './descriptions.ts';

/** The operator whom a command is about, and who runs it. Throws an ArgumentError where none is named. */
export function readNamedOperator(
  args: readonly string[],
  verb: string,
): { readonly name: string; readonly by: string } {
  const { values, positionals } = readOptions(accountCommands['operators withdraw'], args);
  const [name, ...more] = positionals;
  if (name === undefined || more.length > 0)
    throw new ArgumentError(`name one operator: tollbook operators ${verb} NAME`);
  return { name, by: readOperator(values.by) };
}
