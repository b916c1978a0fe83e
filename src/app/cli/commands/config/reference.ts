import {
  configReference,
  type KeyReference,
  type TableReference,
} from '../../../../base/config/reference.ts';
import { readOptions } from '../../../../base/terminal/arguments.ts';
import { type ExitCode, exitCodes } from '../../../../base/terminal/exit-codes.ts';
import { say } from '../../../../base/terminal/terminal.ts';
import { appCommands } from '../../descriptions.ts';

/** Prints every key of the operator's file, as docs/configuration-reference.md has them. */
export async function run(args: readonly string[]): Promise<ExitCode> {
  readOptions(appCommands['config reference'], args);
  say(referencePage(configReference()));
  return exitCodes.done;
}

/** The whole page, in Markdown, without the end of its last line. */
export function referencePage(tables: readonly TableReference[]): string {
  const count = tables.reduce((sum, { keys }) => sum + keys.length, 0);
  const intro = `# Every key of the configuration
\`tollbook config reference\` prints this page from the schema. A file has at most these ${count} keys: [configuration.md](configuration.md)
says what they are for. A key with \`*\` changes with a reload. A key that is neither required nor has a default may be left out.`;
  return [intro, ...tables.map(tableText)].join('\n\n');
}

function tableText({ header, keys }: TableReference): string {
  const title = header === '' ? '## The top of the file' : `## \`${header}\``;
  return [title, '| Key | Type | Default | Meaning |', '|---|---|---|---|', ...keys.map(rowOf)].join('\n');
}

function rowOf({ name, type, byDefault, isRequired, isReloadable, meaning, unit }: KeyReference): string {
  const withUnit = unit === undefined ? type : `${type}; ${unit}`;
  const given = byDefault === undefined ? (isRequired ? 'required' : '') : `\`${byDefault}\``;
  const cells = [`\`${name}\`${isReloadable ? ' *' : ''}`, withUnit, given, meaning];
  return `| ${cells.map((cell) => cell.replaceAll('|', String.raw`\|`)).join(' | ')} |`;
}
